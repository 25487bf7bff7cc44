//! The stream socket of the ring's engine: the protocol's handle.
//!
//! It has no state of its own. Invariant: dropping it cancels operations in progress, and resets the
//! connection unless it was finished and the kernel has taken all of its bytes.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_io::{Address, EndProbe, Endpoint, Filled, Lease, Peer, Pipe, Segment, Transport, Want};
use rustix::io::Errno;

use super::connection::Connection;
use super::ring::Ring;
use crate::ready::local_address;
use crate::send_queue::unacknowledged;
use crate::splice::new_pipe;
use crate::tcp_state::{end_probe, round_trip};

/// A stream socket of one thread.
pub(crate) struct Socket {
    connection: Rc<Connection>,
}

impl Socket {
    /// Creates a socket that was accepted.
    pub(crate) fn accepted(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Socket> {
        Rc::new(Socket { connection: Connection::accepted(ring, fd, peer) })
    }

    /// Creates a socket that is connecting.
    pub(super) fn connecting(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Socket> {
        Rc::new(Socket { connection: Connection::connecting(ring, fd, peer) })
    }
}

impl Transport for Socket {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        self.connection.poll_recv(cx, want)
    }

    fn takes_piped(&self) -> bool {
        true
    }

    fn pipe(&self) -> Option<Pipe> {
        Pipe::open(self.connection.ring.pipes_max, new_pipe)
    }

    fn poll_recv_into(&self, cx: &mut Context<'_>, pipe: &Pipe, bytes_max: u64) -> Poll<io::Result<Filled>> {
        self.connection.poll_recv_into(cx, pipe, bytes_max)
    }

    fn push(&self, segment: Segment) {
        let mut state = self.connection.state.borrow_mut();
        state.stream.push(segment);
        self.connection.queue(&mut state);
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        let mut state = self.connection.state.borrow_mut();
        let drained = state.stream.poll_drain(cx, below);
        if drained.is_pending() {
            self.connection.queue(&mut state);
        }
        drained
    }

    fn unsent(&self) -> u64 {
        self.connection.state.borrow().stream.unsent()
    }

    fn lost(&self) -> u64 {
        self.connection.state.borrow().stream.lost()
    }

    fn unacknowledged(&self) -> io::Result<Option<u64>> {
        let to_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::CONNRESET);
        let in_kernel = self.connection.with_fd(|fd| unacknowledged(fd).map_err(to_errno))?;
        Ok(Some(self.connection.state.borrow().stream.unacknowledged(in_kernel)?))
    }

    fn end_probe(&self) -> Option<EndProbe> {
        self.connection.with_fd(|fd| end_probe(fd).ok_or(Errno::MFILE)).ok()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.connection.with_fd(|fd| round_trip(fd).ok_or(Errno::NODATA)).ok()
    }

    fn drop_unreadable(&self) -> Option<u64> {
        self.connection.drop_unreadable()
    }

    fn takes_files(&self) -> bool {
        true
    }

    fn into_endpoint(self: Rc<Self>) -> Option<Endpoint> {
        Some(Endpoint::Descriptor(Arc::new(self.connection.take_idle()?)))
    }

    fn finish(&self) {
        let mut state = self.connection.state.borrow_mut();
        state.stream.finish();
        self.connection.queue(&mut state);
    }

    fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    fn local(&self) -> io::Result<Address> {
        let to_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        Ok(self.connection.with_fd(|fd| local_address(fd).map_err(to_errno))?)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.connection.abandon();
    }
}
