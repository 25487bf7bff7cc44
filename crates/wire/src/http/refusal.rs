//! The reasons why a message is refused: the text for the peer and the status.
//!
//! Not here: the writing of the response. Invariants: after a refusal the connection is closed, because the
//! start of the next message is unknown; no text here repeats a byte that the peer sent.

use super::status::Status;
use super::target::BadTarget;

/// The reason why a message was refused. Each shape has its own variant, so that tests, logs and counters
/// can distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub enum Refusal {
    /// A malformed `Transfer-Encoding`, or one in which `chunked` is not the last coding or is repeated.
    CodingBad,
    /// `Transfer-Encoding` in an HTTP/1.0 request.
    CodingInHttp10,
    /// More than one `Transfer-Encoding` line.
    CodingRepeated,
    /// A transfer coding other than chunked, under chunked.
    CodingUnknown,
    /// The extensions of a chunk, or of all chunks together, are too long.
    ChunkExtension,
    /// A chunk does not end, or its size line does not end, in CRLF.
    ChunkLineEnd,
    /// A chunk size that is not 1 to 16 hexadecimal digits.
    ChunkSize,
    /// More than one empty line before the request line.
    EmptyLines,
    /// A field name that is empty, is not a token, or is followed by white space.
    FieldName,
    /// More fields than the limit.
    FieldsTooMany,
    /// A control byte in a field value.
    FieldValue,
    /// A line that begins with white space.
    Folded,
    /// A head longer than the limit.
    HeadTooLong,
    /// A `Host` that is not a host with an optional port, or that is empty where it is needed.
    HostBad,
    /// No `Host` in an HTTP/1.1 request.
    HostMissing,
    /// More than one `Host` line.
    HostRepeated,
    /// Both `Content-Length` and `Transfer-Encoding`.
    LengthAndCoding,
    /// A `Content-Length` that is not a decimal number below 2^64.
    LengthBad,
    /// More than one `Content-Length` line.
    LengthRepeated,
    /// A CR without LF or a LF without CR.
    LineEnd,
    /// The request line is not a method, a target and a version with single spaces between.
    RequestLine,
    /// The request target is of no known form.
    Target(#[from] BadTarget),
    /// A request target longer than the limit.
    TargetTooLong,
    /// A line of the trailer section that is not a field.
    TrailerBad,
    /// A trailer section longer than the limit.
    TrailerTooLong,
    /// The third word of the request line is not an HTTP version.
    Version,
    /// An HTTP version other than 1.0 and 1.1.
    VersionUnknown,
}

impl Refusal {
    /// Returns the status of the response that precedes the close.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::CodingUnknown => Status::NOT_IMPLEMENTED,
            Self::FieldsTooMany | Self::HeadTooLong => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TargetTooLong => Status::URI_TOO_LONG,
            Self::VersionUnknown => Status::HTTP_VERSION_NOT_SUPPORTED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns the text for the peer: the error and the remedy.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::CodingBad => {
                "Transfer-Encoding must be exactly \"chunked\". Send it so, or send Content-Length."
            }
            Self::CodingInHttp10 => {
                "HTTP/1.0 has no Transfer-Encoding. Use HTTP/1.1, or send Content-Length."
            }
            Self::CodingRepeated => "Transfer-Encoding was sent more than once. Send it once.",
            Self::CodingUnknown => {
                "Only the transfer coding \"chunked\" is known here. Send the body without another coding."
            }
            Self::ChunkExtension => "The chunk extensions are too long. Send chunks without extensions.",
            Self::ChunkLineEnd => "A chunk must have the length that it announced and end in CR LF.",
            Self::ChunkSize => {
                "A chunk must begin with its size: 1 to 16 hexadecimal digits, nothing around them."
            }
            Self::EmptyLines => {
                "More than one empty line came before the request. Send the request line first."
            }
            Self::FieldName => {
                "A header field's name has a bad character, is empty, or has a space before its colon."
            }
            Self::FieldsTooMany => "The request has too many header fields. Send fewer.",
            Self::FieldValue => "A header field's value has a control character. Remove or encode it.",
            Self::Folded => "A header line begins with white space. Send each field on one line.",
            Self::HeadTooLong => "The request's header fields are too long. Send fewer or shorter ones.",
            Self::HostBad => "Host must be one host name or address with an optional port.",
            Self::HostMissing => "An HTTP/1.1 request needs a Host field. Send one.",
            Self::HostRepeated => "Host was sent more than once. Send it once.",
            Self::LengthAndCoding => {
                "Both Content-Length and Transfer-Encoding were sent. Send the one that is meant."
            }
            Self::LengthBad => "Content-Length must be one decimal number.",
            Self::LengthRepeated => "Content-Length was sent more than once. Send it once.",
            Self::LineEnd => {
                "Every line of a request's head must end in CR LF, which must not stand elsewhere."
            }
            Self::RequestLine => "The request line must be: METHOD, space, target, space, HTTP/1.1.",
            Self::Target(bad) => bad.detail(),
            Self::TargetTooLong => "The request target is too long. Use a shorter path or query.",
            Self::TrailerBad => "The lines after the last chunk must be header fields.",
            Self::TrailerTooLong => "The fields after the last chunk are too long. Send fewer or none.",
            Self::Version => "The request line must end in HTTP/1.1 or HTTP/1.0, in capital letters.",
            Self::VersionUnknown => "This server speaks HTTP/1.1 and HTTP/1.0. Use one of them.",
        }
    }
}
