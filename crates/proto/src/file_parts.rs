//! Splits a file into parts, each of which is in memory before it is sent.
//!
//! This module sends nothing. Invariant: no event loop blocks on a disk to send a file. sendfile would: it
//! reads pages that are not in the page cache, and blocks all connections of the loop. (Pages found in the
//! cache a moment ago are assumed to be there still.)

use std::io;
use std::ops::Range;
use std::time::Duration;

use plimsoll_io::{FileRange, Io};

/// Bytes of a part. A part in memory costs one check per 256 KiB and one wakeup. Sending it takes a
/// hundred microseconds or more.
pub(crate) const PART_BYTES: u64 = 1024 * 1024;
/// Unsent bytes below which the next part is prepared, so that the connection does not run dry.
pub(crate) const AHEAD_BYTES: u64 = 256 * 1024;

/// How long a part is assumed to stay in memory after a check. Files that are sent repeatedly stay in the
/// page cache. A check at each request costs two system calls and the first access to the file's bytes: 9
/// % of the server's time at 100 KB.
const IN_MEMORY_TIME: Duration = Duration::from_secs(1);

/// How long to wait for a part, however overloaded the disk is.
const PART_TIME_MAX: Duration = Duration::from_secs(600);
/// How long to wait before the next attempt if the disk's queue is full.
const PART_PAUSE: Duration = Duration::from_millis(200);

fn is_behind(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::TimedOut)
}

/// The parts of a file that have not been pushed.
pub(crate) struct Parts {
    rest: FileRange,
}

impl Parts {
    pub(crate) fn new(whole: FileRange) -> Parts {
        Parts { rest: whole }
    }

    /// Returns the next part, once it is in memory, or `None` after the last.
    ///
    /// # Errors
    /// The error that prevents reading it.
    pub(crate) async fn next(&mut self, io: &Io) -> io::Result<Option<FileRange>> {
        let Range { start, end } = self.rest.range;
        if start >= end {
            return Ok(None);
        }
        let part = start..end.min(start + PART_BYTES);
        if !self.rest.file.in_memory().was(&part, io.now(), IN_MEMORY_TIME) {
            self.read(&part, io).await?;
            self.rest.file.in_memory().found(&part, io.now(), IN_MEMORY_TIME);
        }
        self.rest.range.start = part.end;
        Ok(Some(FileRange { file: self.rest.file.clone(), range: part }))
    }

    /// Reads a part ahead, if it is not in memory.
    async fn read(&self, part: &Range<u64>, io: &Io) -> io::Result<()> {
        // A busy disk is retried: a response that has started is not cut off.
        let until = io.now() + PART_TIME_MAX;
        loop {
            let (file, range) = (self.rest.file.clone(), part.clone());
            match io.files(move |fs| fs.read_ahead(&file, range.clone())).await {
                Err(error) if is_behind(&error) && io.now() < until => io.sleep(PART_PAUSE).await,
                read => return read,
            }
        }
    }

    /// Whether there is another part.
    pub(crate) fn has_more(&self) -> bool {
        !self.rest.range.is_empty()
    }
}
