//! A host's disk as its engine shows it: at hand, where some answers would block, or where it may block.
//!
//! It is not another disk: every answer is the disk's own. What must hold: it draws its own chance, since
//! an [`Fs`] is shared and must be `Sync`.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::chance::Chance;
use super::disk::SimDisk;
use crate::file::{Entry, File, Fs, Stat};

pub(super) struct View {
    disk: Arc<SimDisk>,
    chance: Mutex<Chance>,
    /// Chance that an answer would block, of a thousand.
    not_at_hand: u16,
    /// Chance that a read is short, of a thousand.
    short_reads: u16,
}

impl View {
    pub(super) fn new(disk: &Arc<SimDisk>, chance: Chance, not_at_hand: u16, short_reads: u16) -> View {
        View { disk: Arc::clone(disk), chance: Mutex::new(chance), not_at_hand, short_reads }
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_at_hand(&self) -> io::Result<&SimDisk> {
        if self.draw(|chance| chance.chance(self.not_at_hand)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.disk)
    }
}

impl Fs for View {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        self.is_at_hand()?.open_root(path)
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        self.is_at_hand()?.open_beneath(root, name)
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        self.is_at_hand()?.stat(file)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        self.is_at_hand()?.list(root, name, entries_max)
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.is_at_hand()?;
        let count = self.draw(|chance| {
            let short = into.len() > 1 && chance.chance(self.short_reads);
            if short { 1 + chance.index(into.len() - 1) } else { into.len() }
        });
        disk.read_at(file, &mut into[..count], offset)
    }
}
