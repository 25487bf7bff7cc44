//! The wait for the end of a pipe, whose other end another process holds.
//!
//! It is not a stream: nothing is ever read from it. What must hold: the end is seen whenever it came, also
//! before anybody has waited; many processes may wait for the same.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::park::Interest;
use super::reactor::Reactor;

/// This thread's end of such a pipe, which does not block.
pub(crate) struct Hangup {
    fd: OwnedFd,
    token: usize,
    reactor: Rc<Reactor>,
    is_seen: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    is_watched: Cell<bool>,
}

impl Hangup {
    pub(crate) fn new(reactor: &Rc<Reactor>, fd: OwnedFd) -> Rc<Hangup> {
        reactor.add_hangup(|token| {
            Rc::new(Hangup {
                fd,
                token,
                reactor: Rc::clone(reactor),
                is_seen: Cell::new(false),
                waker: RefCell::default(),
                is_watched: Cell::new(false),
            })
        })
    }

    /// Waits until nobody holds the other end.
    ///
    /// # Errors
    /// What the system says when it is asked to tell.
    pub(crate) async fn seen(&self) -> io::Result<()> {
        poll_fn(|cx| {
            if self.is_seen.get() {
                return Poll::Ready(Ok(()));
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            if !self.is_watched.replace(true) {
                self.reactor.watch_stream(self.token, self.as_fd())?;
            }
            Poll::Pending
        })
        .await
    }

    /// Nobody writes into such a pipe: what can be read of it is its end.
    pub(super) fn on_ready(&self) {
        if rustix::io::read(&self.fd, &mut [0; 1]) != Ok(0) {
            return;
        }
        self.is_seen.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    pub(super) fn interest(&self) -> Interest {
        Interest { read: self.waker.borrow().is_some(), write: false }
    }
}

impl AsFd for Hangup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Hangup {
    fn drop(&mut self) {
        self.reactor.remove(self.token);
    }
}
