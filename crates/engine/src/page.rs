//! Anonymous memory that a process shares with the processes forked from it: counters, and nothing else.
//!
//! It is not a channel, and nothing waits on it. Invariant: it is mapped before the first fork, and stays
//! mapped until every process that shares it has ended.

use std::io;
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicU64;

use plimsoll_io::Cells;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Returns as many cells as each of `counts` says, all in one mapping that is shared with processes forked
/// later.
///
/// # Errors
/// The error of mmap(2), such as a lack of memory.
pub fn shared_cells<const N: usize>(counts: [usize; N]) -> io::Result<[Cells; N]> {
    let mut left = map(counts.iter().sum())?;
    Ok(counts.map(|count| {
        let (cells, others) = left.split_at(count);
        left = others;
        Cells::Page(cells)
    }))
}

fn map(count: usize) -> io::Result<&'static [AtomicU64]> {
    let bytes = (count * size_of::<AtomicU64>()).max(1);
    // SAFETY: no address is requested, so the mapping replaces no other.
    let at =
        unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
    // SAFETY: the mapping has room for `count` of them. It starts at a page boundary and so is aligned. It
    // is zero, which is a valid `AtomicU64`. It is never unmapped: it lives as long as the process. The
    // processes that share it change it only through the same type, which is atomic.
    Ok(unsafe { from_raw_parts(at.cast::<AtomicU64>(), count) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn cells_are_zero_apart_from_each_other_and_as_many_as_were_asked_for() {
        let [one, none, two] = shared_cells([3, 0, 2_000]).unwrap();
        assert_eq!((one.len(), none.len(), two.len()), (3, 0, 2_000));
        one.iter().for_each(|cell| cell.store(7, Ordering::Relaxed));
        assert!(two.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
    }
}
