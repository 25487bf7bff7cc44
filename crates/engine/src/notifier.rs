//! Ends the park of one thread from another, by an eventfd.
//!
//! It is not a queue: what there is to do is found elsewhere. What must hold: a notice that comes between
//! the last look and the park is not lost; a thread that is awake costs its notifier no system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use plimsoll_io::Notify;
use rustix::event::{EventfdFlags, eventfd};

/// One thread's bell.
pub(crate) struct Notifier {
    fd: OwnedFd,
    parked: AtomicBool,
}

impl Notifier {
    pub(crate) fn new() -> io::Result<Arc<Notifier>> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Notifier { fd, parked: AtomicBool::new(false) }))
    }

    /// Called before the last look around that comes before a park.
    pub(crate) fn about_to_park(&self) {
        self.parked.store(true, Ordering::SeqCst);
        // Pairs with the fence in `notify`: either this thread sees what the notifier did before it, or the
        // notifier sees that this thread parks.
        fence(Ordering::SeqCst);
    }

    /// Called after a park: takes the notices that have come.
    pub(crate) fn unparked(&self) {
        if !self.parked.swap(false, Ordering::SeqCst) {
            let mut count = [0; 8];
            // Nothing there is no error: the notice may have ended a park that did not happen.
            let _ = rustix::io::read(&self.fd, &mut count);
        }
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Notify for Notifier {
    fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.parked.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: one notice at most is written per park.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}
