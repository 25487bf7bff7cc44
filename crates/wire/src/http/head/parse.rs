//! Parses bytes into a [`Head`]: one pass by httparse, then checks that are stricter than httparse's.
//!
//! Not here: the body, and any decision about a well-formed request. Invariants: no prefix of a valid head
//! is refused, no byte is examined more than a fixed number of times, and nothing is allocated.

use std::mem::MaybeUninit;

use super::super::fields::{BadLineEnd, Gathered, Span, gather, has_bare_cr, narrow, span};
use super::super::grammar::{is_host, trim_ows};
use super::super::target::{BadTarget, strip_scheme};
use super::{Field, Framing, Head, HeadLimits, Method, Refusal, Version};
use crate::decimal::decimal;
use crate::limits::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX};

/// Parses the head at the start of `bytes`; bytes after it are not examined.
///
/// None means that more bytes are needed. For linear cost with a slow peer, call [`find_head_end`] first.
///
/// # Errors
///
/// A [`Refusal`]: respond with its status and close.
pub fn parse_head(bytes: &[u8], limits: &HeadLimits) -> Result<Option<Head>, Refusal> {
    let skipped = leading_line(bytes)?;
    let bytes_max = limits.bytes_max.min(HEAD_BYTES_MAX);
    let mut room = [const { MaybeUninit::uninit() }; HEAD_FIELDS_MAX];
    let fields_max = limits.fields_max.min(HEAD_FIELDS_MAX);
    let mut request = httparse::Request::new(&mut []);
    let rest = bytes.get(skipped..).unwrap_or_default();
    let parsed = request.parse_with_uninit_headers(rest, room.get_mut(..fields_max).unwrap_or_default());
    match parsed {
        Ok(httparse::Status::Complete(len)) => {
            let len = skipped + len;
            let block = bytes.get(..len).unwrap_or_default();
            let target_len = request.path.unwrap_or_default().len();
            if target_len > limits.target_bytes_max {
                return Err(Refusal::TargetTooLong);
            }
            if len > bytes_max {
                return Err(Refusal::HeadTooLong);
            }
            build(&request, block).map(Some)
        }
        Ok(httparse::Status::Partial) => refuse_growth(rest, bytes.len() >= bytes_max, limits).map(|()| None),
        Err(error) => Err(refusal_of(error, rest)),
    }
}

/// Returns the index after the blank line that ends the head at the start of `bytes`. `from` is the length
/// of `bytes` at the last search, so that a head received byte by byte costs linear time.
///
/// A blank line of bare LF is found as well, and [`parse_head`] refuses it. Otherwise a client that sends
/// it would wait in vain. This function checks no limit: call [`parse_head`] as well once the limit is
/// reached.
#[must_use]
pub fn find_head_end(bytes: &[u8], from: usize) -> Option<usize> {
    // The last search may have ended within LF CR LF.
    let mut at = from.saturating_sub(2);
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b'\n')? + 1;
        match bytes.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// Returns the length of an empty line before the request line.
///
/// "a server that is expecting to receive and parse a request-line SHOULD ignore at least one empty line
/// (CRLF) received prior to the request-line" (RFC 9112, section 2.2). One is enough.
fn leading_line(bytes: &[u8]) -> Result<usize, Refusal> {
    match bytes {
        [b'\r', b'\n', b'\r' | b'\n', ..] => Err(Refusal::EmptyLines),
        [b'\r', b'\n', ..] => Ok(2),
        [b'\n', ..] | [b'\r', _, ..] => Err(Refusal::LineEnd),
        _ => Ok(0),
    }
}

/// Refuses an incomplete head that already exceeds a limit.
fn refuse_growth(rest: &[u8], full: bool, limits: &HeadLimits) -> Result<(), Refusal> {
    if rest.len() > limits.target_bytes_max {
        let target = rest.splitn(3, |&byte| byte == b' ').nth(1).unwrap_or_default();
        if target.len() > limits.target_bytes_max {
            return Err(Refusal::TargetTooLong);
        }
    }
    if full { Err(Refusal::HeadTooLong) } else { Ok(()) }
}

/// Maps httparse's error to a refusal. Cases that httparse does not distinguish are distinguished here, off
/// the fast path.
fn refusal_of(error: httparse::Error, rest: &[u8]) -> Refusal {
    match error {
        httparse::Error::Version => refused_version(rest),
        httparse::Error::TooManyHeaders => Refusal::FieldsTooMany,
        httparse::Error::NewLine => Refusal::LineEnd,
        httparse::Error::HeaderName if has_folded_line(rest) => Refusal::Folded,
        httparse::Error::HeaderName => Refusal::FieldName,
        httparse::Error::HeaderValue if has_bare_cr(rest) => Refusal::LineEnd,
        httparse::Error::HeaderValue => Refusal::FieldValue,
        httparse::Error::Token | httparse::Error::Status => Refusal::RequestLine,
    }
}

/// Distinguishes an unknown version from a malformed one: `HTTP-version = HTTP-name "/" DIGIT "." DIGIT`,
/// and "HTTP-version is case-sensitive" (RFC 9112, section 2.3).
fn refused_version(rest: &[u8]) -> Refusal {
    let word = rest.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
    match word.strip_prefix(b"HTTP/") {
        Some([major, b'.', minor, ..]) if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Refusal::VersionUnknown
        }
        // A prefix of a later version: httparse refuses it at its first byte that is not "1".
        Some([major]) if major.is_ascii_digit() => Refusal::VersionUnknown,
        Some([major, b'.']) if major.is_ascii_digit() => Refusal::VersionUnknown,
        _ => Refusal::Version,
    }
}

fn has_folded_line(rest: &[u8]) -> bool {
    rest.windows(2).any(|pair| matches!(pair, b"\n " | b"\n\t"))
}

impl From<BadLineEnd> for Refusal {
    fn from(_: BadLineEnd) -> Self {
        Self::LineEnd
    }
}

fn build(request: &httparse::Request<'_, '_>, block: &[u8]) -> Result<Head, Refusal> {
    let gathered = gather(request.headers, block)?;
    let version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let method = request.method.unwrap_or_default().as_bytes();
    let target = request.path.unwrap_or_default().as_bytes();
    let framing = framing(&gathered, block, version)?;
    let has_body = !matches!(framing, Framing::None | Framing::Length(0));
    let expect = gathered.fields.first(block, Field::Expect).unwrap_or_default();
    let mut head = Head {
        framing,
        fields: gathered.fields,
        method_span: span(block, method),
        target: span(block, target),
        authority: Span::ABSENT,
        len: narrow(block.len()),
        method: Method::from_token(method),
        version,
        keeps_alive: !gathered.closes && (version == Version::Http11 || gathered.persists),
        expects_continue: has_body
            && version == Version::Http11
            && expect.eq_ignore_ascii_case(b"100-continue"),
    };
    head.authority = authority(&head, block)?;
    Ok(head)
}

/// Determines how the body is delimited, by RFC 9112, section 6; any ambiguity is refused.
fn framing(gathered: &Gathered, block: &[u8], version: Version) -> Result<Framing, Refusal> {
    let length = gathered.fields.first(block, Field::ContentLength);
    let Some(coding) = gathered.fields.first(block, Field::TransferEncoding) else {
        return length.map_or(Ok(Framing::None), |value| content_length(gathered, value));
    };
    if version == Version::Http10 {
        // "A server or client that receives an HTTP/1.0 message containing a Transfer-Encoding header field
        // MUST treat the message as if the framing is faulty" (section 6.1).
        return Err(Refusal::CodingInHttp10);
    }
    if length.is_some() {
        // "A server MAY reject a request that contains both Content-Length and Transfer-Encoding" (section
        // 6.1).
        return Err(Refusal::LengthAndCoding);
    }
    if gathered.fields.repeated(Field::TransferEncoding) {
        return Err(Refusal::CodingRepeated);
    }
    transfer_coding(coding)
}

/// Parses the length. Repeated lengths are refused even when equal, though RFC 9112, section 6.3 would
/// allow them to be merged. Their sender may have merged messages in a way that is not visible here.
fn content_length(gathered: &Gathered, value: &[u8]) -> Result<Framing, Refusal> {
    if gathered.fields.repeated(Field::ContentLength) {
        return Err(Refusal::LengthRepeated);
    }
    decimal(value).map(Framing::Length).ok_or(Refusal::LengthBad)
}

/// "If a Transfer-Encoding header field is present in a request and the chunked transfer coding is not the
/// final encoding, the message body length cannot be determined reliably; the server MUST respond with the
/// 400 (Bad Request) status code" (section 6.3). Chunked over another coding is framed well but not
/// understood: "A server that receives a request message with a transfer coding it does not understand
/// SHOULD respond with 501" (section 6.1).
fn transfer_coding(value: &[u8]) -> Result<Framing, Refusal> {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if is_chunked(value) {
        return Ok(Framing::Chunked);
    }
    let mut codings = value.rsplit(|&byte| byte == b',').map(trim_ows);
    let framed = codings.next().is_some_and(is_chunked);
    // "A sender MUST NOT apply the chunked transfer coding more than once to a message body" (section 6.1).
    if framed && codings.all(|coding| !coding.is_empty() && !is_chunked(coding)) {
        return Err(Refusal::CodingUnknown);
    }
    Err(Refusal::CodingBad)
}

/// Checks Host and the form of the target, and returns the position of the authority.
///
/// "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a
/// Host header field and to any request message that contains more than one Host header field line or a Host
/// header field with an invalid field value" (RFC 9112, section 3.2).
fn authority(head: &Head, block: &[u8]) -> Result<Span, Refusal> {
    let host = head.field(block, Field::Host);
    if head.repeated(Field::Host) {
        return Err(Refusal::HostRepeated);
    }
    if host.is_none() && head.version == Version::Http11 {
        return Err(Refusal::HostMissing);
    }
    let host = host.unwrap_or_default();
    if !host.is_empty() && !is_host(host) {
        return Err(Refusal::HostBad);
    }
    match target_authority(head, block)? {
        Some(authority) => Ok(authority),
        None => host_authority(head, host, block),
    }
}

/// Returns the authority of Host. An empty Host is valid only if the target has no authority and needs
/// none. For a path it would make an http URL with an empty host: "A recipient that processes such a URI
/// reference MUST reject it as invalid" (RFC 9110, section 4.2.1).
fn host_authority(head: &Head, host: &[u8], block: &[u8]) -> Result<Span, Refusal> {
    let place = head.fields.place(Field::Host);
    match host {
        b"" if place == Span::ABSENT || head.target(block) == b"*" => Ok(Span::ABSENT),
        b"" => Err(Refusal::HostBad),
        _ => Ok(place),
    }
}

/// Returns the authority in the target, if its form has one. A form that the method does not allow is
/// refused.
fn target_authority(head: &Head, block: &[u8]) -> Result<Option<Span>, Refusal> {
    let target = head.target(block);
    let authority = match (target, head.method) {
        // "authority-form [...] is only used for CONNECT requests" (RFC 9112, section 3.2.3).
        (_, Method::Connect) => target,
        ([b'/', ..], _) | (b"*", Method::Options) => return Ok(None),
        _ => {
            let rest = strip_scheme(target).ok_or(BadTarget::Form)?;
            rest.split(|byte| matches!(byte, b'/' | b'?')).next().unwrap_or_default()
        }
    };
    if is_host(authority) { Ok(Some(span(block, authority))) } else { Err(BadTarget::Form.into()) }
}
