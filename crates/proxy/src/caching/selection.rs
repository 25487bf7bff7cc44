//! Selects what of a stored response answers a request: all of it, a range, or only the head.
//!
//! It sends nothing. Invariant: a range is sent only of a complete response with status 200 whose length is
//! known, and only if If-Range names exactly that response.

use std::ops::Range;

use plimsoll_wire::http::conditional::ETag;
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::range::{Resolved, parse_range};
use plimsoll_wire::http::status::Status;

use crate::cache::policy::{CacheRequest, StoredHead, is_not_modified};

/// The part of a stored response that answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The client has it already: 304.
    NotModified,
    /// All of it.
    Whole,
    /// One range, of this whole length: 206.
    Part(Range<u64>, u64),
    /// No byte of it is in the range: 416. Holds the whole length.
    Unsatisfiable(u64),
}

impl Selection {
    /// Selects for a request. `length` is that of the content, if it is known.
    pub(crate) fn of(request: &CacheRequest<'_>, head: &StoredHead, length: Option<u64>) -> Selection {
        if is_not_modified(request, head) {
            return Selection::NotModified;
        }
        let (Some(value), Some(length)) = (request.range, length) else { return Selection::Whole };
        if head.status != Status::OK || !range_applies(request, head) {
            return Selection::Whole;
        }
        match parse_range(value).map(|set| set.resolve(length)) {
            // A server may send the whole for several ranges (RFC 9110, section 15.3.7.2).
            Err(_) | Ok(Resolved::Whole) => Selection::Whole,
            Ok(Resolved::Unsatisfiable) => Selection::Unsatisfiable(length),
            Ok(Resolved::Ranges(ranges)) => match ranges.single() {
                Some(range) => Selection::Part(range.clone(), length),
                None => Selection::Whole,
            },
        }
    }

    /// Returns the end of the part, unless all of the body is sent.
    pub(crate) fn end(&self) -> Option<u64> {
        match self {
            Selection::Part(range, _) => Some(range.end),
            _ => None,
        }
    }

    /// Returns the status of the answer.
    pub(crate) fn status(&self, head: &StoredHead) -> Status {
        match self {
            Selection::NotModified => Status::NOT_MODIFIED,
            Selection::Whole => head.status,
            Selection::Part(..) => Status::PARTIAL_CONTENT,
            Selection::Unsatisfiable(_) => Status::RANGE_NOT_SATISFIABLE,
        }
    }
}

/// Evaluates If-Range (RFC 9110, section 13.1.5).
fn range_applies(request: &CacheRequest<'_>, head: &StoredHead) -> bool {
    let mut values = request.fields.all("if-range");
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    match (ETag::parse(value), head.etag().and_then(ETag::parse)) {
        (Some(tag), Some(current)) => tag.matches_strong(&current),
        (Some(_), None) => false,
        (None, _) => parse_date(value).is_some_and(|date| head.last_modified() == Some(date)),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http::head::Method;

    use super::*;
    use crate::cache::policy::{FieldLines, ResourceKey, stored_for_tests as stored};

    fn select(lines: &str, length: Option<u64>) -> Selection {
        let validators = "ETag: \"x\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        let head = stored("http://a/", "", validators);
        let key = ResourceKey::new("http", b"a", b"/");
        let request = CacheRequest::new(Method::Get, key, FieldLines::new(lines.as_bytes()), false);
        Selection::of(&request, &head, length)
    }

    #[test]
    fn one_range_of_a_known_length_is_a_part() {
        assert_eq!(select("Range: bytes=2-4\r\n", Some(10)), Selection::Part(2..5, 10));
        assert_eq!(select("Range: bytes=-3\r\n", Some(10)), Selection::Part(7..10, 10));
        assert_eq!(select("Range: bytes=10-\r\n", Some(10)), Selection::Unsatisfiable(10));
        assert_eq!(select("Range: bytes=2-4\r\n", None), Selection::Whole);
        assert_eq!(select("Range: bytes=0-1,3-4\r\n", Some(10)), Selection::Whole);
        assert_eq!(select("Range: lines=0-1\r\n", Some(10)), Selection::Whole);
    }

    #[test]
    fn a_condition_precedes_a_range_and_if_range_must_match_exactly() {
        let range = "Range: bytes=2-4\r\n";
        assert_eq!(select(&format!("{range}If-None-Match: \"x\"\r\n"), Some(10)), Selection::NotModified);
        for (value, applies) in [
            ("\"x\"", true),
            ("W/\"x\"", false),
            ("\"y\"", false),
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("Sun, 06 Nov 1994 08:49:38 GMT", false),
            ("x", false),
        ] {
            let selected = select(&format!("{range}If-Range: {value}\r\n"), Some(10));
            assert_eq!(selected != Selection::Whole, applies, "{value}");
        }
    }
}
