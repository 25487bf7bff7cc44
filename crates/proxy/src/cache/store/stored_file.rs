//! The file of a stored object, and the queue of files to remove.
//!
//! It reads nothing. Invariants: a number names one file only. A file is queued for removal as soon as the
//! index holds no object with it, even while a response is sent from it: a purge removes all queued files,
//! so that no file of a purged resource is found at the next start.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
}

impl StoredFile {
    pub(super) fn new(sequence: u64, content_bytes: u64, file_bytes: u64, removals: &Arc<Removals>) -> Self {
        StoredFile {
            sequence,
            content_bytes,
            file_bytes,
            holds: AtomicUsize::new(0),
            is_queued: AtomicBool::new(false),
            removals: Arc::clone(removals),
        }
    }

    /// Notes that the index holds the file.
    pub(super) fn hold(&self) {
        self.holds.fetch_add(1, Ordering::AcqRel);
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
        file.release();
        assert_eq!(removals.take(), [(Folder::Objects, 7)]);
        drop((file, reader));
        assert!(removals.take().is_empty());
        drop(StoredFile::new(8, 1, 2, &removals));
        assert_eq!(removals.take(), [(Folder::Objects, 8)]);
    }
}
