//! Parses response heads, for a client (RFC 9112, sections 4 to 6). The module `answer` writes them, for a
//! server.
//!
//! Not here: the bytes, as in [`super::head`], and the body. Invariant: a parsed head has one body length,
//! and a head that another program might read differently was refused. With an ambiguous end, a client
//! would take one response for another.

use std::mem::MaybeUninit;

use super::field::Field;
use super::fields::{BadLineEnd, Fields, Gathered, gather, has_bare_cr, narrow};
use super::head::{Framing as RequestFraming, HeadLimits, Method, Version};
use super::refusal::Refusal;
use super::status::Status;
use crate::decimal::decimal;
use crate::limits::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX};

/// How a response's body is delimited (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body, by the method or the status.
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// "the response message body length is determined by the number of octets received prior to the server
    /// closing the connection".
    UntilClose,
}

impl From<RequestFraming> for Framing {
    fn from(framing: RequestFraming) -> Self {
        match framing {
            RequestFraming::None => Self::None,
            RequestFraming::Length(bytes) => Self::Length(bytes),
            RequestFraming::Chunked => Self::Chunked,
        }
    }
}

/// An error in a response. The server is at fault in all cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub enum BadResponse {
    /// The first line is not a status line of HTTP/1.
    StatusLine,
    /// A CR without LF or a LF without CR.
    LineEnd,
    /// A field name that is not a token, or a folded line.
    FieldName,
    /// A control byte in a field value.
    FieldValue,
    /// More fields than the limit.
    FieldsTooMany,
    /// A head longer than the limit.
    HeadTooLong,
    /// A transfer coding other than chunked, or in HTTP/1.0, or twice.
    Coding,
    /// A `Content-Length` that is not one decimal number below 2^64.
    Length,
    /// Both `Content-Length` and `Transfer-Encoding`.
    LengthAndCoding,
    /// The chunked coding of the body is broken.
    Chunk(#[from] Refusal),
}

impl BadResponse {
    /// Returns the error as the end of a sentence about the response.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::StatusLine => "its first line is not \"HTTP/1.1\", a status and a reason",
            Self::LineEnd => "a line of its head does not end in CR LF",
            Self::FieldName => "the name of a header field in it is bad",
            Self::FieldValue => "a header field in it has a control character",
            Self::FieldsTooMany => "it has too many header fields",
            Self::HeadTooLong => "its header fields are too long",
            Self::Coding => "its transfer coding is not \"chunked\"",
            Self::Length => "its Content-Length is not one number",
            Self::LengthAndCoding => "it has both Content-Length and Transfer-Encoding",
            Self::Chunk(_) => "the chunks of its body are broken",
        }
    }
}

impl From<BadLineEnd> for BadResponse {
    fn from(_: BadLineEnd) -> Self {
        Self::LineEnd
    }
}

/// A parsed response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    framing: Framing,
    fields: Fields,
    status: Status,
    len: u16,
    version: Version,
    keeps_alive: bool,
}

impl ResponseHead {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the server's version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the length of the head in bytes, its blank line included: the offset of the body.
    // There is no empty head, and so no `is_empty`.
    #[allow(clippy::len_without_is_empty)]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns how the body is delimited.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns whether another request may be sent on this connection after the body (RFC 9112, section
    /// 9.3). False if the fields of a 204 announce a body: the server may send it.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Returns whether further responses to the same request follow.
    ///
    /// False for a 101, after which the connection changes its protocol.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != Status::SWITCHING_PROTOCOLS
    }

    /// Returns the trimmed value of the first line of a known field.
    #[must_use]
    pub fn field<'a>(&self, block: &'a [u8], field: Field) -> Option<&'a [u8]> {
        self.fields.first(block, field)
    }

    /// Returns the value of the first line of a field by its name, known or not.
    #[must_use]
    pub fn named<'a>(&self, block: &'a [u8], name: &str) -> Option<&'a [u8]> {
        self.fields.named(block, name)
    }

    /// Iterates over all fields, name and trimmed value, in the order sent.
    pub fn fields<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.lines(block)
    }
}

/// Parses the response head at the start of `bytes`; bytes after it are not examined. `method` is the
/// request's, since a response to HEAD has no body. CONNECT is not supported. The limit on the target is
/// not used.
///
/// None means that more bytes are needed. For linear cost with a slow peer, call
/// [`super::head::find_head_end`] first.
///
/// # Errors
///
/// A [`BadResponse`]: no further data on this connection can be trusted.
pub fn parse_response(
    bytes: &[u8],
    method: Method,
    limits: &HeadLimits,
) -> Result<Option<ResponseHead>, BadResponse> {
    // httparse skips empty lines, which are valid only before a request.
    if let [b'\r' | b'\n', ..] = bytes {
        return Err(BadResponse::StatusLine);
    }
    let bytes_max = limits.bytes_max.min(HEAD_BYTES_MAX);
    let mut room = [const { MaybeUninit::uninit() }; HEAD_FIELDS_MAX];
    let room = room.get_mut(..limits.fields_max.min(HEAD_FIELDS_MAX)).unwrap_or_default();
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut response, bytes, room) {
        Ok(httparse::Status::Complete(len)) if len <= bytes_max => {
            build(&response, method, bytes.get(..len).unwrap_or_default()).map(Some)
        }
        Ok(httparse::Status::Partial) if bytes.len() < bytes_max => Ok(None),
        Ok(_) => Err(BadResponse::HeadTooLong),
        Err(error) => Err(reason_of(error, bytes)),
    }
}

fn reason_of(error: httparse::Error, bytes: &[u8]) -> BadResponse {
    match error {
        httparse::Error::TooManyHeaders => BadResponse::FieldsTooMany,
        httparse::Error::NewLine => BadResponse::LineEnd,
        httparse::Error::HeaderName => BadResponse::FieldName,
        httparse::Error::HeaderValue if has_bare_cr(bytes) => BadResponse::LineEnd,
        httparse::Error::HeaderValue => BadResponse::FieldValue,
        httparse::Error::Version | httparse::Error::Token | httparse::Error::Status => {
            BadResponse::StatusLine
        }
    }
}

fn build(
    response: &httparse::Response<'_, '_>,
    method: Method,
    block: &[u8],
) -> Result<ResponseHead, BadResponse> {
    let gathered = gather(response.headers, block)?;
    let status = response.code.and_then(Status::from_code).ok_or(BadResponse::StatusLine)?;
    let version = if response.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let framing = framing(&gathered, block, (status, version), method)?;
    let persists = !gathered.closes && (version == Version::Http11 || gathered.persists);
    Ok(ResponseHead {
        framing,
        fields: gathered.fields,
        status,
        len: narrow(block.len()),
        version,
        keeps_alive: persists
            && framing != Framing::UntilClose
            && !announces_wrongly(&gathered, block, status),
    })
}

/// Whether the status permits no body, and the fields announce one. Many servers send a zero.
fn announces_wrongly(gathered: &Gathered, block: &[u8], status: Status) -> bool {
    let length = gathered.fields.first(block, Field::ContentLength);
    let is_announced = gathered.fields.first(block, Field::TransferEncoding).is_some()
        || length.is_some_and(|value| decimal(value) != Some(0));
    has_no_body(status) && is_announced
}

/// Whether no response with this status has a body, or the length of one: "always terminated by the first
/// empty line after the header fields, regardless of the header fields present" (RFC 9112, section 6.3). In a
/// 304, Content-Length is that of another response.
fn has_no_body(status: Status) -> bool {
    status.is_bodiless() && status != Status::NOT_MODIFIED
}

/// Determines how the body is delimited, by RFC 9112, section 6.3; any ambiguity is refused. The fields of a
/// 304 and of a response to HEAD are checked, because they are those of a response with a body.
fn framing(
    gathered: &Gathered,
    block: &[u8],
    (status, version): (Status, Version),
    method: Method,
) -> Result<Framing, BadResponse> {
    if has_no_body(status) {
        return Ok(Framing::None);
    }
    let announced = announced(gathered, block, version)?;
    let bodiless = status.is_bodiless() || method == Method::Head;
    Ok(if bodiless { Framing::None } else { announced })
}

/// Returns the framing that the fields declare.
fn announced(gathered: &Gathered, block: &[u8], version: Version) -> Result<Framing, BadResponse> {
    let fields = &gathered.fields;
    let length = fields.first(block, Field::ContentLength);
    match (length, fields.first(block, Field::TransferEncoding)) {
        (None, None) => Ok(Framing::UntilClose),
        (Some(_), Some(_)) => Err(BadResponse::LengthAndCoding),
        (Some(_), None) if fields.repeated(Field::ContentLength) => Err(BadResponse::Length),
        (Some(value), None) => decimal(value).map(Framing::Length).ok_or(BadResponse::Length),
        (None, Some(value)) => {
            let once = !fields.repeated(Field::TransferEncoding) && version == Version::Http11;
            let chunked = once && value.eq_ignore_ascii_case(b"chunked");
            if chunked { Ok(Framing::Chunked) } else { Err(BadResponse::Coding) }
        }
    }
}
