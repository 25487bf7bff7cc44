//! The progress of an upload, whichever store it goes to.
//!
//! It has no bytes. Invariant: an upload with another length than the announced one is never committed.

use std::time::Duration;

use super::commit::CancelHandle;
use crate::error::{Error, Result};
use crate::path::Path;

/// The progress of an upload.
pub(crate) struct Progress {
    /// The path that it is to have.
    pub(crate) to: Path,
    /// The announced length in bytes; none if it was not announced.
    pub(crate) announced: Option<u64>,
    /// The offset at which it began.
    pub(crate) start_offset: u64,
    /// Bytes received so far, including those that it began with.
    pub(crate) bytes: u64,
    /// The modification time that the file gets, since 1970.
    pub(crate) modified: Option<Duration>,
    /// The name that it gets if that of its path is taken.
    pub(crate) spare_name: Option<Vec<u8>>,
    /// None until a handle was requested.
    pub(crate) cancel: Option<CancelHandle>,
}

impl Progress {
    pub(crate) fn new(to: Path, announced: Option<u64>, start_offset: u64) -> Progress {
        let (modified, spare_name, cancel) = (None, None, None);
        Progress { to, announced, start_offset, bytes: start_offset, modified, spare_name, cancel }
    }

    /// Counts received bytes.
    ///
    /// # Errors
    /// [`Error::Length`] if they are more than were announced.
    pub(crate) fn count(&mut self, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        if self.announced.is_some_and(|most| self.bytes > most) { Err(Error::Length) } else { Ok(()) }
    }

    /// Checks that all announced bytes were received.
    pub(crate) fn check_complete(&self) -> Result<()> {
        if self.announced.is_some_and(|most| self.bytes != most) { Err(Error::Length) } else { Ok(()) }
    }
}
