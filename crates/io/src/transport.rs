//! One byte stream as an engine provides it: the trait under [`crate::Stream`].
//!
//! Protocols do not call it (they have [`crate::Rx`] and [`crate::Tx`], which keep one waiter per
//! direction). Engines, TLS and the simulator implement it. Invariant: all state is in the transport, so
//! that a future over it can be dropped at any time and nothing is lost.

use core::net::IpAddr;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::address::Address;
use crate::carrier::Endpoint;
use crate::lease::Lease;
use crate::piped::{Filled, Pipe};
use crate::segment::{FileRange, Segment};

/// The purpose of a receive, which determines the size of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A request head or a command line: small, and the connection may have been idle for long.
    Head,
    /// Part of a body.
    Body,
}

/// The peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP peer's address and port.
    Ip(IpAddr, u16),
    /// A process of this machine.
    Unix,
}

impl Peer {
    /// Whether the peer is a program on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Peer::Ip(ip, _) => ip.to_canonical().is_loopback(),
            Peer::Unix => true,
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Ip(ip, _) => ip.fmt(f),
            Peer::Unix => f.write_str("unix"),
        }
    }
}

/// A check whether the peer has closed or reset its connection, for work on another thread. It does not
/// block, and receives nothing: an end behind unread bytes counts. Clones share the check.
#[derive(Clone)]
pub struct EndProbe(Arc<dyn Fn() -> bool + Send + Sync>);

impl EndProbe {
    /// Creates a probe from the check `has_ended`.
    pub fn new(has_ended: impl Fn() -> bool + Send + Sync + 'static) -> EndProbe {
        EndProbe(Arc::new(has_ended))
    }

    /// Whether the peer has closed or reset the connection.
    pub fn has_ended(&self) -> bool {
        (self.0)()
    }
}

/// The result of discarding received bytes.
#[derive(Debug, Default)]
pub struct Discarded {
    /// The number of bytes that were discarded; 0 is the peer's end.
    pub bytes: u64,
    /// Bytes that were received behind them.
    pub beyond: Option<Lease>,
}

impl Discarded {
    /// Discards the first `bytes_max` bytes of `lease`, or all if it has fewer.
    pub fn out_of(mut lease: Lease, bytes_max: u64) -> Discarded {
        let bytes = lease.len().min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        lease.consume(bytes);
        Discarded { bytes: bytes as u64, beyond: Some(lease).filter(|rest| !rest.is_empty()) }
    }
}

/// A byte stream in both directions. Dropping it aborts: unsent bytes are discarded, and the peer sees
/// an error, never a clean end.
pub trait Transport {
    /// Receives at least one byte, or `None` at the peer's end of sending.
    ///
    /// # Errors
    /// The error that broke the connection; it is permanent.
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>>;

    /// Receives up to `bytes_max` bytes and discards them, or none at the peer's end: for callers that
    /// only count a body. Where the kernel can drop bytes without copying them, it does. Otherwise they
    /// are received, and bytes beyond `bytes_max` are returned.
    ///
    /// # Errors
    /// As [`Transport::poll_recv`].
    fn poll_discard(&self, cx: &mut Context<'_>, bytes_max: u64) -> Poll<io::Result<Discarded>> {
        self.poll_recv(cx, Want::Body).map_ok(|received| match received {
            Some(lease) => Discarded::out_of(lease, bytes_max),
            None => Discarded::default(),
        })
    }

    /// Whether [`Segment::Piped`] may be pushed: true where the kernel can move bytes from one stream to
    /// another.
    fn takes_piped(&self) -> bool {
        false
    }

    /// Returns an empty pipe for [`Transport::poll_recv_into`], if the kernel can move bytes into one
    /// and has one left.
    fn pipe(&self) -> Option<Pipe> {
        None
    }

    /// Receives up to `bytes_max` bytes into a pipe, behind the bytes in it.
    ///
    /// # Errors
    /// As [`Transport::poll_recv`].
    fn poll_recv_into(&self, cx: &mut Context<'_>, pipe: &Pipe, bytes_max: u64) -> Poll<io::Result<Filled>> {
        let _ = (cx, pipe, bytes_max);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Whether the network between the peer and this process cannot read the bytes.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// Whether a pushed segment is copied at once, for example to encrypt it. What is large is then pushed in
    /// parts, so that it does not exist twice.
    fn copies_segments(&self) -> bool {
        false
    }

    /// Queues a segment. Never waits and never fails: an error is permanent, and `poll_drain` returns
    /// it.
    fn push(&self, segment: Segment);

    /// As [`Transport::push`], for bytes that stay the caller's.
    fn push_slice(&self, bytes: &[u8]) {
        self.push(Segment::Owned(bytes.to_vec()));
    }

    /// Ready when at most `below` bytes are unsent. A stream that is still connecting is not ready.
    ///
    /// # Errors
    /// The first error of sending.
    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>>;

    /// Returns the number of unsent bytes, by which a deadline distinguishes a slow peer from a stuck
    /// one.
    fn unsent(&self) -> u64;

    /// Returns the number of pushed bytes that will never be sent, because the connection broke. A
    /// record of the transfer subtracts it.
    fn lost(&self) -> u64;

    /// Returns the number of pushed bytes that the peer's machine has not acknowledged, or `None` if the
    /// transport does not know. It is more than [`Transport::unsent`]: the kernel buffers what it sends.
    ///
    /// # Errors
    /// The connection broke before the peer's machine had acknowledged all bytes.
    fn unacknowledged(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// Returns a probe for the peer's end, or `None` if the transport has none. It may outlive the stream,
    /// whose connection is then reset after it: drop it soon.
    fn end_probe(&self) -> Option<EndProbe> {
        None
    }

    /// Returns the smoothed round-trip time that the kernel has measured, or `None` if it is unknown.
    fn round_trip(&self) -> Option<Duration> {
        None
    }

    /// Resumes sending after a pushed file could not be read to the end of its range. Drops that segment and
    /// those behind it, and returns the number of their bytes that were not sent; the bytes before them were.
    /// Returns `None` if sending has not failed, or for another reason, or after
    /// [`finish`](Transport::finish).
    fn drop_unreadable(&self) -> Option<u64> {
        None
    }

    /// Whether [`Segment::File`] may be pushed.
    fn takes_files(&self) -> bool;

    /// Whether a pushed [`Segment::File`] of so many bytes reaches the peer as an open file, without its
    /// bytes being read.
    fn passes_files(&self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// Receives an open file that the peer has passed instead of its bytes: the range of the next bytes, at
    /// most `bytes_max` of them. Ready with `None` if the next bytes, the end or the error are to be
    /// [received](Transport::poll_recv).
    fn poll_recv_file(&self, cx: &mut Context<'_>, bytes_max: u64) -> Poll<Option<FileRange>> {
        let _ = (cx, bytes_max);
        Poll::Ready(None)
    }

    /// Returns the range that [`Transport::poll_recv_file`] would return without a bound, and leaves it to be
    /// received.
    fn poll_passed_file(&self, cx: &mut Context<'_>) -> Poll<Option<FileRange>> {
        let _ = cx;
        Poll::Ready(None)
    }

    /// Takes the connection out of its transport, for a transport over shared memory that it sets up.
    /// Nothing may have been sent or received by then, except that it has connected. A transport over shared
    /// memory that was parked returns its socket. Returns `None` if the transport is not such a connection,
    /// or is shared.
    fn into_endpoint(self: Rc<Self>) -> Option<Endpoint> {
        None
    }

    /// Closes the sending side after the pushed segments. After that, dropping does not abort bytes that
    /// the kernel has taken.
    fn finish(&self);

    /// Returns the peer.
    fn peer(&self) -> &Peer;

    /// Returns the local address, which the peer connected to.
    ///
    /// # Errors
    /// The operating system's error.
    fn local(&self) -> io::Result<Address>;
}
