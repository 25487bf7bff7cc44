//! An epoll set of idle sockets, which any thread arms and one thread takes events from.
//!
//! It reads no data. Invariants: each arming reports once, even if the data arrived before. A socket that is
//! closed leaves the set.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustix::event::{Timespec, epoll};

use super::park::Interest;
use super::reactor::Reactor;

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
    poller: Arc<IdlePoller>,
    token: usize,
    reactor: Rc<Reactor>,
    are_there: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    is_watched: Cell<bool>,
}

impl Reports {
    pub(crate) fn new(reactor: &Rc<Reactor>, poller: &Arc<IdlePoller>) -> Rc<Reports> {
        reactor.add_reports(|token| {
            Rc::new(Reports {
                poller: Arc::clone(poller),
                token,
                reactor: Rc::clone(reactor),
                are_there: Cell::new(false),
                waker: RefCell::default(),
                is_watched: Cell::new(false),
            })
        })
    }

    /// Ready when there are reports that came after all were taken.
    ///
    /// # Errors
    /// The reactor's error, if the set cannot be registered.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.are_there.take() {
            return Poll::Ready(Ok(()));
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        if !self.is_watched.get() {
            self.reactor.watch_stream(self.token, self.as_fd())?;
            self.is_watched.set(true);
        }
        Poll::Pending
    }

    pub(super) fn on_ready(&self) {
        self.are_there.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn interest(&self) -> Interest {
        Interest { read: self.waker.borrow().is_some(), write: false }
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.0.as_fd()
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.reactor.remove(self.token);
    }
}
