//! Entity tags and conditional requests (RFC 9110, sections 8.8.3 and 13).
//!
//! Not here: the generation of tags, and the reaction to a failed condition. Invariant: a write passes only
//! if every condition that can be parsed is true, in the order of section 13.2.2.

use std::time::SystemTime;

use super::date::{parse_date, to_whole_seconds};
use super::grammar::trim_ows;
use super::head::{Field, Head};

/// An entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag<'a> {
    /// Whether the tag begins with `W/`.
    pub weak: bool,
    /// The bytes between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> ETag<'a> {
    /// Parses a value that is exactly one tag.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::split_first(value)?;
        rest.is_empty().then_some(tag)
    }

    /// Parses a tag at the start of `value`, and returns the rest after it.
    ///
    /// Any byte but a quote is accepted between the quotes. `etagc` excludes spaces and control characters,
    /// but servers have sent them, and they make no second reading possible.
    fn split_first(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = match value {
            [b'W', b'/', rest @ ..] => (true, rest),
            _ => (false, value),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"')?;
        Some((Self { weak, opaque: inner.get(..end)? }, inner.get(end + 1..)?))
    }

    /// "two entity tags are equivalent if both are not weak and their opaque-tags match
    /// character-by-character".
    #[must_use]
    pub fn matches_strong(&self, other: &ETag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// "two entity tags are equivalent if their opaque-tags match character-by-character, regardless of
    /// either or both being tagged as "weak"".
    #[must_use]
    pub fn matches_weak(&self, other: &ETag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// Returns whether `list`, the value of If-Match, includes `current` by strong comparison. `*` includes
/// any.
#[must_use]
pub fn etag_matches_strong(list: &[u8], current: &[u8]) -> bool {
    matches_any(list, current, |tag, current| tag.matches_strong(current))
}

/// Returns whether `list`, the value of If-None-Match, includes `current` by weak comparison. `*` includes
/// any.
#[must_use]
pub fn etag_matches_weak(list: &[u8], current: &[u8]) -> bool {
    matches_any(list, current, |tag, current| tag.matches_weak(current))
}

fn matches_any(list: &[u8], current: &[u8], matches: fn(&ETag<'_>, &ETag<'_>) -> bool) -> bool {
    if trim_ows(list) == b"*" {
        return true;
    }
    ETag::parse(current).is_some_and(|current| etags(list).any(|tag| matches(&tag, &current)))
}

/// Iterates over the tags of a list. A member that is not a tag is skipped up to the next comma: it matches
/// nothing.
///
/// A comma may stand within a tag, and a backslash escapes nothing there. Therefore this does not use the
/// list syntax of RFC 9110, section 5.6.1.
fn etags(mut list: &[u8]) -> impl Iterator<Item = ETag<'_>> {
    std::iter::from_fn(move || {
        loop {
            while let [b',' | b' ' | b'\t', rest @ ..] = list {
                list = rest;
            }
            if list.is_empty() {
                return None;
            }
            match ETag::split_first(list) {
                Some((tag, rest)) if matches!(rest, [] | [b',' | b' ' | b'\t', ..]) => {
                    list = rest;
                    return Some(tag);
                }
                _ => list = after_comma(list),
            }
        }
    })
}

fn after_comma(list: &[u8]) -> &[u8] {
    let comma = list.iter().position(|&byte| byte == b',').unwrap_or(list.len());
    list.get(comma..).unwrap_or_default()
}

/// The validators of the current representation.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// The entity tag, with its quotes.
    pub etag: &'a [u8],
    /// Time of the last modification, if it distinguishes versions.
    pub modified: Option<SystemTime>,
}

/// The result of evaluating a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Perform the request.
    Proceed,
    /// The client's copy is current: 304.
    NotModified,
    /// A condition is false: 412.
    Failed,
}

/// Evaluates the conditions of a request in the order of RFC 9110, section 13.2.2.
///
/// `current` is None if no representation exists. `reads` is whether the method is GET or HEAD. If-Range is
/// evaluated by [`range_applies`].
#[must_use]
pub fn evaluate(head: &Head, block: &[u8], current: Option<&Validators<'_>>, reads: bool) -> Precondition {
    if fails(head, block, current) {
        return Precondition::Failed;
    }
    if is_as_known(head, block, current, reads) {
        return if reads { Precondition::NotModified } else { Precondition::Failed };
    }
    Precondition::Proceed
}

/// Evaluates steps 1 and 2: whether If-Match, or else If-Unmodified-Since, is false.
fn fails(head: &Head, block: &[u8], current: Option<&Validators<'_>>) -> bool {
    if head.field(block, Field::IfMatch).is_some() {
        // "If the field value is "*", the condition is true if the origin server has a current
        // representation".
        let matches = |now: &Validators<'_>| {
            head.all(block, Field::IfMatch).any(|list| etag_matches_strong(list, now.etag))
        };
        return !current.is_some_and(matches);
    }
    match (date_of(head, block, Field::IfUnmodifiedSince), current) {
        (Some(since), Some(Validators { modified: Some(modified), .. })) => {
            to_whole_seconds(*modified) > since
        }
        // "A recipient MUST ignore the If-Unmodified-Since header field if the resource does not have a
        // modification date available" (section 13.1.4).
        _ => false,
    }
}

/// Evaluates steps 3 and 4: whether If-None-Match, or else If-Modified-Since, is false.
fn is_as_known(head: &Head, block: &[u8], current: Option<&Validators<'_>>, reads: bool) -> bool {
    let Some(now) = current else { return false };
    if head.field(block, Field::IfNoneMatch).is_some() {
        // "A recipient MUST ignore If-Modified-Since if the request contains an If-None-Match header field"
        // (section 13.1.3).
        return head.all(block, Field::IfNoneMatch).any(|list| etag_matches_weak(list, now.etag));
    }
    let since = if reads { date_of(head, block, Field::IfModifiedSince) } else { None };
    // "A recipient MUST ignore the If-Modified-Since header field if the resource does not have a
    // modification date available" (section 13.1.3).
    since.zip(now.modified).is_some_and(|(since, modified)| to_whole_seconds(modified) <= since)
}

/// Returns the date of a field, or None if the field must be ignored.
///
/// "A recipient MUST ignore the If-Modified-Since header field if the received field value is not a valid
/// HTTP-date, the field value has more than one member, or if the request method is neither GET nor HEAD"
/// (section 13.1.3).
fn date_of(head: &Head, block: &[u8], field: Field) -> Option<SystemTime> {
    if head.repeated(field) {
        return None;
    }
    parse_date(head.field(block, field)?)
}

/// Returns whether a Range field applies. Without If-Range it does; with it, only if If-Range matches the
/// current state exactly.
///
/// "A client MUST NOT generate an If-Range header field containing an entity tag that is marked as weak",
/// and the comparison is strong. A date must match exactly. The caller must withhold Last-Modified, or
/// ranges, for a file that changed within the second (section 8.8.2.2).
#[must_use]
pub fn range_applies(head: &Head, block: &[u8], current: &Validators<'_>) -> bool {
    let Some(value) = head.field(block, Field::IfRange) else { return true };
    if head.repeated(Field::IfRange) {
        return false;
    }
    // "A valid entity-tag can be distinguished from a valid HTTP-date by examining the first three
    // characters for a DQUOTE" (section 13.1.5).
    match (ETag::parse(value), ETag::parse(current.etag)) {
        (Some(tag), Some(now)) => tag.matches_strong(&now),
        _ => {
            let dates = parse_date(value).zip(current.modified);
            dates.is_some_and(|(date, modified)| date == to_whole_seconds(modified))
        }
    }
}
