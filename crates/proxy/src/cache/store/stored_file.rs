//! The file of a stored object, and the queue of files to remove.
//!
//! It opens nothing. Invariants: a number names one file only. A file is queued for removal as soon as the
//! index holds no object with it, even while a response is sent from it: a purge removes all queued files,
//! so that no file of a purged resource is found at the next start.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::{File, Fs, Stat};

use super::checksums::Verified;

/// The folder of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Files that are being written.
    Pending,
    /// Complete objects.
    Objects,
}

/// Files that no index refers to any more. It is bounded by the number of files: each is queued once.
#[derive(Debug, Default)]
pub(super) struct Removals(Mutex<Vec<(Folder, u64)>>);

impl Removals {
    pub(super) fn add(&self, folder: Folder, sequence: u64) {
        self.lock().push((folder, sequence));
    }

    pub(super) fn take(&self) -> Vec<(Folder, u64)> {
        std::mem::take(&mut *self.lock())
    }

    /// Whether files of complete objects are queued.
    pub(super) fn has_objects(&self) -> bool {
        self.lock().iter().any(|(folder, _)| *folder == Folder::Objects)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Folder, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file of an object. It is queued for removal when the index releases it, or when it is dropped.
#[derive(Debug)]
pub struct StoredFile {
    sequence: u64,
    content_bytes: u64,
    file_bytes: u64,
    /// The number of times that the index holds it. An object and its successor with a newer head share it.
    holds: AtomicUsize,
    is_queued: AtomicBool,
    removals: Arc<Removals>,
    verified: Verified,
}

impl StoredFile {
    pub(super) fn new(sequence: u64, content_bytes: u64, file_bytes: u64, removals: &Arc<Removals>) -> Self {
        StoredFile {
            sequence,
            content_bytes,
            file_bytes,
            verified: Verified::default(),
            holds: AtomicUsize::new(0),
            is_queued: AtomicBool::new(false),
            removals: Arc::clone(removals),
        }
    }

    /// Notes that the index holds the file.
    pub(super) fn hold(&self) {
        self.holds.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the index holds the file once more, if it still does. Otherwise the file may be removed.
    #[must_use]
    pub(super) fn hold_again(&self) -> bool {
        let more = |holds: usize| (holds > 0).then_some(holds + 1);
        self.holds.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Notes that the index holds the file once less. The last time queues it.
    pub(super) fn release(&self) {
        if self.holds.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.queue();
        }
    }

    /// Queues it for removal, once.
    pub(super) fn queue(&self) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.removals.add(Folder::Objects, self.sequence);
        }
    }

    /// Returns the number by which it is named. A later object has a larger one.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the length of the content in bytes; it starts at offset 0.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Checks the metadata of the open file. If it has changed, its blocks are to be verified again.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file has another length.
    pub fn check(&self, stat: &Stat) -> io::Result<()> {
        if stat.size != self.file_bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has another length"));
        }
        self.verified.note(stat);
        Ok(())
    }

    /// Whether all blocks with a range of the content are verified.
    #[must_use]
    pub fn is_verified(&self, part: &Range<u64>) -> bool {
        self.verified.contains(part)
    }

    /// Reads the blocks with a range of the content, and compares them with their checksums.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::InvalidData`] if the content has changed.
    pub fn verify(&self, fs: &dyn Fs, file: &File, part: &Range<u64>) -> io::Result<()> {
        self.verified.verify(fs, file, self.content_bytes, part)
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        self.queue();
    }
}

/// Returns the name of a file.
pub(super) fn name_of(sequence: u64) -> [u8; 16] {
    let mut name = [0; 16];
    for (at, byte) in name.iter_mut().enumerate() {
        let digit = (sequence >> (60 - 4 * at)) & 0xf;
        *byte = b"0123456789abcdef"[digit as usize];
    }
    name
}

/// Parses a name that [`name_of`] returned.
pub(super) fn sequence_of(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?;
    let sequence = u64::from_str_radix(text, 16).ok()?;
    (name_of(sequence) == *name).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for sequence in [0, 1, 0xabc, u64::MAX] {
            assert_eq!(sequence_of(&name_of(sequence)), Some(sequence));
        }
        for name in [&b"1"[..], b"+000000000000001", b"000000000000000A", b"x", b""] {
            assert_eq!(sequence_of(name), None);
        }
    }

    #[test]
    fn a_file_is_queued_once_when_the_index_releases_it_or_its_last_user_is_gone() {
        let removals = Arc::<Removals>::default();
        let file = Arc::new(StoredFile::new(7, 1, 2, &removals));
        file.hold();
        file.hold();
        file.release();
        assert!(!removals.has_objects());
        let reader = Arc::clone(&file);
        assert!(file.hold_again());
        file.release();
        file.release();
        assert!(!file.hold_again(), "it may be removed");
        assert_eq!(removals.take(), [(Folder::Objects, 7)]);
        drop((file, reader));
        assert!(removals.take().is_empty());
        drop(StoredFile::new(8, 1, 2, &removals));
        assert_eq!(removals.take(), [(Folder::Objects, 8)]);
    }
}
