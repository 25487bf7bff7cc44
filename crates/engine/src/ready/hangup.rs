//! The wait for the end of a pipe, whose other end another process holds.
//!
//! It is not a stream: no data is read from it. Invariants: the end is reported whenever it came, even
//! before the first wait. Many processes may wait for the same end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::park::Interest;
use super::reactor::Reactor;

/// This thread's non-blocking end of such a pipe.
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

    /// Waits until all copies of the other end are closed.
    ///
    /// # Errors
    /// The reactor's error, if the pipe cannot be registered.
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

    /// Checks for the end of the pipe. No process writes into it, so a readable pipe has ended.
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
