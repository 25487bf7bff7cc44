//! Counters of a server's responses, shared by all its threads or processes.
//!
//! It is not a metrics system. Invariants: counting takes no lock. Bytes in the memory of a killed process do
//! not stay counted.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_io::Cells;
use plimsoll_wire::http::status::Status;

use super::limits::{MADE_BYTES_MAX, MADE_SMALL_BYTES};

/// The cells of the counters. Those below count responses by the first digit of their status.
const CLASSES: usize = 6;
const SENT_BYTES: usize = CLASSES;
const DROPPED_LOG_LINES: usize = CLASSES + 1;

/// Counts since the start of the server.
#[derive(Debug)]
pub struct Counters {
    cells: Cells,
    /// Of this process, whoever shares the cells: it gives them back when it ends, in whatever way.
    made_bytes: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::counted_in(Cells::own(Counters::CELLS))
    }
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
    /// The number of cells.
    pub const CELLS: usize = CLASSES + 2;

    /// Creates counters in `cells`, of which there are [`Counters::CELLS`].
    pub fn counted_in(cells: Cells) -> Counters {
        Counters { cells, made_bytes: AtomicU64::new(0) }
    }

    /// Returns the number of responses whose status begins with `class` (2 for 2xx).
    pub fn answers(&self, class: usize) -> u64 {
        if class < CLASSES { self.read(class) } else { 0 }
    }

    fn read(&self, cell: usize) -> u64 {
        self.cells.get(cell).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn add(&self, cell: usize, more: u64) {
        if let Some(count) = self.cells.get(cell) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Returns the bytes of bodies that the kernel accepted.
    pub fn sent_bytes(&self) -> u64 {
        self.read(SENT_BYTES)
    }

    /// Returns the number of log lines that were dropped because the writer was too slow.
    pub fn dropped_log_lines(&self) -> u64 {
        self.read(DROPPED_LOG_LINES)
    }

    /// Counts lines that the log's sink did not take.
    pub fn drop_log_lines(&self, lines: u64) {
        self.add(DROPPED_LOG_LINES, lines);
    }

    /// Counts a made body of `bytes`; none if that is more than a process of a server keeps in memory. Small
    /// bodies, metrics and problems among them, are never refused for large ones.
    pub(crate) fn made(&self, bytes: u64) -> Option<Made<'_>> {
        let made = Made { counters: self, bytes };
        // Most answers have none, and all loops share this count.
        let before = if bytes == 0 { 0 } else { self.made_bytes.fetch_add(bytes, Ordering::Relaxed) };
        (bytes <= MADE_SMALL_BYTES || before + bytes <= MADE_BYTES_MAX).then_some(made)
    }

    pub(super) fn answered(&self, status: Status, body_bytes: u64) {
        let class = usize::from(status.code() / 100);
        if class < CLASSES {
            self.add(class, 1);
        }
        self.add(SENT_BYTES, body_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_bodies_are_bounded_and_counted_only_while_they_live() {
        let counters = Counters::default();
        let most = counters.made(MADE_BYTES_MAX).expect("as much as may be");
        assert!(counters.made(MADE_SMALL_BYTES + 1).is_none());
        assert!(counters.made(MADE_SMALL_BYTES).is_some());
        drop(most);
        assert!(counters.made(MADE_SMALL_BYTES + 1).is_some());
        assert_eq!(counters.made_bytes.load(Ordering::Relaxed), 0);
    }
}
