//! Replaced files whose blocks are freed after the response of the work that replaced them. Freeing a large
//! file takes long, and the client need not wait for it.
//!
//! Invariant: no file is kept open on a file system where that would be visible.

use std::cell::RefCell;

use plimsoll_io::File;
use rustix::thread::sched_yield;

use super::reading::{BENEATH, READ, TMPFS, open_beneath, system_of};

thread_local! {
    /// The files that are kept open until then. `None` except on the threads of a pool: where a job runs in
    /// place, its caller would wait for the freeing anyway.
    static LEFT: RefCell<Option<Vec<File>>> = const { RefCell::new(None) };
}

/// While this exists, files that its thread replaces are freed by [`free_now`].
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

/// Keeps the named file open until [`free_now`], on file systems where replacing an open file is atomic.
/// Others (such as NFS) first rename the open file, and its name is missing in between.
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

/// Frees the files that this thread has kept open.
pub(crate) fn free_now() {
    LEFT.with_borrow_mut(|left| {
        if let Some(left) = left
            && !left.is_empty()
        {
            // The task that received the response may be waiting for this very core.
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
