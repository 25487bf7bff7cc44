//! A response that the cache takes part in: recorded, replaced by a stored one, or relayed after all.
//!
//! It decides nothing about storing ([`crate::caching`] does). Invariants: recording goes on when the client
//! has left; an error of the cache costs the stored object, and never the client's response.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Deadline, Elapsed, Io, Rx, Segment, join};
use plimsoll_proto::drain;
use plimsoll_wire::http::response::{Framing, ResponseHead};

use super::download::{Download, Downloaded};
use crate::body::BodyReader;
use crate::cache::limits::RECORD_BYTES_MAX;
use crate::cache::policy::{CacheRequest, CacheStatus, FieldBlock, FieldLines};
use crate::cache::recorder::Recorder;
use crate::cache::response_cache::ResponseCache;
use crate::cache::store::Object;
use crate::caching::{CachePass, ClientSide, NotSent, Received, Recording};
use crate::failure::Failure;
use crate::limits::RELAY_AHEAD_BYTES_MAX;
use crate::response_head::framing_for;

/// The state of a response that was offered to the cache.
pub(super) enum Offered {
    /// It is relayed, with this Cache-Status.
    Relay(CacheStatus),
    /// The client has its response.
    Done(Downloaded),
}

/// The reason why a body was not recorded to its end.
enum NotRecorded {
    /// The origin failed.
    Origin(Failure),
    /// The cache failed after so many bytes. The others were received and not recorded.
    Cache(u64, Vec<u8>),
}

impl Download<'_, '_> {
    /// Offers a response to the cache.
    pub(super) async fn offer(
        &mut self,
        pass: CachePass<'_>,
        head: &ResponseHead,
    ) -> Result<Offered, Failure> {
        let block = self.inbox.buffered.as_deref().unwrap_or_default();
        let lines = block.get(..head.len()).unwrap_or_default().to_vec();
        let (request, cache) = (pass.request().clone(), Arc::clone(pass.cache()));
        let (status, is_refresh) = (pass.status(), pass.is_refresh());
        let received = pass.receive(&self.shared.io, head, FieldLines::of_head(&lines)).await;
        let dropped = Downloaded::Whole { keep: self.keep, is_reusable: false };
        Ok(Offered::Done(match received {
            Received::Relay(status) => return Ok(Offered::Relay(status)),
            Received::Repeat => Downloaded::Repeat,
            Received::Dropped => dropped,
            Received::Record(recording) => self.record(&request, &cache, recording, head, status).await?,
            Received::Stored { object, fields } => {
                let is_reusable = self.take_bodiless(head);
                let keep = if is_refresh {
                    self.keep
                } else {
                    let status = CachePass::stored_status(status, head.status());
                    self.send_stored(&request, &cache, (&object, &fields), &status).await?
                };
                Downloaded::Whole { keep, is_reusable }
            }
        }))
    }

    /// Removes a head without a body from the received bytes. Returns whether the connection can be used
    /// again.
    fn take_bodiless(&mut self, head: &ResponseHead) -> bool {
        let block = self.inbox.take();
        head.keeps_alive() && head.framing() == Framing::None && block.len() == head.len()
    }

    async fn send_stored(
        &mut self,
        request: &CacheRequest<'_>,
        cache: &Arc<ResponseCache>,
        (object, fields): (&Object, &FieldBlock),
        status: &CacheStatus,
    ) -> Result<bool, Failure> {
        let mut client = self.client_side(request);
        let sent = client.send_object(cache, object, fields.lines(), status).await;
        sent.map(|()| client.keep).map_err(|error| error.failure())
    }

    fn client_side<'s>(&'s mut self, request: &'s CacheRequest<'_>) -> ClientSide<'s> {
        ClientSide {
            shared: self.shared,
            tx: &mut *self.tx,
            deadline: &self.deadlines.upload,
            signals: self.signals,
            request,
            version: self.request.head.version(),
            keep: self.keep && !self.shared.io.is_stopping(),
        }
    }

    /// Records the body, and sends it to the client from the recording.
    async fn record(
        &mut self,
        request: &CacheRequest<'_>,
        cache: &Arc<ResponseCache>,
        recording: Recording,
        head: &ResponseHead,
        status: CacheStatus,
    ) -> Result<Downloaded, Failure> {
        let Recording { lead, head: stored, length, is_for_client } = recording;
        let mut block = self.inbox.take();
        block.consume(head.len());
        let mut body = BodyReader::of_response(head.framing(), Some(block));
        let recorder = Recorder::begin(cache, *lead, (*stored).clone(), length);
        let follower = recorder.follower();
        let shared = self.shared;
        let (deadline, between) = (&self.deadlines.download, shared.settings.times.between_bytes);
        let recording = record_body(&shared.io, recorder, &mut body, &mut self.inbox.rx, deadline, between);
        if !is_for_client {
            let is_recorded = recording.await.is_ok();
            let is_reusable = is_recorded && head.keeps_alive() && body.into_rest().is_none();
            return Ok(Downloaded::Whole { keep: self.keep, is_reusable });
        }
        let mut client = ClientSide {
            shared,
            tx: &mut *self.tx,
            deadline: &self.deadlines.upload,
            signals: self.signals,
            request,
            version: self.request.head.version(),
            keep: self.keep && !shared.io.is_stopping(),
        };
        let status = CacheStatus { is_stored: true, ..status };
        let (recorded, sent) =
            join(recording, client.send_fetched(&follower, &stored, length, &status)).await;
        let keep = client.keep;
        let is_recorded = recorded.is_ok();
        match (recorded, sent) {
            (Err(NotRecorded::Origin(failure)), _) => return Err(failure),
            // The client has exactly what was recorded, and wants all.
            (Err(NotRecorded::Cache(recorded, rest)), Err(NotSent::CutShort(sent)))
                if sent == recorded && request.range.is_none() =>
            {
                self.relay_rest(head, &mut body, rest).await?;
            }
            // The client needed no more than was recorded.
            (_, Ok(())) => {}
            (_, Err(error)) => return Err(error.failure()),
        }
        let is_reusable = is_recorded && head.keeps_alive() && body.into_rest().is_none();
        Ok(Downloaded::Whole { keep, is_reusable })
    }

    /// Relays the rest of a body whose recording failed. The client has all that was recorded.
    async fn relay_rest(
        &mut self,
        head: &ResponseHead,
        body: &mut BodyReader,
        rest: Vec<u8>,
    ) -> Result<(), Failure> {
        let framing = framing_for(self.request.head.version(), head.framing());
        let (times, limits) = (&self.shared.settings.times, &self.shared.settings.limits);
        let mut next = Some(Segment::Owned(rest));
        while let Some(segment) = next {
            self.signals.count(segment.len());
            framing.push(segment, self.tx);
            let deadline = &self.deadlines.download;
            let drained = drain(self.tx, RELAY_AHEAD_BYTES_MAX, deadline, limits.send_time);
            drained.await.map_err(|_| Failure::ClientGone)?;
            deadline.after(times.between_bytes);
            let received = deadline.within(body.next(&mut self.inbox.rx, self.tx)).await;
            next = received
                .map_err(|Elapsed| Failure::Late)?
                .map_err(|error| Failure::of_origin_body(&error))?;
        }
        framing.push_end(&[], self.tx);
        Ok(())
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
            recorder.finish_later(io);
            return Ok(());
        };
        if let Err((_, rest)) = recorder.push(io, bytes).await {
            return Err(NotRecorded::Cache(recorder.received(), rest));
        }
    }
}
