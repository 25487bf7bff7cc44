//! Reads the contents of objects that are in files, for sending.
//!
//! It sends nothing. Invariants: a part of a stored body is prepared before it is sent: it is in memory,
//! and its blocks have their checksums. The first error of a file drops its object, is counted and is
//! logged.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::{File, FileRange, Io};
use plimsoll_proto::limits::{FILE_CACHED_TIME, FILE_PART_BYTES};
use plimsoll_proto::{is_busy, read_patiently};

use super::ResponseCache;
use crate::cache::store::{Checksums, Content, Object, StoredFile};

/// The content of an object in an open file.
#[derive(Debug)]
pub struct OpenBody {
    file: File,
    /// The offset of the content in the file.
    start: u64,
    /// The file, if its blocks are to be verified.
    verified: Option<Arc<StoredFile>>,
}

impl ResponseCache {
    /// Opens the content of an object that is in a file, and prepares the first part of a range of it.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::InvalidData`] if the file has changed.
    pub async fn open_body(&self, io: &Io, object: &Object, range: &Range<u64>) -> io::Result<OpenBody> {
        let body = match &object.content {
            Content::Memory(_) => return Err(io::ErrorKind::InvalidInput.into()),
            Content::Passed(passed) => OpenBody {
                file: passed.file().clone(),
                start: passed.range_of(&(0..0)).start,
                verified: None,
            },
            Content::File(stored) => self.open_stored(io, stored).await?,
        };
        body.prepare(io, &first_part(range)).await?;
        Ok(body)
    }

    async fn open_stored(&self, io: &Io, stored: &Arc<StoredFile>) -> io::Result<OpenBody> {
        let file = self.open_file(io, stored).await?;
        let opened = file.clone();
        stored.check(&io.files(move |fs| fs.stat(&opened)).await?)?;
        let verified = (self.checksums == Checksums::On).then(|| Arc::clone(stored));
        Ok(OpenBody { file, start: 0, verified })
    }

    /// Opens the file of an object.
    ///
    /// # Errors
    /// The operating system's error.
    pub(in crate::cache) async fn open_file(&self, io: &Io, stored: &StoredFile) -> io::Result<File> {
        let number = stored.sequence();
        if let Some(file) = self.open_files.get(&number) {
            return Ok(file);
        }
        let disk = Arc::clone(&self.disk);
        let file = io.files(move |fs| disk.open_object(fs, number)).await?;
        self.open_files.insert(number, file.clone());
        Ok(file)
    }

    /// Drops an object whose content cannot be read. Does nothing if it is not stored any more: then another
    /// response has replaced it, and its file was removed, or another request has dropped it.
    pub async fn drop_unreadable(self: &Arc<Self>, io: &Io, object: &Arc<Object>, error: &io::Error) {
        if is_busy(error) || !self.index.contains(object) {
            tracing::debug!(%error, "an object of the cache cannot be read just now");
            return;
        }
        let uri = String::from_utf8_lossy(object.head.key.uri());
        tracing::warn!(%uri, %error, "the cache cannot read an object, and drops it");
        self.counts.disk_errors.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.remove(io, object).await {
            tracing::warn!(%error, "the cache cannot remove an object");
        }
    }

    /// Counts and logs that a recording cannot be read back.
    pub fn note_unreadable(&self, error: &io::Error) {
        tracing::warn!(%error, "the cache cannot read a response that it is storing, and drops it");
        self.counts.disk_errors.fetch_add(1, Ordering::Relaxed);
    }
}

impl OpenBody {
    /// Returns a part of the content as a range of the file.
    #[must_use]
    pub fn part(&self, part: &Range<u64>) -> FileRange {
        FileRange { file: self.file.clone(), range: self.start + part.start..self.start + part.end }
    }

    /// Prepares a part of the content for sending: verifies its blocks that were not verified yet, or that
    /// are not in memory, and reads it into memory.
    ///
    /// # Errors
    /// As [`ResponseCache::open_body`].
    pub async fn prepare(&self, io: &Io, part: &Range<u64>) -> io::Result<()> {
        let FileRange { file, range } = self.part(part);
        let unverified = self.verified.as_ref().filter(|stored| !stored.is_verified(part));
        if unverified.is_none() && file.in_memory().was(&range, io.now(), FILE_CACHED_TIME) {
            return Ok(());
        }
        match &self.verified {
            Some(stored) => {
                // Blocks that the disk has to be read for are verified again: it may return others by now.
                let found =
                    unverified.is_none().then(|| io.try_files(|fs| fs.read_ahead(&file, range.clone())));
                match found.flatten() {
                    Some(found) => found?,
                    None => {
                        let (stored, file, part) = (Arc::clone(stored), file.clone(), part.clone());
                        read_patiently(io, move |fs| stored.verify(fs, &file, &part)).await?;
                    }
                }
            }
            None => {
                let (file, range) = (file.clone(), range.clone());
                read_patiently(io, move |fs| fs.read_ahead(&file, range.clone())).await?;
            }
        }
        file.in_memory().found(&range, io.now(), FILE_CACHED_TIME);
        Ok(())
    }
}

/// Returns the part of a range that is prepared first.
#[must_use]
pub fn first_part(range: &Range<u64>) -> Range<u64> {
    range.start..range.end.min(range.start.saturating_add(FILE_PART_BYTES))
}
