//! Counters of a server's responses, shared by all its threads or processes.
//!
//! It is not a metrics system. Invariants: counting takes no lock. Bytes in the memory of a killed process do
//! not stay counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::Cells;
use plimsoll_wire::http::status::Status;

use crate::GeneratedBodies;

/// The cells of the counters. Those below count responses by the first digit of their status.
const CLASSES: usize = 6;
const SENT_BYTES: usize = CLASSES;
const DROPPED_LOG_LINES: usize = CLASSES + 1;

/// Counts since the start of the server.
#[derive(Debug)]
pub struct Counters {
    cells: Cells,
    /// Of this process, even if processes share the cells.
    generated: Arc<GeneratedBodies>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::in_cells(Cells::own(Counters::CELLS))
    }
}

impl Counters {
    /// The number of cells.
    pub const CELLS: usize = CLASSES + 2;

    /// Creates counters in `cells`, of which there are [`Counters::CELLS`].
    pub fn in_cells(cells: Cells) -> Counters {
        Counters { cells, generated: Arc::default() }
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

    /// Returns the count of generated bodies in this process's memory.
    pub fn generated(&self) -> &Arc<GeneratedBodies> {
        &self.generated
    }

    /// Counts a response.
    pub fn answered(&self, status: Status, body_bytes: u64) {
        let class = usize::from(status.code() / 100);
        if class < CLASSES {
            self.add(class, 1);
        }
        self.add(SENT_BYTES, body_bytes);
    }
}
