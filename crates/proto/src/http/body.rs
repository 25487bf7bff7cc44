//! The body of a request, one lease at a time.
//!
//! It stores nothing. What must hold: what follows the body is left for the next request; the length that
//! was announced, or the limit, is never passed; a client that waits for leave to send gets it when the
//! body is first asked for, and not before.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use plimsoll_io::{Deadline, Either, Elapsed, Instant, Lease, Phase, Rx, Segment, Tx, Want, select};
use plimsoll_wire::http::answer::{CONTINUE, PROCESSING};
use plimsoll_wire::http::chunked::{ChunkedDecoder, Step};
use plimsoll_wire::http::head::Framing;
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::status::Status;
use zeroize::Zeroizing;

use super::limits::{DISCARD_BYTES_MAX, HALF_CLOSED_TIME, Limits, UNAUTHENTICATED_BYTES_PER_SECOND_MIN};

/// A request's body, as far as it was not read.
pub struct RequestBody<'a> {
    pub(super) rx: &'a mut Rx,
    pub(super) tx: &'a mut Tx,
    pub(super) deadline: &'a Deadline,
    pub(super) limits: &'a Limits,
    pub(super) state: &'a mut BodyState,
}

/// How far a body has got: it outlives the request that lends it.
pub(super) struct BodyState {
    progress: Progress,
    /// Bytes that came and were not looked at: the rest of the head's block, then of each receive.
    unread: Option<Lease>,
    received: u64,
    /// When it was first waited for, if its client had not authenticated.
    awaited: Option<Instant>,
    expects_continue: bool,
}

enum Progress {
    Length(u64),
    Chunked(ChunkedDecoder),
    Ended,
    Broken,
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// The connection broke, or the peer ended before the body did.
    Broken(io::Error),
    /// Nothing came for too long.
    Late,
    /// It is longer than may be.
    TooLong,
    /// Its coding is broken.
    Refused(Refusal),
}

impl BodyError {
    /// Returns the status and the sentence of a response to the client.
    pub fn refusal(&self) -> (Status, &'static str) {
        match self {
            BodyError::Broken(_) => (Status::BAD_REQUEST, "The body ended before its end. Send all of it."),
            BodyError::Late => (Status::REQUEST_TIMEOUT, "The body came too slowly. Send it faster."),
            BodyError::TooLong => {
                (Status::CONTENT_TOO_LARGE, "The body is longer than this server takes. Send less.")
            }
            BodyError::Refused(refusal) => (refusal.status(), refusal.detail()),
        }
    }
}

impl BodyState {
    /// The body of a request whose head is followed by `unread`.
    pub(super) fn new(framing: Framing, unread: Option<Lease>, expects_continue: bool) -> BodyState {
        let progress = match framing {
            Framing::None | Framing::Length(0) => Progress::Ended,
            Framing::Length(bytes) => Progress::Length(bytes),
            Framing::Chunked => Progress::Chunked(ChunkedDecoder::new()),
        };
        // "A server MAY omit sending a 100 (Continue) response if it has already received some or all of the
        // content for the corresponding request" (RFC 9110, section 10.1.1).
        let expects_continue = expects_continue && unread.is_none();
        BodyState { progress, unread, received: 0, awaited: None, expects_continue }
    }

    /// Whether the connection can go on: the body has ended, or so little of it is left to come that it is
    /// read and dropped.
    pub(super) fn can_be_discarded(&self) -> bool {
        match self.progress {
            Progress::Ended => true,
            Progress::Length(left) => left <= DISCARD_BYTES_MAX && !self.expects_continue,
            Progress::Chunked(_) => !self.expects_continue,
            Progress::Broken => false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.progress, Progress::Ended)
    }

    /// What came after the body: the next request's.
    pub(super) fn into_rest(self) -> Option<Lease> {
        self.unread.filter(|lease| !lease.is_empty())
    }
}

impl RequestBody<'_> {
    /// The next bytes, or `None` at the body's end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body cannot be read; answer and close.
    pub async fn recv(&mut self) -> Result<Option<Lease>, BodyError> {
        loop {
            match self.state.progress {
                Progress::Ended => {
                    if self.state.awaited.take().is_some() {
                        self.tx.slot().enter(Phase::Working, self.deadline.now());
                    }
                    return Ok(None);
                }
                // It was told once what it was; asking again must not go round in circles.
                Progress::Broken => return Err(BodyError::Broken(io::ErrorKind::InvalidData.into())),
                Progress::Length(_) | Progress::Chunked(_) => {}
            }
            self.fill().await?;
            match self.state.take_some() {
                Ok(None) => {}
                Ok(Some(lease)) => return self.counted(lease).map(Some),
                Err(refusal) => return Err(self.broken(BodyError::Refused(refusal))),
            }
        }
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

    /// Waits for `work`; for none of it as soon as the peer has ended or broken off: for an answer that takes
    /// long, and that nobody may want any more (RFC 9112, section 9.5, has connections watched for their
    /// end). A peer whose next request has come is watched no further. The peer is told after each `telling`
    /// that the work is under way, as by [`RequestBody::telling`]. Dropping the future loses nothing.
    pub async fn unless_gone<T>(
        &mut self,
        telling: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let RequestBody { rx, tx, deadline, state, .. } = self;
        let working = async {
            match telling {
                Some(every) => tell(tx, deadline, every, work).await,
                None => work.await,
            }
        };
        match select(gone(rx, state), working).await {
            Either::Left(_) => None,
            Either::Right(done) => Some(done),
        }
    }

    /// As [`RequestBody::unless_gone`], for work without which there is no response: a peer that has ended
    /// its side may still wait for it, so the work goes on for [`HALF_CLOSED_TIME`]; not if the connection
    /// broke.
    pub async fn unless_gone_for_long<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let RequestBody { rx, deadline, state, .. } = self;
        let mut work = pin!(work);
        match select(gone(rx, state), work.as_mut()).await {
            Either::Right(done) => Some(done),
            Either::Left(Gone::Broken) => None,
            Either::Left(Gone::Ended) => {
                deadline.after(HALF_CLOSED_TIME);
                deadline.within(work).await.ok()
            }
        }
    }

    /// Waits for `work`, and tells the peer after each `every` that it is under way, by a 102 (Processing):
    /// for peers who know of it, and who wait for no word so much longer than that.
    pub async fn telling<T>(&mut self, every: Duration, work: impl Future<Output = T>) -> T {
        tell(self.tx, self.deadline, every, work).await
    }

    /// Reads the rest and drops it; false if that is more than is worth it.
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

    /// Sees that there are bytes to look at.
    async fn fill(&mut self) -> Result<(), BodyError> {
        if self.state.unread.as_ref().is_some_and(|lease| !lease.is_empty()) {
            return Ok(());
        }
        if std::mem::take(&mut self.state.expects_continue) {
            self.tx.push(Segment::Static(CONTINUE));
        }
        self.deadline.set(self.due());
        match self.deadline.within(self.rx.recv(Want::Body)).await {
            Ok(Ok(Some(lease))) => self.state.unread = Some(lease),
            Ok(Ok(None)) => return Err(self.broken(BodyError::Broken(io::ErrorKind::UnexpectedEof.into()))),
            Ok(Err(error)) => return Err(self.broken(BodyError::Broken(error))),
            Err(_) => return Err(self.broken(BodyError::Late)),
        }
        Ok(())
    }

    /// When the next bytes must be there. A client that has not authenticated has a time for the whole body,
    /// and has to send at a least rate.
    fn due(&mut self) -> Instant {
        let now = self.deadline.now();
        let due = now + self.limits.receive_time;
        if self.tx.slot().is_authenticated() {
            return due;
        }
        self.tx.slot().enter(Phase::Waiting, now);
        let seconds = self.state.received / UNAUTHENTICATED_BYTES_PER_SECOND_MIN;
        let whole = self.limits.body_time + Duration::from_secs(seconds);
        due.min(*self.state.awaited.get_or_insert(now) + whole)
    }

    fn counted(&mut self, lease: Lease) -> Result<Lease, BodyError> {
        self.state.received += lease.len() as u64;
        if self.state.received > self.limits.body_bytes_max {
            return Err(self.broken(BodyError::TooLong));
        }
        Ok(lease)
    }

    fn broken(&mut self, error: BodyError) -> BodyError {
        self.state.progress = Progress::Broken;
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

async fn tell<T>(tx: &mut Tx, deadline: &Deadline, every: Duration, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        deadline.after(every);
        match deadline.within(work.as_mut()).await {
            Ok(done) => return done,
            Err(Elapsed) => tx.push(Segment::Static(PROCESSING)),
        }
    }
}

/// How a peer is gone.
enum Gone {
    /// It sends nothing more.
    Ended,
    /// Its connection broke.
    Broken,
}

/// Ready when the peer has ended or broken off, and has sent nothing before.
async fn gone(rx: &mut Rx, state: &mut BodyState) -> Gone {
    if state.has_ended() && state.unread.is_none() {
        match rx.recv(Want::Head).await {
            Ok(Some(lease)) => state.unread = Some(lease),
            Ok(None) => return Gone::Ended,
            Err(_) => return Gone::Broken,
        }
    }
    pending().await
}

impl BodyState {
    /// Takes body bytes out of what is unread; `None` if there were none among it.
    fn take_some(&mut self) -> Result<Option<Lease>, Refusal> {
        let Some(mut lease) = self.unread.take() else { return Ok(None) };
        match &mut self.progress {
            Progress::Length(left) => {
                let bytes = usize::try_from(*left).unwrap_or(usize::MAX).min(lease.len());
                *left -= bytes as u64;
                if *left == 0 {
                    self.progress = Progress::Ended;
                }
                self.unread = split_off(&mut lease, bytes);
            }
            Progress::Chunked(decoder) => {
                let unchunked = unchunk(decoder, &mut lease)?;
                if decoder.is_ended() {
                    self.progress = Progress::Ended;
                }
                self.unread = split_off(&mut lease, unchunked.consumed);
                lease.truncate(unchunked.bytes);
            }
            Progress::Ended | Progress::Broken => {
                self.unread = Some(std::mem::replace(&mut lease, Lease::owned(Vec::new())))
            }
        }
        Ok(Some(lease).filter(|lease| !lease.is_empty()))
    }
}

/// How much of a lease was looked at, and how many body bytes stand at its start now.
struct Unchunked {
    consumed: usize,
    bytes: usize,
}

/// Moves the bytes of all chunks in `lease` to its start. The lease is ours alone, so nothing is copied to
/// other memory, and a chunk that fills the lease moves by its head's few bytes.
fn unchunk(decoder: &mut ChunkedDecoder, lease: &mut Lease) -> Result<Unchunked, Refusal> {
    let mut done = Unchunked { consumed: 0, bytes: 0 };
    loop {
        match decoder.decode(&lease[done.consumed..])? {
            Step::Data { skip, len } => {
                let start = done.consumed + skip;
                lease.copy_within(start..start + len, done.bytes);
                done.consumed = start + len;
                done.bytes += len;
            }
            Step::More { consumed } | Step::End { consumed } => {
                done.consumed += consumed;
                return Ok(done);
            }
        }
    }
}

/// Cuts `lease` after `bytes`; what followed, in memory of its own.
fn split_off(lease: &mut Lease, bytes: usize) -> Option<Lease> {
    let rest = &lease[bytes..];
    let rest = (!rest.is_empty()).then(|| Lease::owned(rest.to_vec()));
    lease.truncate(bytes);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_of_the_size_of_what_has_come() {
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
