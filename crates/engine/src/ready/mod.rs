//! Readiness I/O: the sockets and listeners of one thread, which waits in poll(2) or in epoll.
//!
//! It is not the ring's socket (that one hands memory to the kernel). Invariant: an event is only a hint
//! that a system call is worth trying, so a stale or a missed one costs a call and never a byte.

mod address;
mod hangup;
mod idle;
mod listener;
mod poll_method;
mod reactor;
mod socket;
mod watched;

pub use address::{Bound, Service, bind, check_bind};
pub(crate) use address::{connected, local_address, peer_of, start_connect, widen};
pub(crate) use hangup::Hangup;
pub(crate) use idle::{IdlePoller, Reports};
pub(crate) use listener::{ReadyListener, is_that_connections};
pub(crate) use poll_method::PollMethod;
pub(crate) use reactor::Reactor;
pub(crate) use socket::Socket;
pub(crate) use watched::Watched;

use std::io;
use std::rc::Rc;

use plimsoll_io::{Address, Listener, Stream};

/// Starts to connect to `to`.
pub(crate) fn connect(reactor: &Rc<Reactor>, to: &Address) -> io::Result<Stream> {
    let (fd, peer) = start_connect(to)?;
    Ok(Stream::new(Socket::connecting(reactor, fd, peer)?))
}

/// Listens at `at` for streams of this thread.
pub(crate) fn listen(reactor: &Rc<Reactor>, at: &Address) -> io::Result<Listener> {
    let listener = ReadyListener::new(reactor, bind(at)?);
    Ok(Listener::new(Box::new(listener)))
}
