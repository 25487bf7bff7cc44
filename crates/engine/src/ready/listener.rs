//! The listener of the readiness engines.
//!
//! It is not the dispatcher. Invariants: a queued connection that was reset is no error of the listener.
//! Errors of the kernel (no descriptor left) are returned and do not end it.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_io::{Accept, Address, Peer, Stream};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::address::{Bound, peer_of};
use super::poll_method::{Hint, Interest};
use super::reactor::{Reactor, Registration, Source};
use super::socket::Socket;
use crate::limits::ACCEPTS_PER_TURN_MAX;

/// A listening socket of one thread.
pub(crate) struct ReadyListener {
    accepting: Rc<Accepting>,
}

/// The listener's state, which the reactor refers to.
struct Accepting {
    registration: Registration,
    bound: Bound,
    readable: Cell<bool>,
    /// The last turn in which connections were accepted, and how many.
    accepted: Cell<(u64, u32)>,
}

impl ReadyListener {
    pub(crate) fn new(reactor: &Rc<Reactor>, bound: Bound) -> ReadyListener {
        let accepting = reactor.add(|token| {
            let registration = Registration::new(reactor, token);
            Rc::new(Accepting { registration, bound, readable: Cell::new(true), accepted: Cell::default() })
        });
        ReadyListener { accepting }
    }

    /// Accepts the next connection, as a descriptor, for a dispatcher that hands it to another thread.
    pub(crate) fn poll_accept_fd(&self, cx: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, Peer)>> {
        let accepting = &*self.accepting;
        while accepting.readable.get() {
            if !accepting.may_accept() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match acceptfrom_with(&accepting.bound.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, address)) => return Poll::Ready(Ok((fd, peer_of(address)))),
                Err(Errno::AGAIN) => accepting.readable.set(false),
                Err(error) if !is_that_connections(error) => return Poll::Ready(Err(error.into())),
                Err(_) => {}
            }
        }
        accepting.registration.wait(cx, accepting.as_fd(), Reactor::watch_listener)?;
        Poll::Pending
    }

    /// Accepts a connection that is already queued, regardless of this turn's bound: for the last check
    /// before closing.
    pub(crate) fn accept_now(&self) -> Option<(OwnedFd, Peer)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, address) = acceptfrom_with(&self.accepting.bound.fd, flags).ok()?;
        Some((fd, peer_of(address)))
    }
}

/// Returns whether an error concerns only the connection to be accepted: the next one may be good.
///
/// "Linux accept() passes already-pending network errors on the new socket as an error code from accept(). …
/// For reliable operation the application should detect the network errors defined for the protocol after
/// accept() and treat them like EAGAIN by retrying. In the case of TCP/IP, these are ENETDOWN, EPROTO,
/// ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, and ENETUNREACH" (accept(2)).
pub(crate) fn is_that_connections(error: Errno) -> bool {
    use Errno as E;
    matches!(error, E::CONNABORTED | E::INTR | E::PERM | E::NETDOWN | E::PROTO | E::NOPROTOOPT)
        || matches!(error, E::HOSTDOWN | E::NONET | E::HOSTUNREACH | E::OPNOTSUPP | E::NETUNREACH)
}

impl Accepting {
    fn may_accept(&self) -> bool {
        let (turn, count) = self.accepted.get();
        let now = self.registration.reactor.to_flush.turn();
        let count = if turn == now { count } else { 0 };
        self.accepted.set((now, count + 1));
        count < ACCEPTS_PER_TURN_MAX
    }
}

impl Source for Accepting {
    fn on_ready(&self, _: Hint) {
        self.readable.set(true);
        self.registration.wake();
    }

    fn interest(&self) -> Interest {
        Interest { read: self.registration.interest().read && !self.readable.get(), ..Interest::default() }
    }
}

impl Accept for ReadyListener {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        self.poll_accept_fd(cx).map(|accepted| {
            let (fd, peer) = accepted?;
            Ok(Stream::new(Socket::accepted(&self.accepting.registration.reactor, fd, peer)))
        })
    }

    fn address(&self) -> &Address {
        self.accepting.bound.address()
    }
}

impl AsFd for Accepting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bound.fd.as_fd()
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        if self.registration.is_watched.get() {
            self.registration.reactor.unwatch(self.as_fd());
        }
    }
}
