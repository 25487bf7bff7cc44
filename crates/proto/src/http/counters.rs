//! What a server has done so far, counted by all its threads.
//!
//! It is not a metrics system (that comes with its page). What must hold: counting takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_wire::http::status::Status;

use super::limits::MADE_BYTES_MAX;

/// Counts since the start of the server.
#[derive(Debug, Default)]
pub struct Counters {
    by_class: [AtomicU64; 6],
    sent_bytes: AtomicU64,
    dropped_log_lines: AtomicU64,
    made_bytes: AtomicU64,
}

/// Bytes of a made body, counted while they are in memory.
pub(crate) struct Made<'a> {
    counters: &'a Counters,
    bytes: u64,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.counters.made_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Counters {
    /// Answers whose status begins with `class` (2 for 2xx).
    pub fn answers(&self, class: usize) -> u64 {
        self.by_class.get(class).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Bytes of bodies that were given to the network.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Log lines that were dropped because whoever writes them could not follow.
    pub fn dropped_log_lines(&self) -> u64 {
        self.dropped_log_lines.load(Ordering::Relaxed)
    }

    /// Counts lines that the log's sink did not take.
    pub fn drop_log_lines(&self, lines: u64) {
        self.dropped_log_lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts a made body of `bytes`; none if that is more than a server keeps in memory.
    pub(crate) fn made(&self, bytes: u64) -> Option<Made<'_>> {
        let made = Made { counters: self, bytes };
        // Most answers have none, and all loops share this count.
        let before = if bytes == 0 { 0 } else { self.made_bytes.fetch_add(bytes, Ordering::Relaxed) };
        (before + bytes <= MADE_BYTES_MAX).then_some(made)
    }

    pub(super) fn answered(&self, status: Status, body_bytes: u64) {
        if let Some(count) = self.by_class.get(usize::from(status.code() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sent_bytes.fetch_add(body_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_bodies_are_bounded_and_counted_only_while_they_live() {
        let counters = Counters::default();
        let most = counters.made(MADE_BYTES_MAX).expect("as much as may be");
        assert!(counters.made(1).is_none());
        drop(most);
        assert!(counters.made(1).is_some());
        assert_eq!(counters.made_bytes.load(Ordering::Relaxed), 0);
    }
}
