//! Files that are replaced, and freed when the work that replaced them is answered: to free a large one takes
//! long, and whoever waits for the answer need not wait for that.
//!
//! What must hold: nothing is held open where that would be seen.

use std::cell::RefCell;

use plimsoll_io::File;
use rustix::thread::sched_yield;

use super::reading::{BENEATH, READ, TMPFS, open_beneath, system_of};

thread_local! {
    /// What is open until then; none on threads that answer nobody else.
    static LEFT: RefCell<Option<Vec<File>>> = const { RefCell::new(None) };
}

/// Of this thread, while it is there, what is to be freed later is freed by [`free_now`].
pub(crate) struct FreesLater(());

impl FreesLater {
    pub(crate) fn begin() -> FreesLater {
        LEFT.set(Some(Vec::new()));
        FreesLater(())
    }
}

impl Drop for FreesLater {
    fn drop(&mut self) {
        LEFT.set(None);
    }
}

/// Holds what has a name until [`free_now`], on file systems that replace what is open as if it were not:
/// others give it another name first, and its own stands for nothing in between.
pub(super) fn later(folder: &File, name: &[u8]) {
    LEFT.with_borrow_mut(|left| {
        if let Some(left) = left
            && is_of_this_machine(folder)
            && let Ok(file) = open_beneath(folder, name, READ, BENEATH)
        {
            left.push(file);
        }
    });
}

/// Frees what this thread has left to be freed.
pub(crate) fn free_now() {
    LEFT.with_borrow_mut(|left| {
        if let Some(left) = left
            && !left.is_empty()
        {
            // Who was answered may be waiting for this very core.
            sched_yield();
            left.clear();
        }
    });
}

fn is_of_this_machine(file: &File) -> bool {
    // ext2 to ext4, XFS, Btrfs, F2FS, tmpfs.
    const KNOWN: [i128; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, TMPFS];
    system_of(file).is_some_and(|system| KNOWN.contains(&system))
}
