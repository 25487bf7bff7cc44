//! A response that the cache takes part in: recorded, replaced by a stored one, or relayed after all.
//!
//! It decides nothing about storing ([`crate::caching`] does). Invariants: recording goes on when the client
//! has left; an error of the cache costs the stored object, and never the client's response.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use plimsoll_io::{Deadline, Either, Elapsed, Io, Rx, Segment, keeping_upstream, select};
use plimsoll_proto::drain;
use plimsoll_wire::http::response::{Framing, ResponseHead};

use super::OutcomeEnding;
use super::download::{Download, Downloaded};
use super::rest::{Unsent, UnsentRecording};
use crate::body::{BodyReader, OutFraming};
use crate::cache::limits::RECORD_BYTES_MAX;
use crate::cache::policy::{CacheStatus, FieldLines};
use crate::cache::recorder::Recorder;
use crate::cache::store::PassedFile;
use crate::caching::{CachePass, ClientSide, NotSent, Part, Received, Recording, Selection, StoredAnswer};
use crate::failure::Failure;
use crate::limits::RELAY_AHEAD_BYTES_MAX;

/// The state of a response that was offered to the cache.
pub(super) enum Offered<'r> {
    /// It is relayed, with this Cache-Status.
    Relay(CacheStatus),
    /// The client has its response.
    Done(Downloaded<'r>),
}

/// The reason why a body was not recorded to its end.
enum NotRecorded {
    /// The origin failed.
    Origin(Failure),
    /// The cache failed after so many bytes. The others were received and not recorded.
    Cache(u64, Vec<u8>),
}

impl<'r> Download<'_, 'r> {
    /// Offers a response to the cache.
    pub(super) async fn offer(
        &mut self,
        pass: CachePass<'r>,
        head: &ResponseHead,
    ) -> Result<Offered<'r>, Failure> {
        let block = self.inbox.buffered.as_deref().unwrap_or_default();
        let lines = block.get(..head.len()).unwrap_or_default().to_vec();
        let received = pass.receive(&self.shared.io, head, FieldLines::of_head(&lines)).await;
        Ok(Offered::Done(match received {
            Received::Relay(status) => return Ok(Offered::Relay(status)),
            Received::Repeat => self.looked_up_again(head),
            Received::Dropped => Downloaded::whole(self.keep, self.take_bodiless(head)),
            Received::Rest(None) => return Err(Failure::Unexpected),
            Received::Rest(Some(part)) => {
                let mut body = self.take_body(head);
                self.relay_part(&mut body, Vec::new(), part).await?;
                let is_reusable = head.keeps_alive() && body.has_ended() && body.into_rest().is_none();
                Downloaded::whole(self.keep, is_reusable)
            }
            Received::Record(recording) => self.store(recording, head).await?,
            // The origin has changed its file since the request was sent.
            Received::Stored(stored)
                if stored.cache.drop_if_changed(&self.shared.io, &stored.object).await =>
            {
                self.looked_up_again(head)
            }
            Received::Stored(stored) => {
                let (is_reusable, unsent) = (self.take_bodiless(head), Some(Unsent::Stored(stored)));
                Downloaded::Whole { keep: self.keep, is_reusable, unsent }
            }
        }))
    }

    /// Drops the response: another lookup answers the request.
    fn looked_up_again(&mut self, head: &ResponseHead) -> Downloaded<'r> {
        let unsent = Some(Unsent::Elsewhere(OutcomeEnding::Repeat));
        Downloaded::Whole { keep: self.keep, is_reusable: self.take_bodiless(head), unsent }
    }

    /// Removes a head without a body from the received bytes. Returns whether the connection can be used
    /// again.
    fn take_bodiless(&mut self, head: &ResponseHead) -> bool {
        let block = self.inbox.take();
        head.keeps_alive() && head.framing() == Framing::None && block.len() == head.len()
    }

    /// Keeps the body if the origin has passed it as an open file, or records it.
    async fn store(
        &mut self,
        recording: Box<Recording<'r>>,
        head: &ResponseHead,
    ) -> Result<Downloaded<'r>, Failure> {
        let mut body = self.take_body(head);
        let Some(file) = self.passed_file(&mut body, recording.sent).await? else {
            return self.record(recording, head, body).await;
        };
        let Recording { request, status, cache, lead, head: stored, room, is_for_client, .. } = *recording;
        // Nothing is written, and the client may be slow.
        drop(room);
        let (object, is_stored) = cache.keep(stored, file, lead.storing());
        lead.pass(&object);
        // It may have replaced an object with a file on disk, which a start would find again.
        cache.remove_later(&self.shared.io);
        let is_reusable = head.keeps_alive() && body.into_rest().is_none();
        let status = CacheStatus { is_stored, ..status };
        let fields = object.head.fields.clone();
        let stored = StoredAnswer { request, cache, object, fields, status };
        let unsent = is_for_client.then(|| Unsent::Stored(Box::new(stored)));
        Ok(Downloaded::Whole { keep: self.keep, is_reusable, unsent })
    }

    /// Receives the whole body as an open file, if the origin has passed one.
    async fn passed_file(
        &mut self,
        body: &mut BodyReader,
        sent: Option<SystemTime>,
    ) -> Result<Option<PassedFile>, Failure> {
        let Some(sent) = sent else { return Ok(None) };
        let (io, rx) = (&self.shared.io, &mut self.inbox.rx);
        let deadline = self.deadlines.download;
        deadline.after(self.shared.settings.times.between_bytes);
        let Some(part) = deadline.within(body.passed_file(rx)).await.map_err(|Elapsed| Failure::Late)? else {
            return Ok(None);
        };
        let file = PassedFile::new(io, part, sent).await;
        // It is there: this does not wait.
        Ok(if file.is_some() && body.take_passed_file(rx).await { file } else { None })
    }

    /// Records the body, and sends it to the client from the recording.
    async fn record(
        &mut self,
        recording: Box<Recording<'r>>,
        head: &ResponseHead,
        mut body: BodyReader,
    ) -> Result<Downloaded<'r>, Failure> {
        let Recording { request, status, cache, lead, head: stored, length, room, is_for_client, .. } =
            *recording;
        let recorder = Recorder::begin(&cache, lead, stored.clone(), length, room);
        let follower = recorder.follower();
        let shared = self.shared;
        let (deadline, between) = (self.deadlines.download, shared.settings.times.between_bytes);
        let recording = record_body(&shared.io, recorder, &mut body, &mut self.inbox.rx, deadline, between);
        if !is_for_client {
            let is_recorded = recording.await.is_ok();
            let is_reusable = is_recorded && head.keeps_alive() && body.into_rest().is_none();
            return Ok(Downloaded::whole(self.keep, is_reusable));
        }
        let mut client = ClientSide {
            shared,
            tx: &mut *self.tx,
            deadline: self.deadlines.upload,
            signals: self.signals,
            request: &request,
            version: self.request.head.version(),
            keep: self.keep && !shared.io.is_stopping(),
        };
        let status = CacheStatus { is_stored: true, ..status };
        let selection = Selection::of(&request, &stored, length);
        let range = client.range_to_send(&selection, length.unwrap_or(u64::MAX));
        let (before, framing) = (self.signals.counted(), client.framing(length));
        let keep = client.keep && framing != OutFraming::UntilClose;
        let (recorded, sent) = {
            let sending = client.send_fetched(&follower, &stored, length, &status, None);
            record_while_sending(recording, sending).await
        };
        let is_recorded = recorded.is_ok();
        let Some(sent) = sent else {
            let at = self.signals.counted() - before;
            let unsent = range.map(|range| {
                let range = range.start + at..range.end;
                Unsent::Recorded(Box::new(UnsentRecording { request, head: stored, follower, range, length }))
            });
            let is_reusable = head.keeps_alive() && body.into_rest().is_none();
            return Ok(Downloaded::Whole { keep, is_reusable, unsent });
        };
        match (recorded, sent) {
            (Err(NotRecorded::Origin(failure)), _) => Err(failure),
            // The client has all that was recorded of what it wants.
            (Err(NotRecorded::Cache(recorded, rest)), Err(NotSent::CutShort(sent))) if sent >= recorded => {
                let length = selection.end().map(|end| end.saturating_sub(sent));
                let part = Part { skipped: sent - recorded, length, framing };
                self.relay_part(&mut body, rest, part).await?;
                Ok(Downloaded::whole(keep, false))
            }
            (_, sent) => {
                let unsent = sent.is_err().then(|| Unsent::Elsewhere(client.ending(&sent, &stored, length)));
                let is_reusable = is_recorded && head.keeps_alive() && body.into_rest().is_none();
                Ok(Downloaded::Whole { keep, is_reusable, unsent })
            }
        }
    }

    /// Takes the head out of the received bytes, and returns the reader of the body.
    fn take_body(&mut self, head: &ResponseHead) -> BodyReader {
        let mut block = self.inbox.take();
        block.consume(head.len());
        BodyReader::new(head.framing(), Some(block))
    }

    /// Relays a part of a body behind the bytes that the client has. `received` was received before.
    async fn relay_part(
        &mut self,
        body: &mut BodyReader,
        mut received: Vec<u8>,
        part: Part,
    ) -> Result<(), Failure> {
        let Part { mut skipped, length: mut left, framing } = part;
        let (times, limits) = (&self.shared.settings.times, &self.shared.settings.limits);
        let deadline = self.deadlines.download;
        loop {
            let dropped = usize::try_from(skipped).unwrap_or(usize::MAX).min(received.len());
            skipped -= dropped as u64;
            received.drain(..dropped);
            if let Some(left) = &mut left {
                received.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= received.len() as u64;
            }
            self.signals.count(received.len() as u64);
            framing.push(Segment::Owned(received), self.tx);
            let slot = self.tx.slot().clone();
            let draining = drain(self.tx, RELAY_AHEAD_BYTES_MAX, deadline, limits.send_time);
            let drained = keeping_upstream(&*slot, draining).await;
            drained.map_err(|_| Failure::ClientGone)?;
            if left == Some(0) {
                break;
            }
            deadline.after(times.between_bytes);
            let next = deadline.within(body.next_bytes(&mut self.inbox.rx, RECORD_BYTES_MAX)).await;
            let next = next.map_err(|Elapsed| Failure::Late)?;
            match next.map_err(|error| Failure::of_origin_body(&error))? {
                Some(bytes) => received = bytes,
                None if left.is_none() && skipped == 0 => break,
                None => return Err(Failure::Unexpected),
            }
        }
        framing.push_end(&[], self.tx);
        Ok(())
    }
}

/// Records a body while its start is sent. Returns no result of the sending if the recording ends first.
async fn record_while_sending<R, S>(
    recording: impl Future<Output = Result<(), R>>,
    sending: impl Future<Output = S>,
) -> (Result<(), R>, Option<S>) {
    let (mut recording, mut sending) = (pin!(recording), pin!(sending));
    // The head is pushed when the sending is first polled.
    match select(sending.as_mut(), recording.as_mut()).await {
        Either::Left(sent) => (recording.await, Some(sent)),
        Either::Right(Ok(())) => (Ok(()), None),
        Either::Right(Err(error)) => (Err(error), Some(sending.await)),
    }
}

/// Receives a body to its end and records it. Does not wait until the object is stored: until then, requests
/// follow the fetch.
async fn record_body(
    io: &Io,
    mut recorder: Recorder,
    body: &mut BodyReader,
    rx: &mut Rx,
    deadline: &Deadline,
    between_bytes: Duration,
) -> Result<(), NotRecorded> {
    loop {
        deadline.after(between_bytes);
        let received = deadline.within(body.next_bytes(rx, RECORD_BYTES_MAX)).await;
        let received = received.map_err(|Elapsed| NotRecorded::Origin(Failure::Late))?;
        let received = received.map_err(|error| NotRecorded::Origin(Failure::of_origin_body(&error)))?;
        let Some(bytes) = received else {
            recorder.finish(io);
            return Ok(());
        };
        if let Err((error, rest)) = recorder.push(io, bytes).await {
            let received = recorder.received();
            recorder.abandon(io, &error);
            return Err(NotRecorded::Cache(received, rest));
        }
    }
}
