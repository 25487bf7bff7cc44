//! The simulated disk as an [`Fs`], for protocols and stores.
//!
//! It cuts no power ([`super::injected_faults`] does). Invariant: its results equal those of the kernel's
//! file systems, including errors; one test suite runs against both.

use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::injected_faults::Call;
use super::journal::{Change, Edit};
use super::tree::{Body, ROOT, Walk};
use super::{SimDisk, State};
use crate::file::{Entry, Existing, File, FileKind, Fs, Space, Stat, check_name};

/// A folder's inode number and a name in it.
type EntryKey<'a> = (u64, &'a [u8]);

impl SimDisk {
    /// Runs one call that changes something: counts it, and injects its faults.
    fn call<T>(&self, call: Call, act: impl FnOnce(&mut State, Duration) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        state.injected_faults.begin(call)?;
        let now = state.tick();
        let acted = act(&mut state, now);
        state.injected_faults.end()?;
        acted
    }
}

impl State {
    /// Returns the start of `into` that can be filled from `offset` on: a read ends at a bad block, and fails
    /// in it.
    fn readable<'a>(&self, inode: u64, offset: u64, into: &'a mut [u8]) -> io::Result<&'a mut [u8]> {
        match self.damaged.get(&inode) {
            Some(damaged) if *damaged <= offset && !into.is_empty() => Err(io::Error::other("a bad block")),
            Some(damaged) => {
                let count = usize::try_from(damaged.saturating_sub(offset)).unwrap_or(usize::MAX);
                let count = count.min(into.len());
                Ok(&mut into[..count])
            }
            None => Ok(into),
        }
    }

    /// Resolves `name` in an open folder.
    fn place<'a>(&self, folder: &File, name: &'a [u8]) -> io::Result<EntryKey<'a>> {
        check_name(name)?;
        let folder = self.inode_of(folder)?;
        self.tree.folder(folder)?;
        Ok((folder, name))
    }

    /// Resolves a name that is about to be created. Fails if the folder itself was removed.
    fn new_place<'a>(&self, folder: &File, name: &'a [u8]) -> io::Result<EntryKey<'a>> {
        let place = self.place(folder, name)?;
        if self.tree.node(place.0)?.named { Ok(place) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn child(&self, folder: &File, name: &[u8]) -> io::Result<u64> {
        let (folder, name) = self.place(folder, name)?;
        self.tree.child(folder, name)
    }

    fn make(&mut self, folder: &File, name: &[u8], body: Body, now: Duration) -> io::Result<u64> {
        let (folder, name) = self.new_place(folder, name)?;
        if self.tree.child(folder, name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.injected_faults.room() == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let inode = self.tree.add(folder, body, now);
        let edits = vec![Edit::new(folder, name, Some(inode))];
        self.change_names(Change { edits, ends: None, moves_folder: false }, now)?;
        Ok(inode)
    }

    /// Writes as many bytes as there is space for. An empty write has no effect, even past the end of
    /// the file.
    fn write(&mut self, inode: u64, bytes: &[u8], offset: u64, now: Duration) -> io::Result<usize> {
        let old = self.tree.node(inode)?.bytes()?.len() as u64;
        if bytes.is_empty() {
            return Ok(0);
        }
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let room = old.saturating_add(self.injected_faults.room()).saturating_sub(offset);
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.change_bytes(inode, old.max(offset + count as u64), now, |file| {
            file[start..start + count].copy_from_slice(&bytes[..count]);
        })?;
        Ok(count)
    }

    /// Removes the name of a folder, or of anything else.
    fn take_away(&mut self, folder: &File, name: &[u8], is_folder: bool, now: Duration) -> io::Result<()> {
        let (folder, name) = self.place(folder, name)?;
        let inode = self.tree.child(folder, name)?;
        let node = self.tree.node(inode)?;
        if self.tree.is_mounted(folder, inode)? {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        match (is_folder, &node.body) {
            (true, Body::Folder(names)) if !names.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            (true, Body::Folder(_)) => {}
            (true, _) => return Err(io::ErrorKind::NotADirectory.into()),
            (false, Body::Folder(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            (false, _) => {}
        }
        self.injected_faults.resize(node.size(), 0)?;
        let edits = vec![Edit::new(folder, name, None)];
        self.change_names(Change { edits, ends: is_folder.then_some(inode), moves_folder: false }, now)
    }

    /// Whether a rename may replace the node `there` by `inode`.
    fn may_replace(&self, inode: u64, there: u64) -> io::Result<()> {
        match (&self.tree.node(inode)?.body, &self.tree.node(there)?.body) {
            (Body::Folder(_), Body::Folder(names)) if !names.is_empty() => {
                Err(io::ErrorKind::DirectoryNotEmpty.into())
            }
            (Body::Folder(_), Body::Folder(_)) => Ok(()),
            (Body::Folder(_), _) => Err(io::ErrorKind::NotADirectory.into()),
            (_, Body::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
            _ => Ok(()),
        }
    }

    fn rename(
        &mut self,
        old: EntryKey<'_>,
        new: EntryKey<'_>,
        existing: Existing,
        now: Duration,
    ) -> io::Result<()> {
        let inode = self.tree.child(old.0, old.1)?;
        let there = self.tree.child(new.0, new.1).ok();
        let moves_folder = self.tree.node(inode)?.kind() == FileKind::Folder;
        if there.is_some() && existing == Existing::Kept {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if moves_folder && self.tree.is_below(new.0, inode) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if there == Some(inode) {
            return Ok(());
        }
        // Across volumes, or the top of one.
        if self.tree.is_mounted(new.0, inode)?
            || self.tree.is_mounted(old.0, inode)?
            || there.map_or(Ok(false), |there| self.tree.is_mounted(new.0, there))?
        {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        if let Some(there) = there {
            self.may_replace(inode, there)?;
            self.injected_faults.resize(self.tree.node(there)?.size(), 0)?;
        }
        let edits = vec![Edit::new(old.0, old.1, None), Edit::new(new.0, new.1, Some(inode))];
        self.change_names(Change { edits, ends: there.filter(|_| moves_folder), moves_folder }, now)
    }
}

impl Fs for SimDisk {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        let state = self.powered()?;
        let root = state.open(state.tree.walk(vec![ROOT], path.as_os_str().as_bytes(), Walk::Anywhere)?)?;
        state.tree.folder(state.inode_of(&root)?)?;
        Ok(root)
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        let state = self.powered()?;
        let inodes = state.walk_beneath(state.inode_of(root)?, name)?;
        state.open(inodes)
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        let state = self.powered()?;
        state.tree.stat(state.inode_of(file)?)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        let state = self.powered()?;
        let root = state.inode_of(root)?;
        let inodes = state.walk_beneath(root, name)?;
        let folder = state.inode_of(&state.open(inodes.clone())?)?;
        let mut entries = Vec::new();
        for name in state.tree.folder(folder)?.keys() {
            let Ok(inode) = state.follow(inodes.clone(), name, Walk::Beneath) else { continue };
            if entries.len() == entries_max {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            entries.push(Entry { name: name.clone(), stat: state.tree.stat(inode)? });
        }
        Ok(entries)
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.powered()?;
        let inode = state.inode_of(file)?;
        state.note_stall(inode, offset.saturating_add(into.len() as u64));
        let into = state.readable(inode, offset, into)?;
        let bytes = state.tree.node(inode)?.bytes()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn read_uncached(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(file, into, offset)
    }

    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        self.warm(file, &range)
    }

    fn names(&self, folder: &File, entries_max: usize) -> io::Result<Vec<Entry>> {
        let state = self.powered()?;
        let names = state.tree.folder(state.inode_of(folder)?)?;
        if names.len() > entries_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let entry = |(name, inode): (&Vec<u8>, &u64)| {
            Ok(Entry { name: name.clone(), stat: state.tree.stat(*inode)? })
        };
        names.iter().map(entry).collect()
    }

    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat> {
        let state = self.powered()?;
        state.tree.stat(state.child(folder, name)?)
    }

    fn volume_top(&self, folder: &File) -> io::Result<File> {
        let state = self.powered()?;
        Ok(state.opened(state.tree.volume_top(state.inode_of(folder)?)?, false))
    }

    fn is_below(&self, folder: &File, above: &File) -> io::Result<bool> {
        let state = self.powered()?;
        Ok(state.tree.is_below(state.inode_of(folder)?, state.inode_of(above)?))
    }

    fn read_link(&self, folder: &File, name: &[u8]) -> io::Result<Vec<u8>> {
        let state = self.powered()?;
        match &state.tree.node(state.child(folder, name)?)?.body {
            Body::Link(target) => Ok(target.clone()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn make_link(&self, folder: &File, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.call(Call::MakeLink, |state, now| {
            state.make(folder, name, Body::Link(target.to_owned()), now).map(drop)
        })
    }

    fn create(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        self.call(Call::Create, |state, now| {
            let inode = state.make(folder, name, Body::File(Default::default()), now)?;
            Ok(state.opened(inode, true))
        })
    }

    fn open_to_write(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        let state = self.powered()?;
        let inode = state.child(folder, name)?;
        let node = state.tree.node(inode)?;
        match node.kind() {
            FileKind::File if node.forbidden => Err(io::ErrorKind::PermissionDenied.into()),
            FileKind::File => Ok(state.opened(inode, true)),
            FileKind::Folder => Err(io::ErrorKind::IsADirectory.into()),
            FileKind::Other => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.call(Call::Write, |state, now| state.write(state.written(file)?, bytes, offset, now))
    }

    fn is_in_memory(&self, _: &File) -> bool {
        self.lock().is_in_memory
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.call(Call::SetLen, |state, now| state.change_bytes(state.written(file)?, len, now, |_| ()))
    }

    fn set_modified(&self, file: &File, modified: Duration) -> io::Result<()> {
        self.call(Call::SetModified, |state, now| {
            let inode = state.inode_of(file)?;
            let node = state.tree.node_mut(inode)?;
            (node.modified, node.changed) = (modified, now);
            Ok(())
        })
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let synced = self.call(Call::Sync, |state, _| state.sync(state.inode_of(file)?));
        synced.inspect_err(|_| self.lock().lose_unsynced(file))
    }

    fn make_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.call(Call::MakeFolder, |state, now| {
            state.make(folder, name, Body::Folder(Default::default()), now).map(drop)
        })
    }

    fn rename(
        &self,
        from_folder: &File,
        from: &[u8],
        to_folder: &File,
        to: &[u8],
        existing: Existing,
    ) -> io::Result<()> {
        self.call(Call::Rename, |state, now| {
            let old = state.place(from_folder, from)?;
            let new = state.new_place(to_folder, to)?;
            state.rename(old, new, existing, now)
        })
    }

    fn remove_file(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.call(Call::RemoveFile, |state, now| state.take_away(folder, name, false, now))
    }

    fn remove_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        self.call(Call::RemoveFolder, |state, now| state.take_away(folder, name, true, now))
    }

    fn copy(&self, from: &File, to: &File, bytes_max: u64) -> io::Result<u64> {
        self.copy_part(from, to, 0, bytes_max)
    }

    fn copy_part(&self, from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64> {
        self.call(Call::Copy, |state, now| {
            let all = state.tree.node(state.inode_of(from)?)?.bytes()?.clone();
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
            let bytes = &all[start..];
            let bytes = &bytes[..usize::try_from(bytes_max).unwrap_or(usize::MAX).min(bytes.len())];
            let count = state.write(state.written(to)?, bytes, offset, now)?;
            if count == bytes.len() { Ok(count as u64) } else { Err(io::ErrorKind::StorageFull.into()) }
        })
    }

    fn space(&self, file: &File) -> io::Result<Space> {
        let state = self.powered()?;
        state.inode_of(file)?;
        Ok(Space { bytes: state.injected_faults.room(), files: u64::MAX })
    }
}
