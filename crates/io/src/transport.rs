//! One byte stream as an engine offers it: the trait under [`crate::Stream`].
//!
//! It is not what protocols call (they have [`crate::Rx`] and [`crate::Tx`], which keep one waiter per
//! direction); engines, TLS and the simulator implement it. What must hold: all state lives in here, so
//! that a future over it can be dropped at any time and nothing is lost.

use core::net::IpAddr;
use std::io;
use std::task::{Context, Poll};

use crate::address::Address;
use crate::lease::Lease;
use crate::piped::{Filled, Pipe};
use crate::segment::Segment;

/// How much memory a receive is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A request head or a command line: small, and the connection may have been idle for long.
    Head,
    /// Part of a body.
    Body,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP peer's address and port.
    Ip(IpAddr, u16),
    /// A process of this machine.
    Unix,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Ip(ip, _) => ip.fmt(f),
            Peer::Unix => f.write_str("unix"),
        }
    }
}

/// What became of bytes that nobody wants.
#[derive(Debug, Default)]
pub struct Discarded {
    /// How many were thrown away; none is the peer's end.
    pub bytes: u64,
    /// What was received behind them.
    pub beyond: Option<Lease>,
}

impl Discarded {
    /// Throws away the first `bytes_max` bytes of `lease`, or all if it has fewer.
    pub fn out_of(mut lease: Lease, bytes_max: u64) -> Discarded {
        let bytes = lease.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        lease.consume(bytes);
        Discarded { bytes: bytes as u64, beyond: Some(lease).filter(|rest| !rest.is_empty()) }
    }
}

/// A byte stream in both directions. Dropping it aborts: what was not sent is thrown away and the peer
/// sees an error, never a clean end.
pub trait Transport {
    /// Receives at least one byte, or `None` at the peer's end of sending.
    ///
    /// # Errors
    /// What broke the connection; it stays broken.
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>>;

    /// Receives up to `bytes_max` bytes and throws them away, or none at the peer's end: for who counts a
    /// body and does not look at it. Where the system can drop bytes without handing them over, it does;
    /// else they are received, and what came beyond `bytes_max` is given back.
    ///
    /// # Errors
    /// As [`Transport::poll_recv`].
    fn poll_discard(&self, cx: &mut Context<'_>, bytes_max: u64) -> Poll<io::Result<Discarded>> {
        self.poll_recv(cx, Want::Body).map_ok(|received| match received {
            Some(lease) => Discarded::out_of(lease, bytes_max),
            None => Discarded::default(),
        })
    }

    /// Whether [`Segment::Piped`] may be pushed: where the system moves bytes from one stream to another by
    /// itself.
    fn takes_piped(&self) -> bool {
        false
    }

    /// An empty pipe for [`Transport::poll_recv_into`], if the system moves bytes into one and has one left.
    fn pipe(&self) -> Option<Pipe> {
        None
    }

    /// Receives up to `bytes_max` bytes into a pipe, behind what is in it.
    ///
    /// # Errors
    /// As [`Transport::poll_recv`].
    fn poll_recv_into(&self, cx: &mut Context<'_>, pipe: &Pipe, bytes_max: u64) -> Poll<io::Result<Filled>> {
        let _ = (cx, pipe, bytes_max);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Takes a segment to be sent. Never waits and never fails: an error sticks, and `poll_drain` tells it.
    fn push(&self, segment: Segment);

    /// Ready when at most `below` bytes are unsent. A stream that is still connecting is not ready.
    ///
    /// # Errors
    /// The first error of sending.
    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>>;

    /// Bytes that were pushed and are not sent: how a deadline tells a slow peer from a stuck one.
    fn unsent(&self) -> u64;

    /// Bytes that were pushed and never will be sent, because the connection broke: how a record tells what
    /// went out before.
    fn lost(&self) -> u64;

    /// Whether [`Segment::File`] may be pushed.
    fn takes_files(&self) -> bool;

    /// Half-closes after what was pushed. From then on, dropping does not abort what the system has taken.
    fn finish(&self);

    /// Who is at the other end.
    fn peer(&self) -> &Peer;

    /// Where this end is: the address that the peer reached.
    ///
    /// # Errors
    /// What the system says.
    fn local(&self) -> io::Result<Address>;
}
