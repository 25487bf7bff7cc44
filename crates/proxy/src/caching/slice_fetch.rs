//! The fetch of one slice of a partial object: the request for it, and the decision about its response.
//!
//! It sends nothing. Invariant: a slice is stored only if its response is the single part that was requested,
//! has a strong entity tag, and could be stored as a whole.

use std::sync::Arc;

use plimsoll_io::Io;
use plimsoll_wire::http::range::{ContentRange, parse_content_range};
use plimsoll_wire::http::response::{Framing, ResponseHead};
use plimsoll_wire::http::status::Status;

use super::pass::{Received, Recording, removed};
use crate::cache::fetch::Lead;
use crate::cache::limits::SLICE_BYTES;
use crate::cache::policy::{
    CacheRequest, CacheStatus, ExchangeTimes, FieldBlock, FieldLines, Merged, Slice, StoredHead, evaluate,
    merge_not_modified, validation_fields,
};
use crate::cache::response_cache::ResponseCache;
use crate::cache::store::{Object, PartialHead};

/// The fetch of one slice.
pub(crate) struct SliceFetch {
    pub(super) lead: Lead,
    pub(super) number: u64,
    /// The partial object that the slice belongs to, if it is known.
    pub(super) partial: Option<PartialHead>,
    /// The object that the request validates.
    pub(super) validated: Option<Validated>,
}

/// An object that the fetch of a slice validates.
pub(crate) enum Validated {
    Partial(PartialHead),
    Whole(Arc<Object>),
}

impl Validated {
    fn head(&self) -> &StoredHead {
        match self {
            Validated::Partial(partial) => &partial.head,
            Validated::Whole(object) => &object.head,
        }
    }

    /// Replaces the head after a 304, unless the fetch was voided.
    fn refresh(&self, cache: &Arc<ResponseCache>, head: StoredHead, lead: &Lead) {
        match self {
            Validated::Partial(partial) => cache.refresh_partial(partial, head, lead.storing()),
            Validated::Whole(object) => drop(cache.refresh(object, head, lead.storing())),
        }
    }

    async fn remove(&self, io: &Io, cache: &Arc<ResponseCache>) {
        removed(match self {
            Validated::Partial(partial) => cache.remove_partial(io, partial).await,
            Validated::Whole(object) => cache.remove(io, object).await,
        });
    }
}

impl SliceFetch {
    /// Returns the fields that replace the client's conditions and range.
    pub(super) fn conditions(&self) -> FieldBlock {
        let whole = self.partial.as_ref().map_or(u64::MAX, |partial| partial.whole);
        let range = Slice { number: self.number, whole }.range();
        let end = if range.is_empty() { range.start + SLICE_BYTES } else { range.end };
        let validated = self.validated.as_ref();
        let mut fields =
            validated.map_or_else(FieldBlock::default, |validated| validation_fields(validated.head()));
        fields.push(b"Range", format!("bytes={}-{}", range.start, end - 1).as_bytes());
        fields
    }

    /// Decides about the response.
    pub(super) async fn receive<'r>(
        self,
        io: &Io,
        cache: Arc<ResponseCache>,
        request: CacheRequest<'r>,
        head: &ResponseHead,
        (lines, times): (FieldLines<'_>, ExchangeTimes),
    ) -> Received<'r> {
        let SliceFetch { lead, number, partial, validated } = self;
        let status = head.status();
        if let Some(validated) = validated.as_ref().filter(|_| status == Status::NOT_MODIFIED) {
            match merge_not_modified(validated.head(), &request, lines, times) {
                Merged::Updated(head) => validated.refresh(&cache, head, &lead),
                Merged::NotStored(..) | Merged::Mismatch => validated.remove(io, &cache).await,
            }
            lead.retire();
            return Received::Dropped;
        }
        if let Some(stored) = sliced_head(number, &request, head, lines, times)
            && let Some(slice) = stored.slice
        {
            let length = slice.range().end - slice.range().start;
            let Ok(room) = cache.reserve(Some(length), io.now()) else {
                lead.leave();
                return Received::Dropped;
            };
            // At once, and not when the slice is stored: answers from the old slices would be cut short.
            let whole = PartialHead { head: Arc::new(stored.clone()), whole: slice.whole };
            if let Some(old) = partial.filter(|old| !old.is_same(&whole)) {
                cache.forget_partial(&old);
            }
            let (head, length, is_for_client) = (stored, Some(length), false);
            let (sent, status) = (None, CacheStatus::default());
            let recording =
                Recording { request, status, cache, lead, head, length, room, is_for_client, sent };
            return Received::Record(Box::new(recording));
        }
        if let Some(partial) = partial.filter(|_| status.code() < 500) {
            removed(cache.remove_partial(io, &partial).await);
        }
        // Requests for other ranges would get such a response too. Others may be about this range only.
        if matches!(status, Status::OK | Status::PARTIAL_CONTENT) {
            lead.refuse(io.now());
        } else {
            lead.leave();
        }
        Received::Dropped
    }
}

/// Returns the head of a slice to store.
fn sliced_head(
    number: u64,
    request: &CacheRequest<'_>,
    head: &ResponseHead,
    lines: FieldLines<'_>,
    times: ExchangeTimes,
) -> Option<StoredHead> {
    let mut ranges = lines.all("content-range");
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return None };
    let Some(ContentRange::Part { range, length }) = parse_content_range(range) else { return None };
    let slice = Slice { number, whole: length };
    let is_framed = head.framing() == Framing::Length(range.end - range.start);
    if head.status() != Status::PARTIAL_CONTENT || range != slice.range() || !is_framed {
        return None;
    }
    // As if it were the response with the whole (RFC 9111, section 3.3).
    let mut fields = FieldBlock::default();
    lines
        .iter()
        .filter(|(name, _)| !name.eq_ignore_ascii_case(b"content-range"))
        .for_each(|(name, value)| fields.push(name, value));
    let storable = evaluate(request, Status::OK, fields.lines(), times).ok()?;
    let stored = StoredHead::new(request, Status::OK, fields.lines(), times, storable);
    stored.strong_etag()?;
    Some(StoredHead { slice: Some(slice), ..stored })
}
