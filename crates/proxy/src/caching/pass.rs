//! The cache's part in one forwarded request: the changes of the request, and the decision about the
//! response, once its head is received.
//!
//! It does not send the request. Invariant: a response is stored only by the rules of
//! [`crate::cache::policy::evaluate`], and only if its end is marked in the message, so that one that was
//! cut short is never stored.
//!
//! A response has one treatment for each purpose of its request ([`PassKind`]); a [`Received`] says it. A
//! test of this module receives each response of the table with each purpose.
//!
//! | response | Plain | Lead | Refresh | Rest | Slice |
//! | --- | --- | --- | --- | --- | --- |
//! | storable | relay | record | record, no client | rest | drop |
//! | storable, of another version | relay | record | record, no client | unfit | drop |
//! | not storable | relay | relay | drop | rest | drop |
//! | ends with the connection | relay | relay | drop | unfit | drop |
//! | the requested part | relay | relay | drop | rest | record, no client |
//! | another part | relay | relay | drop | unfit | drop |
//! | not modified | relay | stored | drop | unfit | drop |
//! | not modified, of another version | relay | repeat | drop | unfit | drop |
//! | not found | relay | relay | drop | unfit | drop |
//! | failed | relay | stored | drop | unfit | drop |

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use plimsoll_io::Io;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::response::{Framing, ResponseHead};
use plimsoll_wire::http::status::Status;

use super::rest::{Part, Rest};
use super::slice_fetch::SliceFetch;
use crate::cache::fetch::Lead;
use crate::cache::opening::CacheOpener;
use crate::cache::policy::{
    CacheRequest, CacheStatus, ExchangeTimes, FieldBlock, FieldLines, Forwarded, Merged, NotStored,
    StoredHead, Timestamp, evaluate, has_common_validator, invalidated_uris, is_same_version,
    merge_not_modified, validation_fields,
};
use crate::cache::response_cache::{Reservation, ResponseCache};
use crate::cache::store::{Lookup, Object, PurgeTarget};

/// The cache's part in one forwarded request.
pub(crate) struct CachePass<'a> {
    cache: PassCache,
    request: CacheRequest<'a>,
    kind: PassKind,
    status: CacheStatus,
    /// When the request was sent.
    sent: Option<Timestamp>,
}

enum PassCache {
    Open(Arc<ResponseCache>),
    /// It is not open. The request is for its client only.
    Closed(Arc<CacheOpener>),
}

/// The purpose of the request.
pub(crate) enum PassKind {
    /// For its client only.
    Plain,
    /// For its client and the cache. It validates the object, if there is one.
    Lead(Lead, Option<Arc<Object>>),
    /// For the cache: the client has the object as its answer, which the request validates.
    Refresh(Lead, Arc<Object>),
    /// For its client, which has the start of the response.
    Rest(Rest),
    /// For the cache: a slice, which the client gets from there.
    Slice(SliceFetch),
}

/// The treatment of a response whose head was received.
pub(crate) enum Received<'a> {
    /// It is relayed, with this Cache-Status.
    Relay(CacheStatus),
    /// Its body is recorded.
    Record(Box<Recording<'a>>),
    /// A stored object answers the request.
    Stored(Box<StoredAnswer<'a>>),
    /// The request must be repeated from the lookup.
    Repeat,
    /// No client waits for it, and its body is of no use.
    Dropped,
    /// This part of its body goes behind the bytes that the client has. `None` if those are of another
    /// response.
    Rest(Option<Part>),
}

/// A stored response that answers a request.
pub(crate) struct StoredAnswer<'a> {
    pub(crate) request: CacheRequest<'a>,
    pub(crate) cache: Arc<ResponseCache>,
    pub(crate) object: Arc<Object>,
    pub(crate) fields: FieldBlock,
    pub(crate) status: CacheStatus,
}

/// A response whose body is to be recorded.
pub(crate) struct Recording<'a> {
    pub(crate) request: CacheRequest<'a>,
    /// Its Cache-Status, unless it is stored.
    pub(crate) status: CacheStatus,
    pub(crate) cache: Arc<ResponseCache>,
    pub(crate) lead: Lead,
    pub(crate) head: StoredHead,
    /// The length of the body, if it is announced.
    pub(crate) length: Option<u64>,
    pub(crate) room: Reservation,
    /// Whether the client gets the response from the recording. Otherwise it has an answer already.
    pub(crate) is_for_client: bool,
    /// When the request was sent, if an open file that the origin passes as the body may be kept.
    pub(crate) sent: Option<SystemTime>,
}

impl<'a> CachePass<'a> {
    pub(crate) fn new(
        cache: &Arc<ResponseCache>,
        request: &CacheRequest<'a>,
        kind: PassKind,
        status: CacheStatus,
    ) -> CachePass<'a> {
        let (cache, request) = (PassCache::Open(Arc::clone(cache)), request.clone());
        CachePass { cache, request, kind, status, sent: None }
    }

    /// Creates the part of a cache that is not open: it notes what the request invalidates.
    pub(super) fn without_cache(opener: &Arc<CacheOpener>, request: &CacheRequest<'a>) -> CachePass<'a> {
        let (cache, request) = (PassCache::Closed(Arc::clone(opener)), request.clone());
        let status = CacheStatus { detail: Some("opening"), ..CacheStatus::forwarded(Forwarded::Bypass) };
        CachePass { cache, request, kind: PassKind::Plain, status, sent: None }
    }

    /// Whether the exchange goes on when its client has left.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.kind, PassKind::Lead(..) | PassKind::Refresh(..) | PassKind::Slice(_))
    }

    /// Returns the fields that replace the client's conditions and range, if it does not get the response as
    /// it is.
    pub(crate) fn conditions(&self) -> Option<FieldBlock> {
        match &self.kind {
            PassKind::Plain => None,
            PassKind::Rest(rest) => Some(rest.conditions()),
            PassKind::Slice(fetch) => Some(fetch.conditions()),
            PassKind::Lead(_, None) => Some(FieldBlock::default()),
            PassKind::Lead(_, Some(object)) | PassKind::Refresh(_, object) => {
                Some(validation_fields(&object.head))
            }
        }
    }

    /// Notes when the request is sent.
    pub(crate) fn note_sent(&mut self, at: Timestamp) {
        self.sent = Some(at);
    }

    /// Decides about the response. `lines` are its fields.
    pub(crate) async fn receive(self, io: &Io, head: &ResponseHead, lines: FieldLines<'_>) -> Received<'a> {
        let received = Timestamp::now(io);
        let times = ExchangeTimes { sent: self.sent.unwrap_or(received), received };
        let CachePass { cache, request, kind, status, .. } = self;
        let cache = match cache {
            PassCache::Open(cache) => cache,
            PassCache::Closed(opener) => {
                let keys = invalidated_uris(request.method, &request.key, head.status(), lines);
                opener.invalidate(io, &keys).await;
                return Received::Relay(status);
            }
        };
        match kind {
            PassKind::Plain => {
                invalidate(io, &cache, &request, head.status(), lines).await;
                if request.method == Method::Head && head.status() == Status::OK {
                    compare_head(io, &cache, &request, lines, times).await;
                }
                Received::Relay(status)
            }
            PassKind::Rest(rest) => Received::Rest(rest.part(head, lines)),
            PassKind::Slice(fetch) => fetch.receive(io, cache, request, head, (lines, times)).await,
            PassKind::Lead(lead, stored) => {
                let is_validation = stored.is_some();
                let fetch = Fetch { io, cache: &cache, request, lead, stored, status };
                let received = fetch.receive(head, lines, times).await;
                if is_validation {
                    count_validation(&cache, head.status(), matches!(received, Received::Stored(_)));
                }
                received
            }
            PassKind::Refresh(lead, stored) => {
                let stored = Some(stored);
                let fetch = Fetch { io, cache: &cache, request, lead, stored, status };
                match fetch.receive(head, lines, times).await {
                    Received::Record(recording) => {
                        Received::Record(Box::new(Recording { is_for_client: false, ..*recording }))
                    }
                    _ => Received::Dropped,
                }
            }
        }
    }
}

/// A request whose response is for the cache as well, whole.
struct Fetch<'a, 'r> {
    io: &'a Io,
    cache: &'a Arc<ResponseCache>,
    request: CacheRequest<'r>,
    lead: Lead,
    /// The object that it validates.
    stored: Option<Arc<Object>>,
    status: CacheStatus,
}

impl<'r> Fetch<'_, 'r> {
    /// Decides about the response, as if its client had no answer.
    async fn receive(self, head: &ResponseHead, lines: FieldLines<'_>, times: ExchangeTimes) -> Received<'r> {
        if head.status() == Status::NOT_MODIFIED && self.stored.is_some() {
            return self.validated(lines, times).await;
        }
        let Fetch { io, cache, request, lead, stored, mut status } = self;
        if let Some(object) = &stored {
            let is_failed = matches!(head.status().code(), 500 | 502 | 503 | 504);
            if is_failed
                && object.head.freshness.is_usable_on_error(&request.directives, times.received.steady)
            {
                // Dropping the lead makes its followers look the object up.
                let (cache, object, fields) =
                    (Arc::clone(cache), Arc::clone(object), object.head.fields.clone());
                let status = stored_status(status, head.status());
                return Received::Stored(Box::new(StoredAnswer { request, cache, object, fields, status }));
            }
        }
        let length = match head.framing() {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let reserved = storable_head(&request, head, lines, times)
            .and_then(|head| Ok((head, cache.reserve(length, io.now())?)));
        match reserved {
            Ok((head, room)) => {
                let cache = Arc::clone(cache);
                let (is_for_client, sent) = (true, cache.keeps_files().then_some(times.sent.wall));
                let recording =
                    Recording { request, status, cache, lead, head, length, room, is_for_client, sent };
                Received::Record(Box::new(recording))
            }
            Err(reason) => {
                status.detail = Some(reason.detail());
                lead.refuse(io.now());
                // A newer response replaces the stored one, even where it is not stored. An error does not.
                if let Some(object) = stored.filter(|_| head.status().code() < 500) {
                    removed(cache.remove(io, &object).await);
                }
                Received::Relay(status)
            }
        }
    }

    /// Updates the stored object by a 304.
    async fn validated(self, lines: FieldLines<'_>, times: ExchangeTimes) -> Received<'r> {
        let Fetch { io, cache, request, lead, stored, status } = self;
        let Some(object) = stored else { return Received::Repeat };
        let (object, fields) = match merge_not_modified(&object.head, &request, lines, times) {
            Merged::Updated(head) => {
                let fields = head.fields.clone();
                let object = cache.refresh(&object, head, lead.storing());
                lead.retire();
                (object, fields)
            }
            Merged::NotStored(fields, _) => {
                removed(cache.remove(io, &object).await);
                lead.refuse(io.now());
                (object, fields)
            }
            Merged::Mismatch => {
                removed(cache.remove(io, &object).await);
                lead.retire();
                return Received::Repeat;
            }
        };
        let (cache, status) = (Arc::clone(cache), stored_status(status, Status::NOT_MODIFIED));
        Received::Stored(Box::new(StoredAnswer { request, cache, object, fields, status }))
    }
}

/// Returns the status of an answer with a stored object that a forwarded request led to.
pub(super) fn stored_status(status: CacheStatus, code: Status) -> CacheStatus {
    let forwarded = status.forwarded.or(Some(Forwarded::Stale));
    CacheStatus { is_hit: false, forwarded, forwarded_status: Some(code.code()), ..status }
}

/// Counts a request whose stored object was validated, by the response.
fn count_validation(cache: &ResponseCache, status: Status, is_answered_stale: bool) {
    let counts = cache.counts();
    let counter = match status {
        Status::NOT_MODIFIED => &counts.validated,
        _ if is_answered_stale => &counts.stale,
        _ => &counts.misses,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Returns the head to store.
fn storable_head(
    request: &CacheRequest<'_>,
    head: &ResponseHead,
    lines: FieldLines<'_>,
    times: ExchangeTimes,
) -> Result<StoredHead, NotStored> {
    let storable = evaluate(request, head.status(), lines, times)?;
    if head.framing() == Framing::UntilClose {
        return Err(NotStored::CloseDelimited);
    }
    Ok(StoredHead::new(request, head.status(), lines, times, storable))
}

/// Removes the objects that the response to an unsafe method invalidates, before the client has it.
async fn invalidate(
    io: &Io,
    cache: &Arc<ResponseCache>,
    request: &CacheRequest<'_>,
    status: Status,
    lines: FieldLines<'_>,
) {
    for key in invalidated_uris(request.method, &request.key, status, lines) {
        removed(cache.invalidate(io, PurgeTarget::Uri(key.digest())).await);
    }
}

/// Updates the stored response that a HEAD request selects, or removes it if it is another one: "the cache
/// SHOULD update or invalidate each of its stored GET responses that could have been chosen for that request"
/// (RFC 9111, section 4.3.5).
async fn compare_head(
    io: &Io,
    cache: &Arc<ResponseCache>,
    request: &CacheRequest<'_>,
    lines: FieldLines<'_>,
    times: ExchangeTimes,
) {
    let get = CacheRequest { method: Method::Get, ..request.clone() };
    let lookup = cache.lookup(&get);
    if let Lookup::Found(object) = &lookup
        && object.head.status == Status::OK
    {
        let lead = cache.fetches().lead_alone(&cache.fetch_key(&get, &lookup));
        if !is_same_version(&object.head, object.content.len(), lines) {
            removed(cache.remove(io, object).await);
        } else {
            match merge_not_modified(&object.head, &get, lines, times) {
                Merged::Updated(head) if has_common_validator(&object.head, lines) => {
                    cache.refresh(object, head, lead.storing());
                }
                Merged::NotStored(..) => removed(cache.remove(io, object).await),
                Merged::Updated(_) | Merged::Mismatch => {}
            }
        }
        lead.retire();
    }
    if let Some(partial) = cache.lookup_partial(&get)
        && !is_same_version(&partial.head, partial.whole, lines)
    {
        removed(cache.remove_partial(io, &partial).await);
    }
}

pub(super) fn removed(removed: std::io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(%error, "the cache cannot remove an object");
    }
}

#[cfg(test)]
mod tests;
