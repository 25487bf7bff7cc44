//! A file that is sent as it is, part by part, each of which is in memory before it is sent.
//!
//! It sends nothing. What must hold: no loop waits for a disk to send a file. sendfile would: it reads what
//! is not in memory, and everybody on the same loop waits along. (What was in memory a moment ago is taken
//! to be there.)

use std::io;
use std::ops::Range;
use std::time::Duration;

use plimsoll_io::{FileRange, Io};

/// Bytes of a part. What is in memory costs a look for each 256 KiB of it and a wake for each part, beside
/// the hundred microseconds and more that it takes to send it.
pub(crate) const PART_BYTES: u64 = 1024 * 1024;
/// Unsent bytes below which the next part is wanted, so that the connection does not run dry.
pub(crate) const AHEAD_BYTES: u64 = 256 * 1024;

/// How long what was found in memory is taken to be there still. What is sent again and again stays there,
/// and to ask at each request costs two calls and the first look at the file's bytes: 9 % of the server's
/// time at 100 KB.
const IN_MEMORY_TIME: Duration = Duration::from_secs(1);

/// How long a part is waited for, however far behind the disk is.
const PART_TIME_MAX: Duration = Duration::from_secs(600);
/// How long until it is asked for again where too much is asked of the disk already.
const PART_PAUSE: Duration = Duration::from_millis(200);

fn is_behind(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::TimedOut)
}

/// What of a file has not been pushed.
pub(crate) struct Parts {
    rest: FileRange,
}

impl Parts {
    pub(crate) fn new(whole: FileRange) -> Parts {
        Parts { rest: whole }
    }

    /// The next part, once it is in memory; none after the last.
    ///
    /// # Errors
    /// What keeps it from being read.
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

    /// Has a part read, if it is not in memory.
    async fn read(&self, part: &Range<u64>, io: &Io) -> io::Result<()> {
        // A disk that is far behind is waited for: what was begun is not cut off in its middle.
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
