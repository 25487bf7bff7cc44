//! A host's disk as its engine exposes it: non-blocking, where some calls would block, or blocking.
//!
//! It is not another disk: every result is the disk's own. Invariant: it has a random stream of its own,
//! since an [`Fs`] is shared and must be `Sync`.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::SimDisk;
use crate::file::{Entry, Existing, File, Fs, Space, Stat};
use crate::sim::chance::Chance;

/// The thread from which a view is used.
pub(in crate::sim) enum ViewThread {
    /// In a task's own turn. A query would block with this probability of a thousand; a change always
    /// would.
    AtHand { would_block: u16 },
    /// On a worker that may block.
    Blocking,
}

pub(in crate::sim) struct View {
    disk: Arc<SimDisk>,
    chance: Mutex<Chance>,
    place: ViewThread,
    /// Chance that a read or a write is short, of a thousand.
    short: u16,
}

impl View {
    pub(in crate::sim) fn new(disk: &Arc<SimDisk>, chance: Chance, place: ViewThread, short: u16) -> View {
        View { disk: Arc::clone(disk), chance: Mutex::new(chance), place, short }
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check_nonblocking(&self) -> io::Result<&SimDisk> {
        let would_block = match self.place {
            ViewThread::AtHand { would_block } => would_block,
            ViewThread::Blocking => 0,
        };
        if self.draw(|chance| chance.chance(would_block)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.disk)
    }

    /// Returns the disk for changes, and for queries that always block.
    fn may_block(&self) -> io::Result<&SimDisk> {
        match self.place {
            ViewThread::AtHand { .. } => Err(io::ErrorKind::WouldBlock.into()),
            ViewThread::Blocking => Ok(&self.disk),
        }
    }

    /// Makes sure that a range is in memory: reads it from the disk where that may block, and otherwise
    /// checks.
    fn reach(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        match self.place {
            ViewThread::AtHand { .. } if self.disk.is_in_memory(file, &range) => Ok(()),
            ViewThread::AtHand { .. } => Err(io::ErrorKind::WouldBlock.into()),
            ViewThread::Blocking => self.disk.read_ahead(file, range),
        }
    }

    /// Draws how many of `most` bytes one read or write moves.
    fn portion(&self, most: usize) -> usize {
        self.draw(|chance| {
            let short = most > 1 && chance.chance(self.short);
            if short { 1 + chance.index(most - 1) } else { most }
        })
    }
}

impl Fs for View {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        self.check_nonblocking()?.open_root(path)
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        self.check_nonblocking()?.open_beneath(root, name)
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        self.check_nonblocking()?.stat(file)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        self.check_nonblocking()?.list(root, name, entries_max)
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.check_nonblocking()?;
        self.reach(file, offset..offset.saturating_add(into.len() as u64))?;
        let count = self.portion(into.len());
        disk.read_at(file, &mut into[..count], offset)
    }

    fn read_uncached(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.portion(into.len());
        self.may_block()?.read_uncached(file, &mut into[..count], offset)
    }

    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        self.check_nonblocking()?;
        self.reach(file, range)
    }

    fn names(&self, folder: &File, entries_max: usize) -> io::Result<Vec<Entry>> {
        self.may_block()?.names(folder, entries_max)
    }

    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat> {
        self.check_nonblocking()?.stat_name(folder, name)
    }

    fn volume_top(&self, folder: &File) -> io::Result<File> {
        self.may_block()?.volume_top(folder)
    }

    fn is_below(&self, folder: &File, above: &File) -> io::Result<bool> {
        self.may_block()?.is_below(folder, above)
    }

    fn read_link(&self, folder: &File, name: &[u8]) -> io::Result<Vec<u8>> {
        self.may_block()?.read_link(folder, name)
    }

    fn make_link(&self, folder: &File, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.may_block()?.make_link(folder, name, target)
    }

    fn create(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        self.may_block()?.create(folder, name)
    }

    fn open_to_write(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        self.may_block()?.open_to_write(folder, name)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let disk = self.may_block()?;
        let count = self.portion(bytes.len());
        disk.write_at(file, &bytes[..count], offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.may_block()?.set_len(file, len)
    }

    fn set_modified(&self, file: &File, modified: Duration) -> io::Result<()> {
        Fs::set_modified(self.may_block()?, file, modified)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.may_block()?.sync(file)
    }

    fn make_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.may_block()?.make_folder(folder, name)
    }

    fn rename(
        &self,
        from_folder: &File,
        from: &[u8],
        to_folder: &File,
        to: &[u8],
        existing: Existing,
    ) -> io::Result<()> {
        self.may_block()?.rename(from_folder, from, to_folder, to, existing)
    }

    fn remove_file(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.may_block()?.remove_file(folder, name)
    }

    fn remove_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.may_block()?.remove_folder(folder, name)
    }

    fn is_in_memory(&self, file: &File) -> bool {
        Fs::is_in_memory(&*self.disk, file)
    }

    fn copy(&self, from: &File, to: &File, bytes_max: u64) -> io::Result<u64> {
        self.may_block()?.copy(from, to, bytes_max)
    }

    fn copy_part(&self, from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64> {
        self.may_block()?.copy_part(from, to, offset, bytes_max)
    }

    fn space(&self, file: &File) -> io::Result<Space> {
        self.may_block()?.space(file)
    }
}
