//! The memory of generated bodies: listings, and other responses that are not files.
//!
//! Invariants: the large ones of a process take at most [`GENERATED_BYTES_MAX`] together. The bytes of a
//! body count until they have left memory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{GENERATED_BYTES_MAX, GENERATED_SMALL_BYTES};

/// The count of the bytes of all generated bodies in memory.
///
/// It belongs to one process: if the count were shared, a killed process would never give its bytes back.
#[derive(Debug, Default)]
pub struct GeneratedBodies {
    bytes: AtomicU64,
}

/// The bytes of one generated body, counted until this is dropped.
pub(crate) struct Reservation<'a> {
    bodies: &'a GeneratedBodies,
    bytes: u64,
}

impl Reservation<'_> {
    /// Counts a body that has grown to `bytes`; false if the limit is reached.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let before = self.bodies.bytes.fetch_add(more, Ordering::Relaxed);
        self.bytes = bytes;
        bytes <= GENERATED_SMALL_BYTES || before + more <= GENERATED_BYTES_MAX
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl GeneratedBodies {
    /// Counts a body of `bytes`; `None` if the limit is reached. Small bodies, such as metrics and problem
    /// documents, are never refused because of large ones.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<Reservation<'_>> {
        let reservation = Reservation { bodies: self, bytes };
        // Most responses have none, and all threads share this count.
        let before = if bytes == 0 { 0 } else { self.bytes.fetch_add(bytes, Ordering::Relaxed) };
        (bytes <= GENERATED_SMALL_BYTES || before + bytes <= GENERATED_BYTES_MAX).then_some(reservation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_bodies_are_bounded_and_counted_until_they_are_dropped() {
        let bodies = GeneratedBodies::default();
        let mut growing = bodies.reserve(0).expect("no bytes");
        assert!(growing.grow_to(GENERATED_BYTES_MAX) && !growing.grow_to(GENERATED_BYTES_MAX + 1));
        drop(growing);
        let largest = bodies.reserve(GENERATED_BYTES_MAX).expect("nothing is in memory yet");
        assert!(bodies.reserve(GENERATED_SMALL_BYTES + 1).is_none());
        assert!(bodies.reserve(GENERATED_SMALL_BYTES).is_some());
        drop(largest);
        assert!(bodies.reserve(GENERATED_SMALL_BYTES + 1).is_some());
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }
}
