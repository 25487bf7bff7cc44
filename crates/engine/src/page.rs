//! Memory that a process shares with those that come of it: numbers, and nothing else.
//!
//! It is not a channel: whoever waits for something waits elsewhere. What must hold: it is there before the
//! first fork, and to the end of every process that has it.

use std::io;
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicU64;

use plimsoll_io::Cells;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// So many cells for each of `counts`, all on a page that processes share which are forked from now on.
///
/// # Errors
/// What the system says when it has no memory.
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
    // SAFETY: no address is asked for, so that nothing which is there is replaced.
    let at =
        unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
    // SAFETY: the mapping has room for `count` of them, begins with a page and so is aligned, and is zero,
    // which is an `AtomicU64`. Nobody unmaps it: it lives as long as the process. Processes that share it
    // change it through the same type only, which is what atomics are for.
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
