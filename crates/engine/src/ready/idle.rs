//! An epoll set of idle sockets, which any thread arms and one thread takes events from.
//!
//! It reads no data. Invariants: each arming reports once, even if the data arrived before. A socket that is
//! closed leaves the set.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::event::{Timespec, epoll};

use super::poll_method::{Hint, Interest};
use super::reactor::{Reactor, Registration, Source};

/// The epoll set.
pub(crate) struct IdlePoller(OwnedFd);

impl IdlePoller {
    pub(crate) fn new() -> io::Result<IdlePoller> {
        Ok(IdlePoller(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Arms `fd`: the set reports `token` once, when `fd` is readable or the peer has ended. `is_known` if
    /// it was armed before.
    pub(crate) fn arm(&self, fd: &OwnedFd, token: usize, is_known: bool) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let (token, flags) =
            (epoll::EventData::new_u64(token as u64), Flags::IN | Flags::RDHUP | Flags::ONESHOT);
        if is_known {
            return Ok(epoll::modify(&self.0, fd, token, flags)?);
        }
        Ok(epoll::add(&self.0, fd, token, flags)?)
    }

    /// Removes a socket, with its pending report.
    pub(crate) fn disarm(&self, fd: &OwnedFd) {
        // It is in the set as long as its descriptor is open.
        let _ = epoll::delete(&self.0, fd);
    }

    /// Takes up to `count` reports, and returns their tokens.
    pub(crate) fn take(&self, count: usize) -> Vec<usize> {
        let mut events = Vec::with_capacity(count);
        // An error is an interruption: the reports stay.
        let room = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.0, room, Some(&Timespec::default()));
        let token = |event: &epoll::Event| usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
        events.iter().map(token).collect()
    }
}

/// An event loop's wait for reports of such a set.
pub(crate) struct Reports {
    registration: Registration,
    poller: Arc<IdlePoller>,
    have_arrived: Cell<bool>,
}

impl Reports {
    pub(crate) fn new(reactor: &Rc<Reactor>, poller: &Arc<IdlePoller>) -> Rc<Reports> {
        reactor.add(|token| {
            let registration = Registration::new(reactor, token);
            Rc::new(Reports { registration, poller: Arc::clone(poller), have_arrived: Cell::new(false) })
        })
    }

    /// Ready when there are reports that came after all were taken.
    ///
    /// # Errors
    /// The reactor's error, if the set cannot be registered.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.have_arrived.take() {
            return Poll::Ready(Ok(()));
        }
        self.registration.wait(cx, self.as_fd(), Reactor::watch_stream)?;
        Poll::Pending
    }
}

impl Source for Reports {
    fn on_ready(&self, _: Hint) {
        self.have_arrived.set(true);
        self.registration.wake();
    }

    fn interest(&self) -> Interest {
        self.registration.interest()
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.0.as_fd()
    }
}
