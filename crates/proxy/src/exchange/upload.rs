//! A request's way to its origin: the body, while the client sends it, and then the watch for the client's
//! end.
//!
//! It does not receive the response. Invariants: no more is received from the client than the origin takes,
//! beyond a bound. A body that the client has cut short never looks whole to the origin. A slow client cannot
//! hold the origin for ever.

use std::future::pending;
use std::time::Duration;

use plimsoll_io::{Elapsed, Instant, Lease, Phase, Rx, Segment, Slot, Tx, Want, keeping_upstream, pacing};
use plimsoll_proto::http::Limits;
use plimsoll_proto::http::limits::UNAUTHENTICATED_BYTES_PER_SECOND_MIN;
use plimsoll_wire::http::head::Framing;
use plimsoll_wire::http::status::Status;

use super::signals::{Signals, UploadState};
use super::{Deadlines, Exchange};
use crate::body::{BodyReader, OutFraming};
use crate::failure::Failure;
use crate::limits::{
    EARLY_BODY_BYTES_MAX, HALF_CLOSED_TIME, LATE_RESPONSE_TIME_MAX, RELAY_AHEAD_BYTES_MAX, REPLAY_BYTES_MAX,
    WATCH_AFTER_TIME,
};
use crate::proxy::Shared;
use crate::response_head::trailer_lines;

/// The body of a client's request, and a copy of the part that was sent.
pub(crate) struct RequestBody {
    reader: BodyReader,
    /// The bytes that were sent, while they are few enough to be sent again.
    sent: Option<Vec<u8>>,
    expects_continue: bool,
    /// The time for which the client was waited for.
    waited: Duration,
}

/// The upload of one attempt.
pub(super) struct Upload<'a> {
    pub(super) shared: &'a Shared,
    pub(super) rx: &'a mut Rx,
    pub(super) body: &'a mut RequestBody,
    pub(super) origin_tx: &'a mut Tx,
    pub(super) slot: &'a dyn Slot,
    pub(super) deadlines: Deadlines<'a>,
    pub(super) signals: &'a Signals,
    pub(super) framing: Framing,
}

const LATE: &str = "The body came too slowly. Send it faster.";

/// The reason why an upload has ended early.
enum UploadError {
    /// The exchange ends.
    Failed(Failure),
    /// The origin takes no more, but may have responded.
    OriginClosed,
}

impl RequestBody {
    pub(crate) fn new(reader: BodyReader, expects_continue: bool) -> RequestBody {
        // "A server MAY omit sending a 100 (Continue) response if it has already received some or all of the
        // content for the corresponding request" (RFC 9110, section 10.1.1).
        let expects_continue = expects_continue && reader.is_untouched();
        RequestBody { reader, sent: Some(Vec::new()), expects_continue, waited: Duration::ZERO }
    }

    /// Whether the client waits for a 100 (Continue) before it sends the body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.expects_continue && self.reader.is_untouched()
    }

    pub(super) fn is_replayable(&self) -> bool {
        self.sent.is_some()
    }

    pub(crate) fn reader(&mut self) -> &mut BodyReader {
        &mut self.reader
    }

    pub(crate) fn into_rest(self) -> Option<Lease> {
        self.reader.into_rest()
    }

    /// Returns how long the client may send nothing: a body has a minimum rate, beside some time.
    fn patience(&self, limits: &Limits) -> Duration {
        let seconds = self.reader.arrived() / UNAUTHENTICATED_BYTES_PER_SECOND_MIN;
        let whole = limits.body_time + Duration::from_secs(seconds);
        limits.receive_time.min(whole.saturating_sub(self.waited))
    }

    /// Takes bytes that were received behind the request.
    pub(super) fn take_rest(&mut self) -> Option<Lease> {
        let none = BodyReader::new(Framing::None, None);
        std::mem::replace(&mut self.reader, none).into_rest()
    }

    /// Copies bytes that are about to be sent, if they may have to be sent again.
    fn note(&mut self, segment: &Segment, framing: OutFraming) {
        let is_plain = matches!(framing, OutFraming::Length(_)) && segment.is_in_memory();
        let fits = |sent: &Vec<u8>| is_plain && sent.len() + segment.bytes().len() <= REPLAY_BYTES_MAX;
        self.sent = self.sent.take().filter(fits);
        if let Some(sent) = &mut self.sent {
            sent.extend_from_slice(segment.bytes());
        }
    }
}

impl Exchange<'_> {
    /// Receives a short body before a connection to an origin is chosen, so that a slow client keeps none
    /// waiting.
    pub(super) async fn receive_short_body(&mut self) -> Result<(), Failure> {
        let is_short = matches!(self.request.head.framing(), Framing::Length(1..=EARLY_BODY_BYTES_MAX));
        if !is_short || self.body.expects_continue() {
            return Ok(());
        }
        let (deadline, limits) = (self.deadlines.upload, &self.shared.settings.limits);
        while !self.body.reader.has_all() {
            let begun = deadline.now();
            deadline.after(self.body.patience(limits));
            self.tx.slot().enter(Phase::Waiting, begun);
            let received = deadline.within(self.body.reader.receive_more(self.rx)).await;
            self.body.waited += deadline.now() - begun;
            match received {
                Ok(received) => received.map_err(Failure::of_client_body)?,
                Err(Elapsed) => return Err(Failure::ClientBody(Status::REQUEST_TIMEOUT, LATE)),
            }
        }
        self.tx.slot().enter(Phase::Working, self.shared.io.now());
        Ok(())
    }
}

impl Upload<'_> {
    /// Sends the body, and then watches the client. Ready only if the exchange has failed.
    pub(super) async fn run(&mut self) -> Failure {
        match self.send().await {
            Ok(()) => {
                self.signals.set_upload(UploadState::Done);
                if !self.signals.is_answered() {
                    self.deadlines.download.after(self.shared.settings.times.first_byte);
                }
                self.slot.enter(Phase::Working, self.shared.io.now());
                self.watch().await
            }
            Err(UploadError::Failed(failure)) => failure,
            Err(UploadError::OriginClosed) => {
                if !self.signals.is_answered() {
                    self.deadlines.download.after(LATE_RESPONSE_TIME_MAX);
                }
                pending().await
            }
        }
    }

    async fn send(&mut self) -> Result<(), UploadError> {
        let framing = match self.framing {
            Framing::None | Framing::Length(0) => return Ok(()),
            Framing::Length(bytes) => OutFraming::Length(bytes),
            Framing::Chunked => OutFraming::Chunked,
        };
        if let Some(sent) = self.body.sent.as_ref().filter(|sent| !sent.is_empty()) {
            framing.push(Segment::Owned(sent.clone()), self.origin_tx);
        }
        while let Some(segment) = self.receive().await.map_err(UploadError::Failed)? {
            self.signals.set_upload(UploadState::Sending);
            if !self.signals.is_answered() {
                self.deadlines.download.set(Instant::NEVER);
            }
            self.body.note(&segment, framing);
            framing.push(segment, self.origin_tx);
            if self.origin_tx.unsent() > RELAY_AHEAD_BYTES_MAX {
                self.drain().await?;
            }
        }
        let rules = &self.shared.settings.fields;
        let trailers = self.body.reader.trailers().filter(|(name, _)| !rules.remove(name));
        framing.push_end(&trailer_lines(trailers), self.origin_tx);
        self.drain().await
    }

    /// Waits until the origin has taken enough of the pushed bytes.
    async fn drain(&mut self) -> Result<(), UploadError> {
        let (times, deadline) = (&self.shared.settings.times, self.deadlines.upload);
        let drained =
            pacing::drain(self.origin_tx, RELAY_AHEAD_BYTES_MAX, deadline, times.between_bytes, |_, _| {});
        match drained.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(UploadError::OriginClosed),
            Err(Elapsed) => Err(UploadError::Failed(Failure::Late)),
        }
    }

    /// Receives the next bytes of the body.
    async fn receive(&mut self) -> Result<Option<Segment>, Failure> {
        const TOO_LONG: &str = "The body is longer than this proxy forwards. Send less.";
        let deadline = self.deadlines.upload;
        let begun = deadline.now();
        if self.body.expects_continue() && self.signals.upload() == UploadState::Begun {
            // The client waits for the origin, whose response has a deadline.
            deadline.set(Instant::NEVER);
        } else {
            deadline.after(self.body.patience(&self.shared.settings.limits));
        }
        if !self.slot.is_authenticated() {
            self.slot.enter(Phase::Waiting, begun);
        }
        let receiving = deadline.within(self.body.reader.next(self.rx, self.origin_tx));
        let received = keeping_upstream(self.slot, receiving).await;
        if self.signals.upload() != UploadState::Begun {
            self.body.waited += deadline.now() - begun;
        }
        let segment = match received {
            Ok(received) => received.map_err(Failure::of_client_body)?,
            Err(Elapsed) => return Err(Failure::ClientBody(Status::REQUEST_TIMEOUT, LATE)),
        };
        if self.body.reader.received() > self.shared.settings.limits.body_bytes_max {
            return Err(Failure::ClientBody(Status::CONTENT_TOO_LARGE, TOO_LONG));
        }
        Ok(segment)
    }

    /// Waits until the client has left. Stays pending once the response has begun: then sending it detects
    /// that.
    async fn watch(&mut self) -> Failure {
        let deadline = self.deadlines.upload;
        deadline.after(WATCH_AFTER_TIME);
        let _: Result<(), Elapsed> = deadline.within(pending()).await;
        if self.body.reader.has_rest() || self.signals.is_answered() {
            return pending().await;
        }
        match self.rx.recv(Want::Head).await {
            Ok(Some(lease)) => {
                self.body.reader.keep_rest(lease);
                pending().await
            }
            Ok(None) => {
                deadline.after(HALF_CLOSED_TIME);
                let _: Result<(), Elapsed> = deadline.within(pending()).await;
                if self.signals.is_answered() { pending().await } else { Failure::ClientGone }
            }
            Err(_) => Failure::ClientGone,
        }
    }
}
