//! The rest of a response of which a client has a part, after the cache could not record it or read it to
//! its end: the request to an origin for the bytes behind those that the client has, and the check of its
//! response.
//!
//! It sends nothing. Invariant: bytes are joined only if both responses have the same strong entity tag,
//! which stands for the same bytes (RFC 9110, section 8.8.1).

use plimsoll_wire::http::conditional::ETag;
use plimsoll_wire::http::range::{ContentRange, parse_content_range};
use plimsoll_wire::http::response::{Framing, ResponseHead};
use plimsoll_wire::http::status::Status;

use super::selection::Selection;
use crate::body::OutFraming;
use crate::cache::policy::{CacheRequest, FieldBlock, FieldLines, StoredHead};

/// The part of a response that its client lacks.
pub(crate) struct Rest {
    etag: Box<[u8]>,
    /// The offset of the first byte.
    from: u64,
    /// The offset behind the last byte, if it is known.
    until: Option<u64>,
    /// The length of the whole, if it was announced.
    length: Option<u64>,
    framing: OutFraming,
}

/// The part of a body that is relayed, and its framing for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Bytes before it, which are dropped.
    pub(crate) skipped: u64,
    /// Its length, if it ends before the body.
    pub(crate) length: Option<u64>,
    pub(crate) framing: OutFraming,
}

impl Rest {
    /// Returns the rest behind offset `at` of what answers a request. Returns `None` if the response has no
    /// strong entity tag.
    pub(crate) fn behind(
        request: &CacheRequest<'_>,
        head: &StoredHead,
        length: Option<u64>,
        at: u64,
        framing: OutFraming,
    ) -> Option<Rest> {
        let etag = head.strong_etag()?.into();
        let until = Selection::of(request, head, length).end().or(length);
        Some(Rest { etag, from: at, until, length, framing })
    }

    /// Returns the fields of the request for it.
    pub(crate) fn conditions(&self) -> FieldBlock {
        let mut fields = FieldBlock::default();
        let range = match self.until {
            Some(until) => format!("bytes={}-{}", self.from, until.saturating_sub(1)),
            None => format!("bytes={}-", self.from),
        };
        fields.push(b"Range", range.as_bytes());
        // If the response has changed, an origin need not send any of it.
        fields.push(b"If-Match", &self.etag);
        fields
    }

    /// Returns the part of the response's body to relay, or `None` if it is another response.
    pub(crate) fn part(&self, head: &ResponseHead, lines: FieldLines<'_>) -> Option<Part> {
        let etag = lines.first("etag").and_then(ETag::parse)?;
        if !ETag::parse(&self.etag)?.matches_strong(&etag) || head.framing() == Framing::UntilClose {
            return None;
        }
        let wanted = self.until.map(|until| until - self.from);
        let part = |skipped| Part { skipped, length: wanted, framing: self.framing };
        if head.status() == Status::OK {
            return Some(part(self.from));
        }
        let range = lines.first("content-range").and_then(parse_content_range);
        let Some(ContentRange::Part { range, length }) = range else { return None };
        let is_same = self.length.is_none_or(|known| known == length);
        let is_rest = range.start == self.from && range.end == self.until.unwrap_or(length);
        (head.status() == Status::PARTIAL_CONTENT && is_same && is_rest).then(|| part(0))
    }
}
