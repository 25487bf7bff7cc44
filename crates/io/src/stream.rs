//! A byte stream as protocols use it: whole, or split into its two directions.
//!
//! It does not buffer, with one exception: bytes received behind discarded ones, or beyond a receive's
//! limit, are kept for the next receive. Invariants: receiving and draining take `&mut`, so that a
//! direction has one waiter; a stream is aborted when the last of its parts is dropped without
//! [`Stream::finish`].

use std::future::{pending, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::address::Address;
use crate::carrier::Endpoint;
use crate::combine::{Either, select};
use crate::lease::Lease;
use crate::limits::{LINGER_BYTES_MAX, PIPED_BYTES_MIN};
use crate::parking::{Parked, ParkingSpot};
use crate::piped::{Filled, Pipe};
use crate::segment::{FileRange, Segment};
use crate::slot::{Slot, UncountedSlot};
use crate::transport::{Discarded, EndProbe, Peer, Transport, Want};

/// Both directions of a byte stream.
pub struct Stream {
    /// The receiving side.
    pub rx: Rx,
    /// The sending side.
    pub tx: Tx,
}

/// The receiving side of a stream.
pub struct Rx {
    transport: Rc<dyn Transport>,
    /// Received bytes for the next receive: they came behind discarded bytes, or beyond the limit of the
    /// last receive.
    held: Option<Lease>,
    /// The client that a proxy reports for the whole connection. Boxed: few connections have one.
    client: Option<Box<ReportedClient>>,
}

/// A client as a proxy's header reports it.
struct ReportedClient {
    peer: Peer,
    /// Whether its connection to the proxy is encrypted.
    is_encrypted: bool,
}

/// The sending side of a stream.
pub struct Tx {
    transport: Rc<dyn Transport>,
    slot: Rc<dyn Slot>,
    /// The parking spot, if the engine parks connections.
    parking: Option<Rc<ParkingSpot>>,
}

impl Stream {
    /// Wraps an engine's transport.
    pub fn new(transport: Rc<dyn Transport>) -> Stream {
        Stream::in_slot(transport, UncountedSlot::shared())
    }

    /// Wraps the transport of a connection that has a slot in its engine.
    pub fn in_slot(transport: Rc<dyn Transport>, slot: Rc<dyn Slot>) -> Stream {
        let rx = Rx { transport: Rc::clone(&transport), held: None, client: None };
        Stream { rx, tx: Tx { transport, slot, parking: None } }
    }

    /// Makes the conversation [park](Tx::park) at `parking`.
    #[must_use]
    pub fn parking_at(mut self, parking: &Rc<ParkingSpot>) -> Stream {
        self.tx.parking = Some(Rc::clone(parking));
        self
    }

    /// Returns the parking spot, if the engine parks connections: for a transport on top of this one, which
    /// parks itself there.
    pub fn parking(&self) -> Option<Rc<ParkingSpot>> {
        self.tx.parking.clone()
    }

    /// Waits until there is something to receive: bytes, which stay to be received, the peer's end, or
    /// an error.
    pub(crate) async fn readable(&mut self) {
        if let Ok(Some(lease)) = self.rx.recv(Want::Head).await {
            self.rx.held = Some(lease);
        }
    }

    /// Returns the connection's slot, to which the conversation reports its phase.
    pub fn slot(&self) -> &Rc<dyn Slot> {
        self.tx.slot()
    }

    /// Puts a transport on top of the stream's own (TLS), also in the middle of a conversation. `make` gets
    /// the transport below, and bytes that were received from it and belong to the new one. The slot and the
    /// reported client stay. The conversation cannot park any more, unless the new transport can
    /// ([`Stream::parking_at`]). Returns the new transport.
    pub fn layer<T: Transport + 'static>(
        &mut self,
        make: impl FnOnce(Rc<dyn Transport>, Option<Lease>) -> Rc<T>,
    ) -> Rc<T> {
        let transport = make(Rc::clone(&self.rx.transport), self.rx.held.take());
        let (received, sent): (Rc<T>, Rc<T>) = (Rc::clone(&transport), Rc::clone(&transport));
        (self.rx.transport, self.tx.transport, self.tx.parking) = (received, sent, None);
        transport
    }

    /// Returns the stream's transport, which stays usable if another one is put on top.
    #[must_use]
    pub fn transport(&self) -> Rc<dyn Transport> {
        Rc::clone(&self.rx.transport)
    }

    /// Keeps bytes that were received, so that they are received next.
    pub fn unreceive(&mut self, bytes: Lease) {
        debug_assert!(self.rx.held.is_none(), "bytes behind what was discarded are lost");
        self.rx.held = Some(bytes).filter(|bytes| !bytes.is_empty());
    }

    /// Takes the connection out of the stream, with its [slot](Stream::slot), for a transport over shared
    /// memory: see [`Transport::into_endpoint`].
    pub fn into_endpoint(self) -> Option<(Endpoint, Rc<dyn Slot>)> {
        let (Rx { transport, .. }, Tx { slot, transport: shared, .. }) = self.split();
        drop(shared);
        Some((transport.into_endpoint()?, slot))
    }

    /// Splits the stream into its directions, for two halves of a conversation that run concurrently.
    pub fn split(self) -> (Rx, Tx) {
        (self.rx, self.tx)
    }

    /// Returns the client: the peer of the connection, or the client that a trusted proxy has reported
    /// for it.
    pub fn peer(&self) -> &Peer {
        let reported = self.rx.client.as_ref().map(|client| &client.peer);
        reported.unwrap_or_else(|| self.rx.transport.peer())
    }

    /// Whether its bytes are encrypted on the connection, or on that of the client to the proxy before it,
    /// as that reports.
    pub fn is_encrypted(&self) -> bool {
        let reported = self.rx.client.as_ref().is_some_and(|client| client.is_encrypted);
        reported || self.rx.transport.is_encrypted()
    }

    /// Whether the network between the client and this process cannot read the stream: it is encrypted, the
    /// proxy before it reports so, or its peer is a program on this machine and has reported no client.
    pub fn is_protected(&self) -> bool {
        self.is_encrypted() || (!self.is_behind_proxy() && self.peer().is_local())
    }

    /// Whether a proxy has reported the client ([`Stream::behind_proxy`]).
    pub fn is_behind_proxy(&self) -> bool {
        self.rx.client.is_some()
    }

    /// Returns the same stream after a proxy's header was received from it: `client` is its peer from
    /// now on, whose connection to the proxy `is_encrypted` or not. `rest`, received behind the header, is
    /// received next.
    #[must_use]
    pub fn behind_proxy(mut self, client: Peer, is_encrypted: bool, rest: Lease) -> Stream {
        self.rx.client = Some(Box::new(ReportedClient { peer: client, is_encrypted }));
        self.unreceive(rest);
        self
    }

    /// Returns the local address, which the peer connected to.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn local(&self) -> io::Result<Address> {
        self.rx.transport.local()
    }

    /// As [`Transport::end_probe`].
    pub fn end_probe(&self) -> Option<EndProbe> {
        self.rx.transport.end_probe()
    }

    /// As [`Transport::round_trip`].
    pub fn round_trip(&self) -> Option<Duration> {
        self.rx.transport.round_trip()
    }

    /// Sends the pushed segments and a clean end, then reads and drops input until the peer ends too.
    /// Closing a socket with unread bytes makes the kernel send a reset, by which the peer can lose
    /// bytes that it has not read yet. Call it under a deadline. After it has returned without error, the
    /// kernel has taken all pushed bytes, and dropping the stream does not abort them.
    ///
    /// # Errors
    /// The error that broke the connection before that.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.tx.finish();
        let (mut sent, mut dropped) = (false, 0);
        loop {
            // Both at once, against a deadlock: a peer that writes much before it reads would wait for
            // us, and we for it.
            match select(self.rx.recv(Want::Body), drained(&mut self.tx, &mut sent)).await {
                Either::Left(received) => match received? {
                    Some(lease) => dropped += lease.len(),
                    None => return self.tx.drain(0).await,
                },
                Either::Right(error) => return Err(error),
            }
            if dropped > LINGER_BYTES_MAX {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }
}

/// Waits until all is sent, and then for ever: only an error ends it.
async fn drained(tx: &mut Tx, sent: &mut bool) -> io::Error {
    if !*sent {
        match tx.drain(0).await {
            Ok(()) => *sent = true,
            Err(error) => return error,
        }
    }
    pending().await
}

impl Rx {
    /// Receives at least one byte, or `None` at the peer's end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The error that broke the connection; it is permanent.
    pub async fn recv(&mut self, want: Want) -> io::Result<Option<Lease>> {
        poll_fn(|cx| self.poll_recv(cx, want)).await
    }

    /// Discards at least one byte and at most `bytes_max`. Returns the number of bytes, 0 at the peer's
    /// end. Bytes behind those stay to be received. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`Rx::recv`].
    pub async fn discard(&mut self, bytes_max: u64) -> io::Result<u64> {
        let held = self.held.take().map(|lease| Discarded::out_of(lease, bytes_max));
        let discarded = match held {
            Some(discarded) => discarded,
            None => poll_fn(|cx| self.transport.poll_discard(cx, bytes_max)).await?,
        };
        self.held = discarded.beyond;
        Ok(discarded.bytes)
    }

    /// Receives at least one byte and at most `bytes_max` for forwarding to `to`, or `None` at the
    /// peer's end. Where the peer has passed an open file for them, the segment is a range of it. Where the
    /// kernel can move bytes between the streams, they stay in a pipe. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`Rx::recv`].
    pub async fn recv_for(&mut self, to: &Tx, bytes_max: u64) -> io::Result<Option<Segment>> {
        poll_fn(|cx| {
            if self.held.is_none()
                && to.transport.takes_files()
                && let Some(file) = ready!(self.transport.poll_recv_file(cx, bytes_max))
            {
                return Poll::Ready(Ok(Some(Segment::File(file))));
            }
            let is_worth_it = self.held.is_none() && bytes_max >= PIPED_BYTES_MIN;
            if is_worth_it
                && to.transport.takes_piped()
                && let Some(pipe) = self.transport.pipe()
            {
                match ready!(self.transport.poll_recv_into(cx, &pipe, bytes_max)?) {
                    Filled::Bytes(_) => return Poll::Ready(Ok(Some(Segment::Piped(pipe)))),
                    Filled::End => return Poll::Ready(Ok(None)),
                    Filled::Refused | Filled::Full => {}
                }
            }
            let received = self.poll_recv(cx, Want::Body);
            received.map_ok(|lease| lease.map(|lease| Segment::Lease(self.up_to(lease, bytes_max))))
        })
        .await
    }

    /// Waits for something to receive. Returns the range of the open file that the peer has passed for the
    /// next bytes, which stay to be received. Returns `None` if it is something else.
    pub async fn passed_file(&mut self) -> Option<FileRange> {
        if self.held.is_some() {
            return None;
        }
        poll_fn(|cx| self.transport.poll_passed_file(cx)).await
    }

    /// Receives the range that [`Rx::passed_file`] returns. Dropping the future loses nothing.
    pub async fn recv_file(&mut self) -> Option<FileRange> {
        if self.held.is_some() {
            return None;
        }
        poll_fn(|cx| self.transport.poll_recv_file(cx, u64::MAX)).await
    }

    /// Returns an empty pipe to [receive into](Rx::poll_recv_into), where the kernel can move bytes into
    /// one, and has one left.
    pub fn pipe(&self) -> Option<Pipe> {
        if self.held.is_none() { self.transport.pipe() } else { None }
    }

    /// Receives at most `bytes_max` bytes into a [pipe of this stream](Rx::pipe), behind the bytes in
    /// it. If it is pending, the task is woken as by any other receive.
    ///
    /// # Errors
    /// As [`Rx::recv`].
    pub fn poll_recv_into(
        &self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        bytes_max: u64,
    ) -> Poll<io::Result<Filled>> {
        debug_assert!(self.held.is_none(), "bytes that came before are not in the pipe");
        self.transport.poll_recv_into(cx, pipe, bytes_max)
    }

    /// Returns the first `bytes_max` bytes of a lease; the rest is received next.
    fn up_to(&mut self, mut lease: Lease, bytes_max: u64) -> Lease {
        let bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        if bytes < lease.len() {
            self.held = Some(Lease::owned(lease[bytes..].to_vec()));
            lease.truncate(bytes);
        }
        lease
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        match self.held.take() {
            Some(held) => Poll::Ready(Ok(Some(held))),
            None => self.transport.poll_recv(cx, want),
        }
    }

    /// Receives without waiting until `bytes_min` bytes or more have been received: for callers that
    /// forward them and prefer few large calls. Waits for the first byte only; an empty result is the
    /// peer's end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`Rx::recv`], once the bytes before the error are received.
    pub async fn recv_available(&mut self, want: Want, bytes_min: usize) -> io::Result<Vec<Lease>> {
        poll_fn(|cx| {
            let (mut received, mut bytes) = (Vec::new(), 0);
            while bytes < bytes_min {
                match self.poll_recv(cx, want) {
                    Poll::Ready(Ok(Some(lease))) => {
                        bytes += lease.len();
                        received.push(lease);
                    }
                    // An error and the peer's end are permanent: the next receive returns them.
                    ended if received.is_empty() => return ended.map_ok(|_| Vec::new()),
                    _ => break,
                }
            }
            Poll::Ready(Ok(received))
        })
        .await
    }
}

impl Tx {
    /// Returns the connection's slot, to which the conversation reports its phase.
    pub fn slot(&self) -> &Rc<dyn Slot> {
        &self.slot
    }

    /// Hands the connection back to the engine, which resumes the conversation when the client sends
    /// something. Before the call, all received bytes must have been read, and all pushed bytes sent.
    /// The conversation ends after it, on this thread.
    ///
    /// # Errors
    /// Returns `parked` where the engine does not park connections.
    pub fn park(&mut self, parked: Parked) -> Result<(), Parked> {
        let Some(parking) = &self.parking else { return Err(parked) };
        debug_assert!(self.unsent() == 0, "parked with bytes that are not sent");
        parking.park(parked, Stream::in_slot(Rc::clone(&self.transport), Rc::clone(&self.slot)));
        Ok(())
    }

    /// Queues a segment. It is sent at the end of this turn or later, without this task being polled.
    pub fn push(&mut self, segment: Segment) {
        self.transport.push(segment);
    }

    /// Queues a copy of bytes.
    pub fn push_slice(&mut self, bytes: &[u8]) {
        self.transport.push_slice(bytes);
    }

    /// Waits until at most `below` bytes are unsent. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The first error of sending.
    pub async fn drain(&mut self, below: u64) -> io::Result<()> {
        poll_fn(|cx| self.transport.poll_drain(cx, below)).await
    }

    /// Returns the number of bytes that were pushed and are not sent.
    pub fn unsent(&self) -> u64 {
        self.transport.unsent()
    }

    /// Returns the number of pushed bytes that will never be sent, because the connection broke.
    pub fn lost(&self) -> u64 {
        self.transport.lost()
    }

    /// Makes the stream usable again after an unreadable file, for the rest of its bytes from another source;
    /// see [`Transport::drop_unreadable`].
    pub fn drop_unreadable(&mut self) -> Option<u64> {
        self.transport.drop_unreadable()
    }

    /// Returns the number of pushed bytes that the peer's machine has not acknowledged; `None` if that is
    /// unknown.
    ///
    /// # Errors
    /// As [`Transport::unacknowledged`].
    pub fn unacknowledged(&self) -> io::Result<Option<u64>> {
        self.transport.unacknowledged()
    }

    /// Whether [`Segment::File`] may be pushed.
    pub fn takes_files(&self) -> bool {
        self.transport.takes_files()
    }

    /// Whether a pushed [`Segment::File`] of so many bytes reaches the peer as an open file: see
    /// [`Transport::passes_files`].
    pub fn passes_files(&self, bytes: u64) -> bool {
        self.transport.passes_files(bytes)
    }

    /// Whether [`Segment::Piped`] may be pushed.
    pub fn takes_piped(&self) -> bool {
        self.transport.takes_piped()
    }

    /// Whether a pushed segment is copied: see [`Transport::copies_segments`].
    pub fn copies_segments(&self) -> bool {
        self.transport.copies_segments()
    }

    /// Closes the sending side after the pushed segments; see [`Transport::finish`].
    pub fn finish(&mut self) {
        self.transport.finish();
    }
}
