//! The stored part of a response's head, in memory and as bytes on disk.
//!
//! Not here: the content. Invariants: hop-by-hop fields, Age and fields that describe the transfer are not
//! stored; bytes that [`StoredHead::encode`] did not return decode to `None` and never panic.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_io::Instant;
use plimsoll_wire::http::conditional::ETag;
use plimsoll_wire::http::date::{DATE_BYTES, write_date};
use plimsoll_wire::http::status::Status;

use super::fields::{FieldBlock, FieldLines};
use super::freshness::{ExchangeTimes, Freshness, Timestamp, modified};
use super::key::{Digest, ResourceKey, Servers};
use super::request::CacheRequest;
use super::storable::Storable;
use super::vary::Vary;
use crate::cache::limits::SLICE_BYTES;

/// The head of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// The target of the request.
    pub key: ResourceKey,
    /// The status.
    pub status: Status,
    /// The fields to send, without those that each connection adds.
    pub fields: FieldBlock,
    /// How long the response may be used.
    pub freshness: Freshness,
    /// The request fields that select it.
    pub vary: Vary,
    /// Their values in the request that it answered.
    pub selection: Digest,
    /// Whether it may answer requests with Authorization.
    pub is_for_authorized: bool,
    /// The part of the content that is stored with it; `None` for all of it.
    pub slice: Option<Slice>,
}

/// A slice of a representation: all bytes between two multiples of [`SLICE_BYTES`], or up to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number, from 0.
    pub number: u64,
    /// The length of the whole representation, in bytes.
    pub whole: u64,
}

impl Slice {
    /// Returns the number of the slice with the byte at an offset.
    #[must_use]
    pub fn at(offset: u64) -> u64 {
        offset / SLICE_BYTES
    }

    /// Returns its bytes, as offsets in the representation.
    #[must_use]
    pub fn range(self) -> Range<u64> {
        let start = self.number.saturating_mul(SLICE_BYTES);
        start..start.saturating_add(SLICE_BYTES).min(self.whole)
    }
}

/// Fields that concern one connection or one transfer (RFC 9110, section 7.6.1; RFC 9111, section 3.1).
/// Cache-Status describes one exchange; Age is added when the response is used.
const NOT_STORED: [&str; 15] = [
    "age",
    "cache-status",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-cache",
];

/// Version of the encoding. Files of another version are dropped.
const ENCODING: u8 = 2;

impl StoredHead {
    /// Creates the head of a response that may be stored.
    #[must_use]
    pub fn new(
        request: &CacheRequest<'_>,
        status: Status,
        fields: FieldLines<'_>,
        times: ExchangeTimes,
        storable: Storable,
    ) -> StoredHead {
        let selection = storable.vary.select(request.fields);
        StoredHead {
            key: request.key.clone(),
            status,
            fields: storable_fields(fields, times.received.wall),
            freshness: storable.freshness,
            vary: storable.vary,
            selection,
            is_for_authorized: storable.is_for_authorized,
            slice: None,
        }
    }

    /// Returns the entity tag, with its quotes.
    #[must_use]
    pub fn etag(&self) -> Option<&[u8]> {
        self.fields.lines().first("etag")
    }

    /// Returns the entity tag if it is a strong one.
    #[must_use]
    pub fn strong_etag(&self) -> Option<&[u8]> {
        self.etag().filter(|tag| ETag::parse(tag).is_some_and(|tag| !tag.weak))
    }

    /// Returns the time of the last modification, if it distinguishes versions.
    #[must_use]
    pub fn last_modified(&self) -> Option<SystemTime> {
        modified(self.fields.lines(), self.freshness.received_at())
    }

    /// Whether the response answers a request, as far as Vary and Authorization decide.
    #[must_use]
    pub fn answers(&self, request: &CacheRequest<'_>) -> bool {
        (self.is_for_authorized || !request.has_authorization) && self.is_selected_by(request)
    }

    /// Whether the response is for the request's URI, and the variant for its fields.
    #[must_use]
    pub fn is_selected_by(&self, request: &CacheRequest<'_>) -> bool {
        // The digest selects; the comparison makes a collision harmless.
        self.key == request.key
            && (self.vary.is_empty() || self.selection == self.vary.select(request.fields))
    }

    /// Whether the response has a tag for purges: in Cache-Tag (separated by commas) or Surrogate-Key
    /// (separated by spaces).
    #[must_use]
    pub fn has_tag(&self, tag: &[u8]) -> bool {
        let lines = self.fields.lines();
        let mut spaced = lines.all("surrogate-key").flat_map(|value| value.split(|&byte| byte == b' '));
        lines.members("cache-tag").any(|member| member == tag) || spaced.any(|member| member == tag)
    }

    /// Returns its approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.key.uri().len() + self.fields.as_bytes().len()) as u64
    }

    /// Encodes it for storage.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let is_forwarded = self.key.servers() == Servers::Forwarded;
        let mut out = vec![ENCODING, u8::from(self.is_for_authorized), u8::from(is_forwarded)];
        out.extend_from_slice(&self.status.code().to_le_bytes());
        put_bytes(&mut out, self.key.uri());
        put_bytes(&mut out, self.fields.as_bytes());
        let freshness = &self.freshness;
        put_time(&mut out, freshness.received.wall.duration_since(UNIX_EPOCH).unwrap_or_default());
        for time in
            [freshness.initial_age, freshness.lifetime, freshness.while_revalidate, freshness.if_error]
        {
            put_time(&mut out, time);
        }
        out.push(
            u8::from(freshness.always_validates)
                | u8::from(freshness.never_stale) << 1
                | u8::from(freshness.ignores_client_staleness) << 2,
        );
        out.extend_from_slice(self.selection.as_bytes());
        if let Some(slice) = &self.slice {
            out.extend_from_slice(&slice.number.to_le_bytes());
            out.extend_from_slice(&slice.whole.to_le_bytes());
        }
        out
    }

    /// Decodes what [`StoredHead::encode`] returned. The caller [resumes](Freshness::resume) its age.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<StoredHead> {
        let mut rest = bytes;
        let [ENCODING, is_for_authorized @ (0 | 1), is_forwarded @ (0 | 1)] = take(&mut rest)? else {
            return None;
        };
        let servers = if is_forwarded == 1 { Servers::Forwarded } else { Servers::Origins };
        let status = Status::from_code(u16::from_le_bytes(take(&mut rest)?))?;
        let key = ResourceKey::of_uri(take_bytes(&mut rest)?.into()).at(servers);
        let fields = FieldBlock::from_bytes(take_bytes(&mut rest)?)?;
        let wall = UNIX_EPOCH.checked_add(take_time(&mut rest)?)?;
        let received = Timestamp { wall, steady: Instant::default() };
        let freshness = Freshness {
            received,
            initial_age: take_time(&mut rest)?,
            lifetime: take_time(&mut rest)?,
            while_revalidate: take_time(&mut rest)?,
            if_error: take_time(&mut rest)?,
            always_validates: false,
            never_stale: false,
            ignores_client_staleness: false,
        };
        let [flags] = take(&mut rest)?;
        let freshness = Freshness {
            always_validates: flags & 1 != 0,
            never_stale: flags & 2 != 0,
            ignores_client_staleness: flags & 4 != 0,
            ..freshness
        };
        let selection = Digest(take(&mut rest)?);
        let vary = Vary::parse(fields.lines())?;
        let is_for_authorized = is_for_authorized == 1;
        let slice = if rest.is_empty() { None } else { Some(take_slice(&mut rest)?) };
        let head = StoredHead { key, status, fields, freshness, vary, selection, is_for_authorized, slice };
        rest.is_empty().then_some(head)
    }
}

/// Copies the fields that are stored.
fn storable_fields(fields: FieldLines<'_>, received: SystemTime) -> FieldBlock {
    let mut block = FieldBlock::default();
    let options: Vec<&[u8]> = fields.members("connection").collect();
    for (name, value) in fields.iter() {
        let is_named = options.iter().any(|option| option.eq_ignore_ascii_case(name));
        if !is_named && !is_excluded(name) {
            block.push(name, value);
        }
    }
    if !fields.contains("date") {
        // "A recipient with a clock that receives a response message without a Date header field MUST record
        // the time it was received" (RFC 9110, section 6.6.1).
        let mut date = [0; DATE_BYTES];
        write_date(received, &mut date);
        block.push(b"Date", &date);
    }
    block
}

/// Whether a field is never stored.
pub(super) fn is_excluded(name: &[u8]) -> bool {
    NOT_STORED.iter().any(|excluded| name.eq_ignore_ascii_case(excluded.as_bytes()))
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // A head is shorter than 64 KiB.
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_time(out: &mut Vec<u8>, time: Duration) {
    out.extend_from_slice(&time.as_secs().to_le_bytes());
    out.extend_from_slice(&time.subsec_nanos().to_le_bytes());
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*array)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(bytes)
}

fn take_slice(rest: &mut &[u8]) -> Option<Slice> {
    let (number, whole) = (u64::from_le_bytes(take(rest)?), u64::from_le_bytes(take(rest)?));
    let slice = Slice { number, whole };
    (!slice.range().is_empty()).then_some(slice)
}

fn take_time(rest: &mut &[u8]) -> Option<Duration> {
    let seconds = u64::from_le_bytes(take(rest)?);
    let nanos = u32::from_le_bytes(take(rest)?);
    // A larger number of nanoseconds would carry into the seconds, and overflow them.
    (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

#[cfg(test)]
pub(crate) mod tests {
    use plimsoll_wire::http::head::Method;

    use super::*;
    use crate::cache::policy::evaluate;

    /// 2026-01-01T00:00:00Z.
    pub(crate) fn now() -> Timestamp {
        Timestamp { wall: UNIX_EPOCH + Duration::from_secs(1_767_225_600), steady: Instant::default() }
    }

    /// Returns the head that is stored for the response `lines` to a request for `uri` with the fields
    /// `request`.
    pub(crate) fn stored(uri: &str, request: &str, lines: &str) -> StoredHead {
        let key = ResourceKey::parse(uri.as_bytes()).unwrap();
        let request = CacheRequest::new(Method::Get, key, FieldLines::new(request.as_bytes()), false);
        let times = ExchangeTimes { sent: now(), received: now() };
        let fields = FieldLines::new(lines.as_bytes());
        let storable = evaluate(&request, Status::OK, fields, times).unwrap();
        StoredHead::new(&request, Status::OK, fields, times, storable)
    }

    #[test]
    fn section_3_1_hop_by_hop_and_transfer_fields_are_not_stored() {
        let lines = "ETag: \"a\"\r\nConnection: X-Hop, close\r\nx-hop: 1\r\nKeep-Alive: 5\r\n\
                     Content-Length: 9\r\nTransfer-Encoding: chunked\r\nAge: 0\r\nX-Kept: 1\r\n";
        let head = stored("http://a/", "", lines);
        let names: Vec<_> = head.fields.lines().iter().map(|(name, _)| name.to_vec()).collect();
        assert_eq!(names, [&b"ETag"[..], b"X-Kept", b"Date"]);
    }

    #[test]
    fn a_head_is_the_same_after_encoding_and_no_prefix_of_the_bytes_decodes() {
        let lines = "Cache-Control: max-age=9, must-revalidate\r\nVary: Accept\r\nETag: \"a\"\r\nAge: 4\r\n";
        let head = stored("http://a/b?c", "Accept: x\r\n", lines);
        let bytes = head.encode();
        let forwarded = StoredHead { key: head.key.clone().at(Servers::Forwarded), ..head.clone() };
        assert_eq!(StoredHead::decode(&forwarded.encode()), Some(forwarded));
        assert_eq!(StoredHead::decode(&bytes), Some(head));
        for end in 0..bytes.len() {
            assert_eq!(StoredHead::decode(&bytes[..end]), None, "{end}");
        }
        let slice = Some(Slice { number: 3, whole: 3 * SLICE_BYTES + 1 });
        let part = StoredHead { slice, ..StoredHead::decode(&bytes).unwrap() };
        assert_eq!(StoredHead::decode(&part.encode()), Some(part.clone()));
        let empty = Some(Slice { number: 3, whole: 3 * SLICE_BYTES });
        assert_eq!(StoredHead::decode(&StoredHead { slice: empty, ..part }.encode()), None);
        assert_eq!(StoredHead::decode(&[&bytes[..], b"x"].concat()), None);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            // Any result is fine; the digest of the file finds such a change.
            let _ = StoredHead::decode(&changed);
        }
    }

    #[test]
    fn section_4_1_a_response_answers_requests_with_the_same_selecting_fields() {
        let head = stored("http://a/", "Accept: x\r\n", "Vary: Accept\r\nCache-Control: max-age=9\r\n");
        let request = |lines: &'static str| {
            let key = ResourceKey::new("http", b"a", b"/");
            CacheRequest::new(Method::Get, key, FieldLines::new(lines.as_bytes()), false)
        };
        assert!(head.answers(&request("accept:  x\r\n")));
        assert!(!head.answers(&request("Accept: y\r\n")));
        assert!(!head.answers(&request("Accept: x\r\nAuthorization: z\r\n")));
        let shared = stored("http://a/", "", "Cache-Control: public, max-age=9\r\n");
        assert!(shared.answers(&request("Authorization: z\r\n")));
    }

    #[test]
    fn tags_are_separated_by_commas_or_spaces() {
        let lines = "ETag: \"a\"\r\nCache-Tag: one, two\r\nSurrogate-Key: three four\r\n";
        let head = stored("http://a/", "", lines);
        for tag in ["one", "two", "three", "four"] {
            assert!(head.has_tag(tag.as_bytes()), "{tag}");
        }
        assert!(!head.has_tag(b"tw") && !head.has_tag(b"three four"));
    }
}
