//! Validation: conditional requests to the origin, the update by a 304, and the conditions of a client
//! (RFC 9111, sections 4.3.1 to 4.3.4).
//!
//! Not here: the request itself. Invariant: a 304 with another validator than the stored response's updates
//! nothing, so that fields and content of two versions are never mixed.

use plimsoll_wire::http::conditional::{ETag, etag_matches_weak};
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::status::Status;

use super::fields::{FieldBlock, FieldLines};
use super::freshness::ExchangeTimes;
use super::head::{StoredHead, is_excluded};
use super::request::CacheRequest;
use super::storable::{NotStored, evaluate};

/// The result of a 304.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The stored response is current; this is its new head.
    Updated(StoredHead),
    /// The stored response is current, but must not stay stored. It may answer this request.
    NotStored(FieldBlock, NotStored),
    /// The 304 is about another response: the request must be repeated without conditions.
    Mismatch,
}

/// Fields of a 304 that do not replace the stored ones: the stored bytes depend on them (RFC 9111, section
/// 3.2).
const OF_CONTENT: [&str; 4] = ["content-encoding", "content-range", "content-md5", "content-digest"];

/// Returns the fields that make a request conditional on the stored response, empty if it has no
/// validator. The client's own conditions must be left out.
#[must_use]
pub fn validation_fields(head: &StoredHead) -> FieldBlock {
    let mut fields = FieldBlock::default();
    let lines = head.fields.lines();
    if let Some(tag) = lines.first("etag").filter(|tag| ETag::parse(tag).is_some()) {
        fields.push(b"If-None-Match", tag);
    }
    if let Some(date) = lines.first("last-modified").filter(|_| head.last_modified().is_some()) {
        fields.push(b"If-Modified-Since", date);
    }
    fields
}

/// Updates a stored response by a 304 to a validation of it.
#[must_use]
pub fn merge_not_modified(
    stored: &StoredHead,
    request: &CacheRequest<'_>,
    fields: FieldLines<'_>,
    times: ExchangeTimes,
) -> Merged {
    if !is_about(stored, fields) {
        return Merged::Mismatch;
    }
    let mut merged = FieldBlock::default();
    for (name, value) in stored.fields.lines().iter() {
        // A Date of the stored response would make the updated one look old.
        let is_replaced = is_date(name) || (is_updated(name) && has_field(fields, name));
        if !is_replaced {
            merged.push(name, value);
        }
    }
    for (name, value) in fields.iter().filter(|(name, _)| is_updated(name)) {
        merged.push(name, value);
    }
    // Age counts for the freshness, and is not stored.
    let mut evaluated = merged.clone();
    fields.all("age").for_each(|age| evaluated.push(b"Age", age));
    match evaluate(request, stored.status, evaluated.lines(), times) {
        Ok(storable) => {
            let lines = evaluated.lines();
            Merged::Updated(StoredHead::new(request, stored.status, lines, times, storable))
        }
        Err(reason) => Merged::NotStored(merged, reason),
    }
}

/// Whether a 304 is about the stored response: it has the same validator, or none.
fn is_about(stored: &StoredHead, fields: FieldLines<'_>) -> bool {
    let (old, new) = (stored.etag(), fields.first("etag"));
    match (old.and_then(ETag::parse), new.and_then(ETag::parse)) {
        // The tag of a 304 is that of a 200 to the same request (RFC 9110, section 15.4.5), but some servers
        // send it weak.
        (Some(old), Some(new)) => old.matches_weak(&new),
        (None, Some(_)) => false,
        (_, None) => {
            let (old, new) = (stored.last_modified(), fields.first("last-modified").and_then(parse_date));
            new.is_none() || old.is_none() || old == new
        }
    }
}

/// Whether the response to HEAD, with these fields, is about a stored response with `length` bytes of
/// content: "matching values for any received validator fields [...] and, if the HEAD response has a
/// Content-Length header field, the value of Content-Length matches that of the stored response" (section
/// 4.3.5).
#[must_use]
pub fn is_same_version(stored: &StoredHead, length: u64, fields: FieldLines<'_>) -> bool {
    let of_date = fields.first("last-modified").and_then(parse_date);
    let stored_date = stored.fields.lines().first("last-modified").and_then(parse_date);
    let sent_length = fields.first("content-length");
    is_about(stored, fields)
        && of_date.is_none_or(|date| Some(date) == stored_date)
        && sent_length.is_none_or(|sent| sent == length.to_string().as_bytes())
}

/// Whether the response to HEAD has a validator that the stored response has too. Without one,
/// [`is_same_version`] finds no difference, but nothing shows that the stored content is current.
#[must_use]
pub fn has_common_validator(stored: &StoredHead, fields: FieldLines<'_>) -> bool {
    let has_tag = fields.first("etag").is_some_and(|tag| ETag::parse(tag).is_some());
    let has_date = fields.first("last-modified").is_some_and(|date| parse_date(date).is_some());
    (has_tag && stored.etag().is_some()) || (has_date && stored.last_modified().is_some())
}

fn is_date(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"date")
}

fn is_updated(name: &[u8]) -> bool {
    !is_excluded(name) && !OF_CONTENT.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

fn has_field(fields: FieldLines<'_>, name: &[u8]) -> bool {
    fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// Whether the conditions of a request say that the client has the stored response already: the answer is
/// then 304 (RFC 9110, section 13.2.2; RFC 9111, section 4.3.2).
#[must_use]
pub fn is_not_modified(request: &CacheRequest<'_>, head: &StoredHead) -> bool {
    if head.status != Status::OK {
        return false;
    }
    let mut tags = request.fields.all("if-none-match").peekable();
    if tags.peek().is_some() {
        // `*` matches any stored response, with a tag or without.
        let tag = head.etag();
        return tags.any(|list| list == b"*" || tag.is_some_and(|tag| etag_matches_weak(list, tag)));
    }
    let mut dates = request.fields.all("if-modified-since");
    let (Some(since), None) = (dates.next(), dates.next()) else { return false };
    // Without Last-Modified, Date counts. Each stored response has one.
    let date = || head.fields.lines().first("date").and_then(parse_date);
    match (parse_date(since), head.last_modified().or_else(date)) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_wire::http::head::Method;

    use super::*;
    use crate::cache::policy::ResourceKey;
    use crate::cache::policy::Timestamp;
    use crate::cache::policy::head::tests::{now, stored};

    const MODIFIED: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

    fn get(lines: &str) -> CacheRequest<'_> {
        let key = ResourceKey::new("http", b"a", b"/");
        CacheRequest::new(Method::Get, key, FieldLines::new(lines.as_bytes()), false)
    }

    fn merge(old: &StoredHead, lines: &str) -> Merged {
        let after = Duration::from_secs(100);
        let at = Timestamp { wall: now().wall + after, steady: now().steady + after };
        let times = ExchangeTimes { sent: at, received: at };
        merge_not_modified(old, &get(""), FieldLines::new(lines.as_bytes()), times)
    }

    fn updated(old: &StoredHead, lines: &str) -> StoredHead {
        match merge(old, lines) {
            Merged::Updated(head) => head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn section_4_3_1_a_validation_has_every_validator_of_the_stored_response() {
        let both = stored("http://a/", "", &format!("ETag: W/\"x\"\r\n{MODIFIED}"));
        let expected: &[u8] =
            b"If-None-Match: W/\"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(validation_fields(&both).as_bytes(), expected);
        let none = stored("http://a/", "", "Cache-Control: max-age=9\r\n");
        assert_eq!(validation_fields(&none).as_bytes(), b"");
    }

    #[test]
    fn a_date_that_does_not_distinguish_versions_is_no_validator() {
        for date in [
            "Thu, 01 Jan 1970 00:00:01 GMT",
            "Tue, 01 Jan 1980 00:00:00 GMT",
            "Fri, 02 Jan 2026 00:00:00 GMT",
        ] {
            let lines = format!("Last-Modified: {date}\r\nCache-Control: max-age=9\r\n");
            let head = stored("http://a/", "", &lines);
            assert_eq!(validation_fields(&head).as_bytes(), b"", "{date}");
            let since = "If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT\r\n";
            assert!(!is_not_modified(&get(since), &head), "{date}");
        }
    }

    #[test]
    fn section_3_2_a_304_replaces_and_adds_fields_and_keeps_the_rest() {
        let lines = "ETag: \"x\"\r\nCache-Control: max-age=9\r\nX-Old: 1\r\nX-Both: 1\r\nX-Both: 2\r\n\
                     Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";
        let old = stored("http://a/", "", lines);
        let new = updated(
            &old,
            "ETag: \"x\"\r\nX-BOTH: 3\r\nX-New: 4\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\
             Content-Encoding: br\r\nConnection: close\r\n",
        );
        let field = |name: &str| new.fields.lines().all(name).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(field("x-old"), [b"1"]);
        assert_eq!(field("x-both"), [b"3"]);
        assert_eq!(field("x-new"), [b"4"]);
        assert_eq!(field("content-type"), [b"text/html"]);
        assert_eq!(field("content-encoding"), [b"gzip"]);
        assert!(field("content-length").is_empty() && field("connection").is_empty());
    }

    #[test]
    fn a_304_starts_the_freshness_anew_with_its_own_age() {
        let old = stored("http://a/", "", "ETag: \"x\"\r\nCache-Control: max-age=50\r\n");
        let at = now().steady + Duration::from_secs(100);
        assert_eq!(old.freshness.seconds_left(at), -50);
        assert_eq!(updated(&old, "").freshness.seconds_left(at), 50);
        assert_eq!(updated(&old, "Age: 20\r\n").freshness.seconds_left(at), 30);
        assert_eq!(updated(&old, "Cache-Control: max-age=7\r\n").freshness.seconds_left(at), 7);
    }

    #[test]
    fn section_4_3_4_a_304_with_another_validator_updates_nothing() {
        let old = stored("http://a/", "", &format!("ETag: \"x\"\r\n{MODIFIED}"));
        assert_eq!(merge(&old, "ETag: \"y\"\r\n"), Merged::Mismatch);
        let later = "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
        assert_eq!(merge(&old, later), Merged::Mismatch);
        assert!(matches!(merge(&old, MODIFIED), Merged::Updated(_)));
        assert!(matches!(merge(&old, "ETag: W/\"x\"\r\n"), Merged::Updated(_)));
    }

    #[test]
    fn section_4_3_5_a_response_to_head_is_about_a_stored_one_with_its_validators_and_length() {
        let head = stored("http://a/", "", &format!("ETag: \"x\"\r\n{MODIFIED}"));
        let is_same = |lines: &str| is_same_version(&head, 9, FieldLines::new(lines.as_bytes()));
        for same in ["", "ETag: \"x\"\r\n", MODIFIED, "Content-Length: 9\r\n"] {
            assert!(is_same(same), "{same}");
        }
        let later = "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
        for other in ["ETag: \"y\"\r\n", later, &format!("ETag: \"x\"\r\n{later}"), "Content-Length: 8\r\n"] {
            assert!(!is_same(other), "{other}");
        }
    }

    #[test]
    fn a_304_that_forbids_storing_ends_the_storing() {
        let old = stored("http://a/", "", "ETag: \"x\"\r\nCache-Control: max-age=50\r\n");
        let private = merge(&old, "Cache-Control: private\r\n");
        assert!(matches!(private, Merged::NotStored(_, NotStored::Private)), "{private:?}");
        let cookie = merge(&old, "Set-Cookie: a=b\r\n");
        assert!(matches!(cookie, Merged::NotStored(_, NotStored::SetCookie)), "{cookie:?}");
    }

    #[test]
    fn section_4_3_2_the_conditions_of_a_client_are_evaluated_on_the_stored_response() {
        let head = stored("http://a/", "", &format!("ETag: \"x\"\r\n{MODIFIED}"));
        let known = |lines: &str| is_not_modified(&get(lines), &head);
        assert!(known("If-None-Match: \"y\", W/\"x\"\r\n"));
        assert!(known("If-None-Match: \"y\"\r\nIf-None-Match: \"x\"\r\n"));
        assert!(known("If-None-Match: *\r\n"));
        assert!(!known("If-None-Match: \"y\"\r\nIf-Modified-Since: Sun, 06 Nov 2094 08:49:37 GMT\r\n"));
        assert!(known("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
        assert!(!known("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n"));
        assert!(!known("If-Modified-Since: soon\r\n"));
        let dated = "Cache-Control: max-age=9\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        let dated = stored("http://a/", "", &dated.replace("max-age=9", "max-age=2000000000"));
        assert!(is_not_modified(&get("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), &dated));
        assert!(!is_not_modified(&get("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n"), &dated));
        assert!(!known(""));
    }
}
