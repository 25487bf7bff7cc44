//! Files that are on the disk and not in memory.
//!
//! This costs no virtual time: an engine delays its jobs. Invariants: a file is cold only if a test
//! makes it so. Reading it where that may block extends the prefix that is in memory, unless the range
//! begins behind that prefix.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::SimDisk;
use crate::file::File;

impl SimDisk {
    /// Evicts the file at `path` from memory: reading it has to wait for the disk.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn chill(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.find(path.as_ref())?;
        state.cold.insert(inode, 0);
        Ok(())
    }

    /// Returns the number of sends of file bytes that were not in memory. On a real machine, all other
    /// tasks of the same loop would have waited for the disk too.
    pub fn stalls(&self) -> u64 {
        self.lock().stalls
    }

    pub(super) fn is_in_memory(&self, file: &File, range: &Range<u64>) -> bool {
        let state = self.lock();
        let Ok(inode) = state.inode_of(file) else { return true };
        state.cold.get(&inode).is_none_or(|ends| range.end <= *ends)
    }

    /// Reads a range into memory, as [`crate::Fs::read_ahead`] where that may block.
    pub(super) fn warm(&self, file: &File, range: &Range<u64>) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.inode_of(file)?;
        if state.damaged.get(&inode).is_some_and(|damaged| *damaged < range.end) {
            return Err(io::Error::other("a bad block"));
        }
        if let Some(ends) = state.cold.get_mut(&inode).filter(|ends| range.start <= **ends) {
            *ends = range.end.max(*ends);
        }
        Ok(())
    }
}

impl super::State {
    /// Counts a read that would block all other tasks of the loop.
    pub(super) fn note_stall(&mut self, inode: u64, end: u64) {
        if self.cold.get(&inode).is_some_and(|ends| end > *ends) {
            self.stalls += 1;
        }
    }
}
