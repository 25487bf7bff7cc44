//! A file that the origin has passed as an open descriptor, as the content of an object.
//!
//! It reads nothing. Invariants: the descriptor stays open as long as the object. The file is the origin's,
//! which may change or remove it: its bytes are those of the object only while its metadata are the same as
//! when it was passed.

use std::ops::Range;
use std::time::SystemTime;

use plimsoll_io::{File, FileRange, Fs, Io, Stat};

use crate::cache::limits::FILE_TIME_TICK;

/// A range of an open file, and the file's metadata when it was passed.
#[derive(Debug)]
pub struct PassedFile {
    part: FileRange,
    stat: Stat,
}

impl PassedFile {
    /// Returns the passed range, if a later change of it can be noticed. That takes a file which still has a
    /// name, and which has not changed since the request was sent: the head of the response, which the origin
    /// wrote after that, then describes the file of these metadata.
    pub async fn new(io: &Io, part: FileRange, request_sent: SystemTime) -> Option<PassedFile> {
        let stat = stat(io, &part.file).await.ok()?;
        let changed = SystemTime::UNIX_EPOCH + stat.changed;
        let is_settled = changed + FILE_TIME_TICK <= request_sent;
        let is_whole = part.range.start <= part.range.end && part.range.end <= stat.size;
        (stat.links > 0 && is_settled && is_whole).then(|| PassedFile { part, stat })
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.part.range.end - self.part.range.start
    }

    /// Returns the open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.part.file
    }

    /// Returns the range in the file of a part of the content.
    #[must_use]
    pub fn range_of(&self, part: &Range<u64>) -> Range<u64> {
        let start = self.part.range.start;
        start + part.start..start + part.end
    }

    /// Whether the file has changed since it was passed. This is one fstat(2).
    pub async fn has_changed(&self, io: &Io) -> bool {
        !matches!(stat(io, self.file()).await, Ok(stat) if stat == self.stat)
    }

    /// As [`PassedFile::has_changed`], on a thread that may block.
    #[must_use]
    pub fn has_changed_on(&self, fs: &dyn Fs) -> bool {
        !matches!(fs.stat(self.file()), Ok(stat) if stat == self.stat)
    }
}

async fn stat(io: &Io, file: &File) -> std::io::Result<Stat> {
    let file = file.clone();
    io.files(move |fs| fs.stat(&file)).await
}
