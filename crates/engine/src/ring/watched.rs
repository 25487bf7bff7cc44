//! A watch of a descriptor that a transport of another crate owns, for the ring's engine.
//!
//! It moves no data: the kernel reports each event of a multishot poll once. Invariant: the operation keeps
//! the descriptor open until the kernel no longer uses it, even if the watch was dropped.

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use io_uring::types::Fd;
use plimsoll_io::{Event, Watch, Watcher};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::operations::Key;
use super::ring::Ring;

/// A watched descriptor.
pub(super) struct Watched {
    fd: Arc<OwnedFd>,
    event: Event,
    watcher: Weak<dyn Watcher>,
    /// The operation in progress.
    key: Cell<Option<Key>>,
    is_dropped: Cell<bool>,
}

/// The watch, as its owner has it.
struct Owned {
    ring: Rc<Ring>,
    watched: Rc<Watched>,
}

impl Watch for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        self.watched.is_dropped.set(true);
        if let Some(key) = self.watched.key.get() {
            self.ring.cancel(key);
        }
    }
}

/// Calls `watcher` at each `event` of `fd`.
pub(crate) fn watch(
    ring: &Rc<Ring>,
    fd: &Arc<OwnedFd>,
    event: Event,
    watcher: &Weak<dyn Watcher>,
) -> Box<dyn Watch> {
    let (fd, watcher) = (Arc::clone(fd), Weak::clone(watcher));
    let (key, is_dropped) = (Cell::new(None), Cell::new(false));
    let watched = Rc::new(Watched { fd, event, watcher, key, is_dropped });
    watched.start(ring);
    Box::new(Owned { ring: Rc::clone(ring), watched })
}

impl Watched {
    pub(super) fn raw(&self) -> Fd {
        Fd(self.fd.as_raw_fd())
    }

    pub(super) fn flags(&self) -> PollFlags {
        match self.event {
            Event::Readable | Event::Bell => PollFlags::IN,
            Event::HangUp => PollFlags::RDHUP,
        }
    }

    fn start(self: &Rc<Self>, ring: &Ring) {
        self.key.set(Some(ring.watch(self)));
    }

    /// Handles an event, which is the operation's last if `is_last`.
    pub(super) fn on_completed(self: &Rc<Self>, ring: &Ring, result: Result<u32, Errno>, is_last: bool) {
        if is_last {
            self.key.set(None);
        }
        if self.is_dropped.get() || result == Err(Errno::CANCELED) {
            return;
        }
        // A hang-up comes once, and a descriptor that cannot be polled is not tried again.
        if is_last && result.is_ok() && self.event != Event::HangUp && !ring.has_ended() {
            self.start(ring);
        }
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.on_event(self.event);
        }
    }
}
