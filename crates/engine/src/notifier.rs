//! Wakes a waiting thread from another thread, by an eventfd.
//!
//! It is not a queue: it carries no work. Invariants: a notification between the last check and the wait is
//! not lost. Notifying a thread that is awake costs no system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use plimsoll_io::Notify;
use rustix::event::{EventfdFlags, eventfd};

/// The eventfd and waiting flag of one thread.
pub(crate) struct Notifier {
    fd: OwnedFd,
    is_waiting: AtomicBool,
}

impl Notifier {
    pub(crate) fn new() -> io::Result<Arc<Notifier>> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Notifier { fd, is_waiting: AtomicBool::new(false) }))
    }

    /// Called before the last check for work that precedes a wait in the kernel.
    pub(crate) fn about_to_wait(&self) {
        self.is_waiting.store(true, Ordering::SeqCst);
        // Pairs with the fence in `notify`: either this thread sees what the notifier did before it, or the
        // notifier sees that this thread waits.
        fence(Ordering::SeqCst);
    }

    /// Called after such a wait.
    pub(crate) fn stopped_waiting(&self) {
        self.is_waiting.store(false, Ordering::SeqCst);
    }

    /// Consumes pending notifications: a level-triggered wait reports the eventfd as long as there are any.
    /// A notification may be written after its wait has ended, so the eventfd is read whenever it is
    /// reported, not when a flag says so.
    pub(crate) fn take(&self) {
        let mut count = [0; 8];
        // An empty eventfd is no error.
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
        if self.is_waiting.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: at most one notification is written per wait. An edge-triggered
            // wait does not need to consume it.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}
