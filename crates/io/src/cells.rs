//! Numbers that many count in: threads of one process, or, on a page that they share, processes.
//!
//! They do not know what they count, nor how a page is had (the engine knows). What must hold: counting takes
//! no lock and no system call, wherever they are.

use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// So many numbers, all zero at first.
#[derive(Debug)]
pub enum Cells {
    /// Of this process.
    Own(Box<[AtomicU64]>),
    /// On a page that other processes have too.
    Page(&'static [AtomicU64]),
}

impl Cells {
    /// `count` numbers of this process.
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
