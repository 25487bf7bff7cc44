//! Files that are on the disk and not in memory.
//!
//! It takes no time: an engine has its jobs take theirs. What must hold: a file is cold only if a test says
//! so, and from its start to its end; what is read where that may block is in memory from then on.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::SimDisk;
use crate::file::File;

impl SimDisk {
    /// Takes the file at `path` out of memory: reading it has to wait for the disk.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn chill(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.find(path.as_ref())?;
        state.cold.insert(inode, 0);
        Ok(())
    }

    /// How many times bytes of a file were sent that were not in memory: on a real machine, everything else
    /// on the same loop would have waited for the disk too.
    pub fn stalls(&self) -> u64 {
        self.lock().stalls
    }

    pub(super) fn is_in_memory(&self, file: &File, range: &Range<u64>) -> bool {
        let state = self.lock();
        let Ok(inode) = state.inode_of(file) else { return true };
        state.cold.get(&inode).is_none_or(|ends| range.end <= *ends)
    }

    /// As [`crate::Fs::read_ahead`], where that may block.
    pub(super) fn warm(&self, file: &File, range: &Range<u64>) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.inode_of(file)?;
        if let Some(ends) = state.cold.get_mut(&inode).filter(|ends| range.start <= **ends) {
            *ends = range.end.max(*ends);
        }
        Ok(())
    }
}

impl super::State {
    /// Bytes are read where everybody waits along.
    pub(super) fn note_stall(&mut self, inode: u64, end: u64) {
        if self.cold.get(&inode).is_some_and(|ends| end > *ends) {
            self.stalls += 1;
        }
    }
}
