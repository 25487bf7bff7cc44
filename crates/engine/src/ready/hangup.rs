//! The wait for the end of a pipe, whose other end another process holds.
//!
//! It is not a stream: no data is read from it. Invariants: the end is reported whenever it came, even
//! before the first wait. Many processes may wait for the same end.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::Poll;

use super::poll_method::{Hint, Interest};
use super::reactor::{Reactor, Registration, Source};

/// This thread's non-blocking end of such a pipe.
pub(crate) struct Hangup {
    registration: Registration,
    fd: OwnedFd,
    is_seen: Cell<bool>,
}

impl Hangup {
    pub(crate) fn new(reactor: &Rc<Reactor>, fd: OwnedFd) -> Rc<Hangup> {
        reactor.add(|token| {
            let registration = Registration::new(reactor, token);
            Rc::new(Hangup { registration, fd, is_seen: Cell::new(false) })
        })
    }

    /// Waits until all copies of the other end are closed.
    ///
    /// # Errors
    /// The reactor's error, if the pipe cannot be registered.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        poll_fn(|cx| {
            if self.is_seen.get() {
                return Poll::Ready(Ok(()));
            }
            self.registration.wait(cx, self.as_fd(), Reactor::watch_stream)?;
            Poll::Pending
        })
        .await
    }
}

impl Source for Hangup {
    /// Checks for the end of the pipe. No process writes into it, so a readable pipe has ended.
    fn on_ready(&self, _: Hint) {
        if rustix::io::read(&self.fd, &mut [0; 1]) == Ok(0) {
            self.is_seen.set(true);
            self.registration.wake();
        }
    }

    fn interest(&self) -> Interest {
        self.registration.interest()
    }
}

impl AsFd for Hangup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
