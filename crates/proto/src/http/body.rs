//! Receives the body of a request, one lease at a time.
//!
//! This module stores nothing. Invariants: bytes behind the body are left for the next request. No more than
//! the announced length, or the limit, is returned. A client that expects 100 (Continue) receives it when the
//! service first reads the body, and not before.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use plimsoll_io::{Deadline, Either, Elapsed, Instant, Lease, Phase, Rx, Segment, Tx, Want, select};
use plimsoll_store::{ReceivePipe, ReceivedBytes};
use plimsoll_wire::http::answer::{CONTINUE, PROCESSING};
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::head::Framing;
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::status::Status;
use zeroize::Zeroizing;

use super::limits::{DISCARD_BYTES_MAX, HALF_CLOSED_TIME, Limits, UNAUTHENTICATED_BYTES_PER_SECOND_MIN};
use crate::upload_pipe::{PipedReceive, receive_piped};

/// The part of a request's body that has not been read.
pub struct RequestBody<'a> {
    pub(super) rx: &'a mut Rx,
    pub(super) tx: &'a mut Tx,
    pub(super) deadline: &'a Deadline,
    pub(super) limits: &'a Limits,
    pub(super) state: &'a mut BodyState,
}

/// The progress of a body. It outlives the request that borrows it.
pub(super) struct BodyState {
    decoder: BodyDecoder,
    /// Whether reading it has failed.
    is_broken: bool,
    /// Received bytes that have not been parsed: first those behind the head, then those of each receive.
    unread: Option<Lease>,
    received: u64,
    /// The time of the first wait for the body, if its client has not authenticated.
    first_awaited: Option<Instant>,
    expects_continue: bool,
}

/// The reason why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// The connection broke, or the client closed its side before the end of the body.
    Broken(io::Error),
    /// No byte arrived in time.
    Late,
    /// The body is longer than the limit.
    TooLong,
    /// The chunked coding is malformed.
    Refused(Refusal),
}

impl BodyError {
    fn ended() -> BodyError {
        BodyError::Broken(io::ErrorKind::UnexpectedEof.into())
    }

    /// Returns the status and the sentence of a response to the client.
    pub fn refusal(&self) -> (Status, &'static str) {
        match self {
            BodyError::Broken(_) => {
                (Status::BAD_REQUEST, "The connection ended before the body was complete. Send it again.")
            }
            BodyError::Late => (Status::REQUEST_TIMEOUT, "The body came too slowly. Send it faster."),
            BodyError::TooLong => {
                (Status::CONTENT_TOO_LARGE, "The body is longer than this server takes. Send less.")
            }
            BodyError::Refused(refusal) => (refusal.status(), refusal.detail()),
        }
    }
}

impl BodyState {
    /// Creates the state for a request whose head is followed by `unread`.
    pub(super) fn new(framing: Framing, unread: Option<Lease>, expects_continue: bool) -> BodyState {
        // "A server MAY omit sending a 100 (Continue) response if it has already received some or all of the
        // content for the corresponding request" (RFC 9110, section 10.1.1).
        let expects_continue = expects_continue && unread.is_none();
        let decoder = BodyDecoder::new(framing.into());
        BodyState { decoder, is_broken: false, unread, received: 0, first_awaited: None, expects_continue }
    }

    /// Whether the connection stays usable: the body has ended, or its rest is short enough to be read and
    /// dropped.
    pub(super) fn can_be_discarded(&self) -> bool {
        let is_short = self.decoder.left().is_none_or(|left| left <= DISCARD_BYTES_MAX);
        self.has_ended() || is_short && !self.expects_continue && !self.is_broken
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.is_broken && self.decoder.has_ended()
    }

    /// Returns the bytes received behind the body, which belong to the next request.
    pub(super) fn into_rest(self) -> Option<Lease> {
        self.unread.filter(|lease| !lease.is_empty())
    }
}

impl RequestBody<'_> {
    /// Returns the next bytes, or `None` at the end of the body. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body cannot be read. The caller responds, and the connection ends.
    pub async fn recv(&mut self) -> Result<Option<Lease>, BodyError> {
        loop {
            if self.state.is_broken {
                // The cause was reported once. A caller that retries must not loop for ever.
                return Err(BodyError::Broken(io::ErrorKind::InvalidData.into()));
            }
            if self.state.has_ended() {
                if self.state.first_awaited.take().is_some() {
                    self.tx.slot().enter(Phase::Working, self.deadline.now());
                }
                return Ok(None);
            }
            self.fill().await?;
            match self.state.take_body_bytes() {
                Ok(None) => {}
                Ok(Some(lease)) => return self.counted(lease).map(Some),
                Err(refusal) => return Err(self.broken(BodyError::Refused(refusal))),
            }
        }
    }

    /// As [`RequestBody::recv`], for an upload: receives the next bytes into `pipe` where that is possible.
    ///
    /// # Errors
    /// As [`RequestBody::recv`].
    pub async fn recv_upload(
        &mut self,
        pipe: Option<ReceivePipe>,
    ) -> Result<Option<ReceivedBytes>, BodyError> {
        if let Some(pipe) = pipe
            && let Some(left) = self.state.left_in_connection()
        {
            self.begin_wait();
            match self.deadline.within(receive_piped(self.rx, &pipe, left)).await {
                Ok(Ok(PipedReceive::Bytes(received))) => {
                    self.state.received_unparsed(received.len());
                    self.check_length()?;
                    return Ok(Some(received));
                }
                Ok(Ok(PipedReceive::End)) => return Err(self.broken(BodyError::ended())),
                Ok(Ok(PipedReceive::Refused)) => {}
                Ok(Err(error)) => return Err(self.broken(BodyError::Broken(error))),
                Err(Elapsed) => return Err(self.broken(BodyError::Late)),
            }
        }
        Ok(self.recv().await?.map(|lease| ReceivedBytes::Memory(vec![lease])))
    }

    /// Receives the whole body. Its memory is proportional to the bytes received, and is wiped, because they
    /// may contain a password.
    ///
    /// # Errors
    /// As [`RequestBody::recv`]; [`BodyError::TooLong`] if it has more than `bytes_max`.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, BodyError> {
        let mut bytes = Zeroizing::new(Vec::new());
        while let Some(lease) = self.recv().await? {
            if bytes.len() + lease.len() > bytes_max {
                return Err(BodyError::TooLong);
            }
            append(&mut bytes, &lease, bytes_max);
        }
        Ok(bytes)
    }

    /// Waits for `work`. Returns `None` as soon as the client has closed its side or the connection broke:
    /// for responses that take long, and that only a waiting client needs (RFC 9112, section 9.5, advises
    /// monitoring the connection for its end). Stops monitoring when the client's next request arrives. With
    /// `with_interims`, interim responses are sent as by [`RequestBody::with_interims`]. Dropping the future
    /// loses nothing.
    pub async fn while_connected<T>(
        &mut self,
        with_interims: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let RequestBody { rx, tx, deadline, state, .. } = self;
        let working = async {
            match with_interims {
                Some(every) => send_interims_during(tx, deadline, every, work).await,
                None => work.await,
            }
        };
        match select(disconnected(rx, state), working).await {
            Either::Left(_) => None,
            Either::Right(done) => Some(done),
        }
    }

    /// As [`RequestBody::while_connected`], for work without which there is no response. A client that has
    /// closed its side may still wait for the response, so the work continues for [`HALF_CLOSED_TIME`]. If
    /// the connection broke, the work ends at once.
    pub async fn while_connected_or_recently<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let RequestBody { rx, deadline, state, .. } = self;
        let mut work = pin!(work);
        match select(disconnected(rx, state), work.as_mut()).await {
            Either::Right(done) => Some(done),
            Either::Left(Disconnect::Broken) => None,
            Either::Left(Disconnect::Ended) => {
                deadline.after(HALF_CLOSED_TIME);
                deadline.within(work).await.ok()
            }
        }
    }

    /// Waits for `work`, and sends an interim response, 102 (Processing), after each `every`: for clients
    /// that support it and would time out otherwise.
    pub async fn with_interims<T>(&mut self, every: Duration, work: impl Future<Output = T>) -> T {
        send_interims_during(self.tx, self.deadline, every, work).await
    }

    /// Reads and drops the rest. Returns false if the rest is too long for that.
    ///
    /// # Errors
    /// As [`RequestBody::recv`].
    pub(super) async fn discard(&mut self) -> Result<bool, BodyError> {
        let mut dropped = 0;
        while let Some(lease) = self.recv().await? {
            dropped += lease.len() as u64;
            if dropped > DISCARD_BYTES_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives bytes, if all received ones have been parsed.
    async fn fill(&mut self) -> Result<(), BodyError> {
        if self.state.unread.as_ref().is_some_and(|lease| !lease.is_empty()) {
            return Ok(());
        }
        self.begin_wait();
        match self.deadline.within(self.rx.recv(Want::Body)).await {
            Ok(Ok(Some(lease))) => self.state.unread = Some(lease),
            Ok(Ok(None)) => return Err(self.broken(BodyError::ended())),
            Ok(Err(error)) => return Err(self.broken(BodyError::Broken(error))),
            Err(_) => return Err(self.broken(BodyError::Late)),
        }
        Ok(())
    }

    /// Permits the client to send the body, and sets the deadline for the next bytes.
    fn begin_wait(&mut self) {
        if std::mem::take(&mut self.state.expects_continue) {
            self.tx.push(Segment::Static(CONTINUE));
        }
        self.deadline.set(self.due());
    }

    /// Returns the deadline for the next bytes. A client that has not authenticated has a time limit for the
    /// whole body, and must keep a minimum rate.
    fn due(&mut self) -> Instant {
        let now = self.deadline.now();
        let due = now + self.limits.receive_time;
        if self.tx.slot().is_authenticated() {
            return due;
        }
        self.tx.slot().enter(Phase::Waiting, now);
        let seconds = self.state.received / UNAUTHENTICATED_BYTES_PER_SECOND_MIN;
        let whole = self.limits.body_time + Duration::from_secs(seconds);
        due.min(*self.state.first_awaited.get_or_insert(now) + whole)
    }

    fn counted(&mut self, lease: Lease) -> Result<Lease, BodyError> {
        self.state.received += lease.len() as u64;
        self.check_length().map(|()| lease)
    }

    fn check_length(&mut self) -> Result<(), BodyError> {
        if self.state.received > self.limits.body_bytes_max {
            return Err(self.broken(BodyError::TooLong));
        }
        Ok(())
    }

    fn broken(&mut self, error: BodyError) -> BodyError {
        self.state.is_broken = true;
        error
    }
}

/// Appends to `bytes`. If they are reallocated, the old memory is wiped, which a growing vector does not
/// do.
fn append(bytes: &mut Zeroizing<Vec<u8>>, more: &[u8], max: usize) {
    let length = bytes.len() + more.len();
    if length > bytes.capacity() {
        let capacity = length.max((2 * bytes.capacity()).min(max));
        let mut moved = Zeroizing::new(Vec::with_capacity(capacity));
        moved.extend_from_slice(bytes);
        *bytes = moved;
    }
    bytes.extend_from_slice(more);
}

async fn send_interims_during<T>(
    tx: &mut Tx,
    deadline: &Deadline,
    every: Duration,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        deadline.after(every);
        match deadline.within(work.as_mut()).await {
            Ok(done) => return done,
            Err(Elapsed) => tx.push(Segment::Static(PROCESSING)),
        }
    }
}

/// The way in which a client has left.
enum Disconnect {
    /// The client closed its side.
    Ended,
    /// The connection broke.
    Broken,
}

/// Waits until the client has closed its side or the connection broke. Never ready if the client sends
/// something before.
async fn disconnected(rx: &mut Rx, state: &mut BodyState) -> Disconnect {
    if state.has_ended() && state.unread.is_none() {
        match rx.recv(Want::Head).await {
            Ok(Some(lease)) => state.unread = Some(lease),
            Ok(None) => return Disconnect::Ended,
            Err(_) => return Disconnect::Broken,
        }
    }
    pending().await
}

impl BodyState {
    /// Returns how many bytes of the body are still in the connection, if all received ones have been parsed
    /// and the connection carries them as they are. None at the end of the body.
    fn left_in_connection(&self) -> Option<u64> {
        let has_parsed_all = self.unread.as_ref().is_none_or(|lease| lease.is_empty());
        Some(self.decoder.plain()).filter(|left| *left > 0 && has_parsed_all && !self.is_broken)
    }

    /// Notes that this many [bytes left in the connection](BodyState::left_in_connection) were received.
    fn received_unparsed(&mut self, bytes: u64) {
        self.received += bytes;
        self.decoder.skip(bytes);
    }

    /// Takes body bytes from the unread bytes; `None` if there are none.
    fn take_body_bytes(&mut self) -> Result<Option<Lease>, Refusal> {
        let Some(mut lease) = self.unread.take() else { return Ok(None) };
        let decoded = self.decoder.decode(&mut lease)?;
        self.unread = Some(lease.split_off(decoded.consumed)).filter(|rest| !rest.is_empty());
        lease.truncate(decoded.len);
        Ok(Some(lease).filter(|lease| !lease.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_received_bytes() {
        let mut bytes = Zeroizing::new(Vec::new());
        for byte in 0..=255 {
            append(&mut bytes, &[byte], 300);
            assert!(
                bytes.capacity() <= (2 * bytes.len()).min(300),
                "{} of {}",
                bytes.len(),
                bytes.capacity()
            );
        }
        assert_eq!(**bytes, (0..=255).collect::<Vec<u8>>());
    }
}
