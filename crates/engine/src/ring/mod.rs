//! Completion I/O: the kernel is given operations with their memory, and reports when each has completed.
//!
//! It is not the readiness socket (`ready`), which tries calls when an event hints at it. Invariants: the
//! kernel owns the memory it was given until the completion, even if the stream was dropped. A waiting
//! connection holds no memory to receive into.

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
mod watched;

pub(crate) use listener::RingListener;
pub use probe::{NoRing, check_ring};
pub(crate) use ring::Ring;
pub(crate) use socket::Socket;
pub(crate) use watched::watch;

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
