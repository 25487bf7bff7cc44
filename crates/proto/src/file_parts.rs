//! Splits a file into parts, each of which is in memory before it is sent.
//!
//! This module sends nothing. Invariant: no event loop blocks on a disk to send a file. sendfile would: it
//! reads pages that are not in the page cache, and blocks all connections of the loop. (Pages found in the
//! cache a moment ago are assumed to be there still.)

use std::io;
use std::ops::Range;

use plimsoll_io::{FileRange, Fs, Io};
use plimsoll_store::Error;

use crate::limits::{FILE_CACHED_TIME, FILE_PART_BYTES, FILE_PART_RETRY_TIME, FILE_PART_TIME_MAX};

/// Runs a query of files, and repeats it while the disk is busy: a response that has started is not cut off.
///
/// # Errors
/// As [`Io::files`], after [`FILE_PART_TIME_MAX`] if the disk stays busy.
pub async fn read_patiently<T: Send + 'static>(
    io: &Io,
    question: impl Fn(&dyn Fs) -> io::Result<T> + Clone + Send + 'static,
) -> io::Result<T> {
    let until = io.now() + FILE_PART_TIME_MAX;
    loop {
        match io.files(question.clone()).await {
            Err(error) if is_busy(&error) && io.now() < until => io.sleep(FILE_PART_RETRY_TIME).await,
            read => return read,
        }
    }
}

/// Runs an attempt, and repeats it while the disk or the store is busy, as [`read_patiently`] does.
///
/// # Errors
/// The error of the last attempt.
pub async fn patiently<T>(io: &Io, mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let until = io.now() + FILE_PART_TIME_MAX;
    loop {
        match attempt().await {
            Err(Error::Busy) if io.now() < until => io.sleep(FILE_PART_RETRY_TIME).await,
            result => return result,
        }
    }
}

/// Whether an error may pass: the disk, or the limit of open files, is exhausted.
#[must_use]
pub fn is_busy(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::TimedOut)
}

/// The parts of a file that have not been pushed.
pub struct Parts {
    rest: FileRange,
}

impl Parts {
    /// Begins with the whole range.
    #[must_use]
    pub fn new(whole: FileRange) -> Parts {
        Parts { rest: whole }
    }

    /// Returns the next part, once it is in memory, or `None` after the last.
    ///
    /// # Errors
    /// The error that prevents reading it.
    pub async fn next(&mut self, io: &Io) -> io::Result<Option<FileRange>> {
        let Range { start, end } = self.rest.range;
        if start >= end {
            return Ok(None);
        }
        let part = start..end.min(start + FILE_PART_BYTES);
        if !self.rest.file.in_memory().was(&part, io.now(), FILE_CACHED_TIME) {
            self.read(&part, io).await?;
            self.rest.file.in_memory().found(&part, io.now(), FILE_CACHED_TIME);
        }
        self.rest.range.start = part.end;
        Ok(Some(FileRange { file: self.rest.file.clone(), range: part }))
    }

    /// Reads a part ahead, if it is not in memory.
    async fn read(&self, part: &Range<u64>, io: &Io) -> io::Result<()> {
        let (file, range) = (self.rest.file.clone(), part.clone());
        read_patiently(io, move |fs| fs.read_ahead(&file, range.clone())).await
    }

    /// Whether there is another part.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.rest.range.is_empty()
    }
}
