//! Counters that are shared by the threads of one process or, on a shared page, by processes.
//!
//! This module does not define what is counted, nor how a page is shared (the engine does). Invariant:
//! counting takes no lock and makes no system call.

use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// An array of counters, all zero at first.
#[derive(Debug)]
pub enum Cells {
    /// In the memory of this process.
    Own(Box<[AtomicU64]>),
    /// On a page that is shared with other processes.
    Page(&'static [AtomicU64]),
}

impl Cells {
    /// Creates `count` counters in the memory of this process.
    pub fn own(count: usize) -> Cells {
        Cells::Own((0..count).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Deref for Cells {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            Cells::Own(cells) => cells,
            Cells::Page(cells) => cells,
        }
    }
}
