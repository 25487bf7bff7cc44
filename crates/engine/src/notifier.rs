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

    /// Called after a park.
    pub(crate) fn unparked(&self) {
        self.parked.store(false, Ordering::SeqCst);
    }

    /// Takes the notices that have come, for a park that reports the bell as long as there are any. A notice
    /// may be written after its park has ended, so it is taken whenever the bell is seen, and not by a flag.
    pub(crate) fn take(&self) {
        let mut count = [0; 8];
        // Nothing there is no error.
        let _ = rustix::io::read(&self.fd, &mut count);
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
            // The counter cannot overflow: one notice at most is written per park. An edge-triggered park
            // needs nobody to take it.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}
