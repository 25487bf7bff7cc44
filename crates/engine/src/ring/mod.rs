//! The ring's sockets: the kernel is handed operations with their memory, and tells when each is done.
//!
//! It is not the readiness socket (`ready`), which tries and is told when to try again. What must hold: the
//! kernel owns what it was handed until it says otherwise, whoever has been dropped meanwhile; a connection
//! that waits holds no memory to receive into.

mod buffers;
mod connection;
mod listener;
mod operations;
mod probe;
#[expect(clippy::module_inception, reason = "the ring is what the module is about")]
mod ring;
mod sending;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use listener::RingListener;
pub use probe::{NoRing, check_ring};
pub(crate) use ring::Ring;
pub(crate) use socket::Socket;

use std::io;
use std::rc::Rc;

use plimsoll_io::{Address, Listener, Stream};

use crate::ready::{bind, start_connect};

/// Starts to connect to `to`.
pub(crate) fn connect(ring: &Rc<Ring>, to: &Address) -> io::Result<Stream> {
    let (fd, peer) = start_connect(to)?;
    Ok(Stream::new(Socket::connecting(ring, fd, peer)))
}

/// Listens at `at` for streams of this thread.
pub(crate) fn listen(ring: &Rc<Ring>, at: &Address) -> io::Result<Listener> {
    let listener = RingListener::new(ring, bind(at)?, 1, true);
    Ok(Listener::new(Box::new(listener)))
}
