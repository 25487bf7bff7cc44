//! A watch of a descriptor that a transport of another crate owns, for the readiness engines.
//!
//! It moves no data, except that it consumes the count of an eventfd where poll(2) would report it again.
//! Invariants: a hang-up is reported once. Dropping the watch ends the registration, so that the descriptor
//! may stay open.

use std::cell::Cell;
use std::io;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use plimsoll_io::{Event, Watch, Watcher};
use rustix::io::{ReadWriteFlags, preadv2};

use super::poll_method::{Hint, Interest};
use super::reactor::{Reactor, Source};

/// The present position of a file, for a descriptor that has none.
const NO_OFFSET: u64 = u64::MAX;

/// A watched descriptor.
pub(crate) struct Watched {
    reactor: Rc<Reactor>,
    token: usize,
    fd: Arc<OwnedFd>,
    event: Event,
    watcher: Weak<dyn Watcher>,
    is_over: Cell<bool>,
}

/// The watch, as its owner has it: the reactor's table refers to the descriptor only weakly.
struct Owned(#[expect(dead_code, reason = "it is kept until it is dropped")] Rc<Watched>);

impl Watch for Owned {}

impl Watched {
    /// Calls `watcher` at each `event` of `fd`.
    pub(crate) fn start(
        reactor: &Rc<Reactor>,
        fd: &Arc<OwnedFd>,
        event: Event,
        watcher: &Weak<dyn Watcher>,
    ) -> io::Result<Box<dyn Watch>> {
        let watched = reactor.add(|token| {
            let (reactor, fd, watcher) = (Rc::clone(reactor), Arc::clone(fd), Weak::clone(watcher));
            Rc::new(Watched { reactor, token, fd, event, watcher, is_over: Cell::new(false) })
        });
        reactor.watch_stream(watched.token, watched.as_fd())?;
        Ok(Box::new(Owned(watched)))
    }

    /// Consumes the count of an eventfd. It never waits, even if the peer has made the descriptor block.
    fn consume(&self) {
        let mut count = [0; 8];
        // An empty eventfd is no error.
        let _ = preadv2(&self.fd, &mut [IoSliceMut::new(&mut count)], NO_OFFSET, ReadWriteFlags::NOWAIT);
    }
}

impl Source for Watched {
    fn on_ready(&self, hint: Hint) {
        let is_due = match self.event {
            Event::Readable | Event::Bell => hint.readable,
            Event::HangUp => hint.has_more && !self.is_over.replace(hint.has_more),
        };
        if !is_due {
            return;
        }
        if self.event == Event::Bell && self.reactor.is_level_triggered() {
            self.consume();
        }
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.on_event(self.event);
        }
    }

    fn interest(&self) -> Interest {
        let is_hang_up = self.event == Event::HangUp;
        Interest { read: !is_hang_up, write: false, hang_up: is_hang_up && !self.is_over.get() }
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.reactor.unwatch(self.as_fd());
        self.reactor.remove(self.token);
    }
}
