//! A response's way to its client: interim responses, the head, and the body.
//!
//! It does not send the request. Invariants: no more is received from the origin than the client takes,
//! beyond a bound. A body that the origin has cut short ends in an error, never in an end.

use std::sync::Arc;

use plimsoll_client::http::{NoResponse, ResponseInbox};
use plimsoll_io::{Elapsed, Lease, Phase, Segment, Tx};
use plimsoll_wire::http::head::Version;
use plimsoll_wire::http::response::ResponseHead;
use plimsoll_wire::http::status::Status;

use super::Deadlines;
use super::recording::Offered;
use super::rest::Unsent;
use super::signals::{Signals, UploadState};
use crate::body::{BodyReader, OutFraming};
use crate::caching::CachePass;
use crate::failure::Failure;
use crate::limits::{INTERIM_RESPONSES_MAX, RELAY_AHEAD_BYTES_MAX};
use crate::origin::Origin;
use crate::proxy::Shared;
use crate::request_head::{ClientRequest, Upgrade};
use crate::response_head::{
    ResponseForm, framing_for, is_to_websocket, trailer_lines, write_final, write_interim, write_switch,
};

/// The download of one attempt.
pub(super) struct Download<'a, 'r> {
    pub(super) shared: &'a Shared,
    pub(super) inbox: &'a mut ResponseInbox,
    pub(super) tx: &'a mut Tx,
    pub(super) deadlines: Deadlines<'a>,
    pub(super) signals: &'a Signals,
    pub(super) request: &'a ClientRequest<'a>,
    /// Whether the client and the server allow another request on the client's connection.
    pub(super) keep: bool,
    pub(super) origin: &'a Arc<Origin>,
    /// Whether the client waits for a 100 (Continue).
    pub(super) expects_continue: bool,
    /// The cache's part in the exchange, until the head of the response is received.
    pub(super) pass: &'a mut Option<CachePass<'r>>,
}

/// The result of a download.
pub(super) enum Downloaded<'r> {
    /// The whole response was received, and pushed up to the rest.
    Whole {
        /// Whether the client may send another request.
        keep: bool,
        /// Whether the origin may get another request.
        is_reusable: bool,
        /// The part that is not pushed.
        unsent: Option<Unsent<'r>>,
    },
    /// The connection changes to the requested protocol.
    Upgraded,
}

impl Downloaded<'_> {
    /// The whole response was pushed.
    pub(super) fn whole(keep: bool, is_reusable: bool) -> Self {
        Downloaded::Whole { keep, is_reusable, unsent: None }
    }
}

impl<'r> Download<'_, 'r> {
    /// Relays the response.
    pub(super) async fn run(&mut self) -> Result<Downloaded<'r>, Failure> {
        let sent_at = self.deadlines.download.now();
        let head = self.final_head().await?;
        self.origin.counts.first_byte.count(self.deadlines.download.now() - sent_at);
        if head.status() == Status::SWITCHING_PROTOCOLS {
            return self.switch(&head);
        }
        let mut cache_status = None;
        if let Some(pass) = self.pass.take() {
            // Boxed: without a cache, its memory is not needed.
            match Box::pin(self.offer(pass, &head)).await? {
                Offered::Relay(status) => cache_status = Some(status.to_string()),
                Offered::Done(downloaded) => return Ok(downloaded),
            }
        }
        let mut block = self.inbox.take();
        let framing = framing_for(self.request.head.version(), head.framing());
        let keep = self.may_keep(framing);
        let date = self.shared.common.dates();
        let form = ResponseForm {
            framing,
            keep,
            version: self.request.head.version(),
            date: &date.http,
            pseudonym: &self.shared.settings.pseudonym,
            cache_status: cache_status.as_deref(),
        };
        self.signals.answer(head.status());
        self.tx.push(Segment::Owned(write_final(&head, &block, &form)));
        block.consume(head.len());
        let (is_drained, unsent) = self.body(&head, block, framing).await?;
        Ok(Downloaded::Whole { keep, is_reusable: head.keeps_alive() && is_drained, unsent })
    }

    /// Whether the client's connection stays usable after the response.
    fn may_keep(&self, framing: OutFraming) -> bool {
        // A client that was not permitted to send its body may send it, or not: the start of its next request
        // is unknown.
        let is_unsure = self.expects_continue && self.signals.upload() == UploadState::Begun;
        self.keep && !is_unsure && framing != OutFraming::UntilClose && !self.shared.io.is_stopping()
    }

    /// Receives the head of the final response, and relays the interim ones before it.
    async fn final_head(&mut self) -> Result<ResponseHead, Failure> {
        let mut interims = 0;
        loop {
            let waited = self.deadlines.download.within(self.inbox.head(self.request.head.method())).await;
            let head = match waited {
                Ok(Ok(head)) => head,
                Ok(Err(NoResponse::Broken(_))) => return Err(Failure::Broken),
                Ok(Err(NoResponse::Malformed(bad))) => return Err(Failure::Malformed(bad)),
                Err(Elapsed) => return Err(Failure::Late),
            };
            if !head.is_interim() {
                return Ok(head);
            }
            interims += 1;
            if interims > INTERIM_RESPONSES_MAX {
                return Err(Failure::Unexpected);
            }
            self.interim(&head);
        }
    }

    /// Relays an interim response. A client of HTTP/1.0 knows none: "Since HTTP/1.0 did not define any 1xx
    /// status codes, a server MUST NOT send a 1xx response to an HTTP/1.0 client" (RFC 9110, section 15.2).
    fn interim(&mut self, head: &ResponseHead) {
        let block = self.inbox.take_head(head.len());
        let is_wanted = !self.pass.as_ref().is_some_and(CachePass::is_detached);
        if self.request.head.version() == Version::Http11 && is_wanted {
            let interim = write_interim(head, &block, &self.shared.settings.pseudonym);
            self.tx.push(Segment::Owned(interim));
        }
        if head.status() == Status::CONTINUE && self.signals.upload() == UploadState::Begun {
            self.signals.set_upload(UploadState::Sending);
            self.deadlines.upload.after(self.shared.settings.limits.receive_time);
        }
        if self.signals.upload() != UploadState::Sending || self.expects_continue {
            self.deadlines.download.after(self.shared.settings.times.first_byte);
        }
    }

    /// Relays the body, as far as the client takes it soon. Returns whether nothing was received behind it,
    /// and the rest.
    async fn body(
        &mut self,
        head: &ResponseHead,
        block: Lease,
        framing: OutFraming,
    ) -> Result<(bool, Option<Unsent<'r>>), Failure> {
        let (times, deadline) = (&self.shared.settings.times, self.deadlines.download);
        let mut body = BodyReader::new(head.framing(), Some(block));
        if let Some(file) = self.take_file(&mut body).await? {
            return Ok((body.into_rest().is_none(), Some(Unsent::File(file, framing))));
        }
        let mut may_spool = true;
        loop {
            deadline.after(times.between_bytes);
            let received = deadline.within(body.next(&mut self.inbox.rx, self.tx)).await;
            let segment = received
                .map_err(|Elapsed| Failure::Late)?
                .map_err(|error| Failure::of_origin_body(&error))?;
            let Some(segment) = segment else { break };
            if let Segment::File(part) = &segment {
                let (file, range) = (part.file.clone(), part.range.clone());
                // A hint. An error of reading appears again when the part is sent.
                let _ = self.shared.io.files(move |fs| fs.read_ahead(&file, range.clone())).await;
            }
            self.signals.count(segment.len());
            self.tx.slot().enter(Phase::Working, deadline.now());
            framing.push(segment, self.tx);
            if self.tx.unsent() > RELAY_AHEAD_BYTES_MAX
                // Boxed: inlining it would enlarge every connection's future.
                && let Some(spool) = Box::pin(self.wait_or_spool(&mut body, framing, &mut may_spool)).await?
            {
                let rest = Unsent::Spooled(spool, framing, trailer_lines(body.trailers()));
                return Ok((body.into_rest().is_none(), Some(rest)));
            }
        }
        framing.push_end(&trailer_lines(body.trailers()), self.tx);
        Ok((body.into_rest().is_none(), None))
    }

    /// Relays the change of the protocol, if the client has requested it.
    fn switch(&mut self, head: &ResponseHead) -> Result<Downloaded<'r>, Failure> {
        let block = self.inbox.buffered.as_deref().unwrap_or_default();
        if self.request.upgrade() != Upgrade::WebSocket || !is_to_websocket(head, block) {
            return Err(Failure::Unexpected);
        }
        self.signals.answer(head.status());
        let block = self.inbox.take_head(head.len());
        self.tx.push(Segment::Owned(write_switch(head, &block, &self.shared.settings.pseudonym)));
        Ok(Downloaded::Upgraded)
    }
}
