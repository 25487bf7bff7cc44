//! The cache's part in one forwarded request: the changes of the request, and the decision about the
//! response, once its head is received.
//!
//! It does not send the request. Invariant: a response is stored only by the rules of
//! [`crate::cache::policy::evaluate`], and only if its end is marked in the message, so that one that was
//! cut short is never stored.

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
    /// The object that the request validates.
    stored: Option<Arc<Object>>,
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
    /// For its client and the cache.
    Lead(Lead),
    /// For the cache: the client has an answer.
    Refresh(Lead),
    /// For its client, which has the start of the response.
    Rest(Rest),
    /// For the cache: a slice, which the client gets from there.
    Slice(SliceFetch),
}

/// The treatment of a response whose head was received.
pub(crate) enum Received {
    /// It is relayed, with this Cache-Status.
    Relay(CacheStatus),
    /// Its body is recorded.
    Record(Recording),
    /// A stored object answers the request, with these fields.
    Stored { cache: Arc<ResponseCache>, object: Arc<Object>, fields: FieldBlock },
    /// The request must be repeated from the lookup.
    Repeat,
    /// The client has an answer, and the response is of no use.
    Dropped,
    /// The head of a partial object was updated by a 304.
    Validated,
    /// A part of its body goes behind the bytes that the client has.
    Rest(Part),
    /// The client has a part of another response.
    Unfit,
}

/// A response whose body is to be recorded.
pub(crate) struct Recording {
    pub(crate) cache: Arc<ResponseCache>,
    pub(crate) lead: Box<Lead>,
    pub(crate) head: Box<StoredHead>,
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
        CachePass { cache, request, kind, status, stored: None, sent: None }
    }

    /// Creates the part of a cache that is not open: it notes what the request invalidates.
    pub(super) fn without_cache(opener: &Arc<CacheOpener>, request: &CacheRequest<'a>) -> CachePass<'a> {
        let (cache, request) = (PassCache::Closed(Arc::clone(opener)), request.clone());
        let status = CacheStatus { detail: Some("opening"), ..CacheStatus::forwarded(Forwarded::Bypass) };
        CachePass { cache, request, kind: PassKind::Plain, status, stored: None, sent: None }
    }

    /// Makes the request validate a stored object.
    pub(crate) fn validating(self, object: &Arc<Object>) -> CachePass<'a> {
        CachePass { stored: Some(Arc::clone(object)), ..self }
    }

    pub(crate) fn request(&self) -> &CacheRequest<'a> {
        &self.request
    }

    pub(crate) fn status(&self) -> CacheStatus {
        self.status
    }

    /// Whether the exchange goes on when its client has left.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.kind, PassKind::Lead(_) | PassKind::Refresh(_) | PassKind::Slice(_))
    }

    /// Whether the client has an answer already.
    pub(crate) fn is_refresh(&self) -> bool {
        matches!(self.kind, PassKind::Refresh(_))
    }

    /// Returns the fields that replace the client's conditions and range, if it does not get the response as
    /// it is.
    pub(crate) fn conditions(&self) -> Option<FieldBlock> {
        match &self.kind {
            PassKind::Plain => None,
            PassKind::Rest(rest) => Some(rest.conditions()),
            PassKind::Slice(fetch) => Some(fetch.conditions()),
            PassKind::Lead(_) | PassKind::Refresh(_) => {
                let stored = self.stored.as_ref();
                Some(stored.map_or_else(FieldBlock::default, |object| validation_fields(&object.head)))
            }
        }
    }

    /// Notes when the request is sent.
    pub(crate) fn note_sent(&mut self, at: Timestamp) {
        self.sent = Some(at);
    }

    /// Decides about the response. `lines` are its fields.
    pub(crate) async fn receive(self, io: &Io, head: &ResponseHead, lines: FieldLines<'_>) -> Received {
        let received = Timestamp::now(io);
        let times = ExchangeTimes { sent: self.sent.unwrap_or(received), received };
        let CachePass { cache, request, kind, mut status, stored, .. } = self;
        let cache = match cache {
            PassCache::Open(cache) => cache,
            PassCache::Closed(opener) => {
                let keys = invalidated_uris(request.method, &request.key, head.status(), lines);
                opener.invalidate(io, &keys).await;
                return Received::Relay(status);
            }
        };
        let is_refresh = matches!(kind, PassKind::Refresh(_));
        let lead = match kind {
            PassKind::Plain => {
                invalidate(io, &cache, &request, head.status(), lines).await;
                if request.method == Method::Head && head.status() == Status::OK {
                    compare_head(io, &cache, &request, lines, times).await;
                }
                return Received::Relay(status);
            }
            PassKind::Rest(rest) => return rest.part(head, lines).map_or(Received::Unfit, Received::Rest),
            PassKind::Slice(fetch) => {
                return fetch.receive(io, cache, &request, head, (lines, times)).await;
            }
            PassKind::Lead(lead) | PassKind::Refresh(lead) => lead,
        };
        if let Some(object) = &stored {
            let is_failed = matches!(head.status().code(), 500 | 502 | 503 | 504);
            let is_usable = object.head.freshness.is_usable_on_error(&request.directives, received.steady);
            // No client waits for a refresh.
            if !is_refresh {
                count_validation(&cache, head.status(), is_failed && is_usable);
            }
            if head.status() == Status::NOT_MODIFIED {
                return validated(io, &cache, &request, lead, object, lines, times).await;
            }
            if is_failed && is_usable {
                // Dropping the lead makes its followers look the object up.
                let fields = object.head.fields.clone();
                return Received::Stored { cache, object: Arc::clone(object), fields };
            }
        }
        let length = match head.framing() {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let storable = storable_head(&request, head, lines, times);
        let reserved = storable.and_then(|head| {
            let room = cache.reserve(length, io.now())?;
            Ok((head, room))
        });
        match reserved {
            Ok((stored_head, room)) => {
                let (lead, head) = (Box::new(lead), Box::new(stored_head));
                let (is_for_client, sent) = (!is_refresh, cache.keeps_files().then_some(times.sent.wall));
                Received::Record(Recording { cache, lead, head, length, room, is_for_client, sent })
            }
            Err(reason) => {
                status.detail = Some(reason.detail());
                lead.refuse(io.now());
                // A newer response replaces the stored one, even where it is not stored. An error does not.
                if let Some(object) = stored.filter(|_| head.status().code() < 500) {
                    removed(cache.remove(io, &object).await);
                }
                if is_refresh { Received::Dropped } else { Received::Relay(status) }
            }
        }
    }
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

/// Updates the stored object by a 304.
async fn validated(
    io: &Io,
    cache: &Arc<ResponseCache>,
    request: &CacheRequest<'_>,
    lead: Lead,
    object: &Arc<Object>,
    lines: FieldLines<'_>,
    times: ExchangeTimes,
) -> Received {
    match merge_not_modified(&object.head, request, lines, times) {
        Merged::Updated(head) => {
            let fields = head.fields.clone();
            let object = cache.refresh(object, head, lead.storing());
            lead.retire();
            Received::Stored { cache: Arc::clone(cache), object, fields }
        }
        Merged::NotStored(fields, _) => {
            removed(cache.remove(io, object).await);
            lead.refuse(io.now());
            Received::Stored { cache: Arc::clone(cache), object: Arc::clone(object), fields }
        }
        Merged::Mismatch => {
            removed(cache.remove(io, object).await);
            lead.retire();
            Received::Repeat
        }
    }
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

impl CachePass<'_> {
    /// Returns the status of an answer with a stored object that a forwarded request led to.
    pub(crate) fn stored_status(status: CacheStatus, code: Status) -> CacheStatus {
        let forwarded = status.forwarded.or(Some(Forwarded::Stale));
        CacheStatus { is_hit: false, forwarded, forwarded_status: Some(code.code()), ..status }
    }
}
