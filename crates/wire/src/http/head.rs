//! Request heads: the request line and the header fields (RFC 9112, sections 2 to 6).
//!
//! Not here: the bytes. A [`Head`] is offsets into the block that it was parsed from, so that block (a
//! leased buffer) and head lie side by side with neither borrow nor copy. Invariants: a parsed head has one
//! host, one body length and one target. A head that another program might read differently was refused.
//! With a block other than its own, a head returns meaningless results but never panics.

mod parse;

pub use self::parse::{find_head_end, parse_head};
pub use super::field::Field;
pub use super::fields::Span;
pub use super::refusal::Refusal;

use super::fields::Fields;

/// Limits on the size of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, blank line included; clamped to [`crate::limits::HEAD_BYTES_MAX`].
    pub bytes_max: usize,
    /// Field lines; clamped to [`crate::limits::HEAD_FIELDS_MAX`].
    pub fields_max: usize,
    /// Bytes of the request target.
    ///
    /// "It is RECOMMENDED that all HTTP senders and recipients support, at a minimum, request-line lengths
    /// of 8000 octets" (RFC 9112, section 3).
    pub target_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: 16 << 10, fields_max: 64, target_bytes_max: 8 << 10 }
    }
}

/// A request method. "The method token is case-sensitive" (RFC 9110, section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Send a representation.
    Get,
    /// Like GET, without the content.
    Head,
    /// Let the resource process the content.
    Post,
    /// Replace the resource.
    Put,
    /// Remove the resource.
    Delete,
    /// Report the allowed methods.
    Options,
    /// Change a part of the resource (RFC 5789).
    Patch,
    /// Make a folder (RFC 4918).
    Mkcol,
    /// Rename (RFC 4918).
    Move,
    /// Copy (RFC 4918).
    Copy,
    /// List properties (RFC 4918).
    Propfind,
    /// Change properties (RFC 4918).
    Proppatch,
    /// Take or refresh a lock (RFC 4918).
    Lock,
    /// End a lock (RFC 4918).
    Unlock,
    /// Echo the request.
    Trace,
    /// Open a tunnel.
    Connect,
    /// Any other token; [`Head::method_bytes`] returns it.
    Other,
}

impl Method {
    /// Returns the token of a known method, and `OTHER` for any other, for use in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Patch => "PATCH",
            Self::Mkcol => "MKCOL",
            Self::Move => "MOVE",
            Self::Copy => "COPY",
            Self::Propfind => "PROPFIND",
            Self::Proppatch => "PROPPATCH",
            Self::Lock => "LOCK",
            Self::Unlock => "UNLOCK",
            Self::Trace => "TRACE",
            Self::Connect => "CONNECT",
            Self::Other => "OTHER",
        }
    }

    /// Returns the method of a token.
    #[must_use]
    pub fn from_token(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"PATCH" => Self::Patch,
            b"MKCOL" => Self::Mkcol,
            b"MOVE" => Self::Move,
            b"COPY" => Self::Copy,
            b"PROPFIND" => Self::Propfind,
            b"PROPPATCH" => Self::Proppatch,
            b"LOCK" => Self::Lock,
            b"UNLOCK" => Self::Unlock,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }

    /// Returns whether a request of this method may be repeated: "Of the request methods defined by this
    /// specification, PUT, DELETE, and safe request methods are idempotent" (RFC 9110, section 9.2.2).
    /// PROPFIND is safe, and PROPPATCH and UNLOCK are idempotent. A repeated MKCOL, MOVE, COPY or LOCK has
    /// another result, and nothing is known of other methods.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get
            | Self::Head
            | Self::Options
            | Self::Trace
            | Self::Propfind
            | Self::Proppatch
            | Self::Unlock
            | Self::Put
            | Self::Delete => true,
            Self::Post
            | Self::Patch
            | Self::Mkcol
            | Self::Move
            | Self::Copy
            | Self::Lock
            | Self::Connect
            | Self::Other => false,
        }
    }

    /// Returns whether this is GET or HEAD, to which ranges and If-Modified-Since apply.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// A supported version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// How a request's body is delimited (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// "If this is a request message and none of the above are true, then the message body length is zero".
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// A parsed request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    framing: Framing,
    fields: Fields,
    method_span: Span,
    target: Span,
    authority: Span,
    len: u16,
    method: Method,
    version: Version,
    keeps_alive: bool,
    expects_continue: bool,
}

impl Head {
    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the method as sent, which distinguishes one [`Method::Other`] from another.
    #[must_use]
    pub fn method_bytes<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        self.method_span.of(block)
    }

    /// Returns the client's version.
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

    /// Returns the request target as sent.
    #[must_use]
    pub fn target<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        self.target.of(block)
    }

    /// Returns the host and port of the request: those of the target if it has any, else the Host field's.
    ///
    /// "When an origin server receives a request with an absolute-form of request-target, the origin server
    /// MUST ignore the received Host header field (if any) and instead use the host information of the
    /// request-target" (RFC 9112, section 3.2.2). Returns None for an HTTP/1.0 request without Host, and
    /// for `OPTIONS *` with an empty one.
    #[must_use]
    pub fn authority<'a>(&self, block: &'a [u8]) -> Option<&'a [u8]> {
        (self.authority != Span::ABSENT).then(|| self.authority.of(block))
    }

    /// Returns how the body is delimited.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns whether the client allows another request on this connection (RFC 9112, section 9.3).
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Returns whether the client waits for a 100 (Continue) before it sends the body.
    ///
    /// False without a body: "A server MAY omit sending a 100 (Continue) response [...] if the framing
    /// indicates that there is no content". False in HTTP/1.0: "A server that receives a 100-continue
    /// expectation in an HTTP/1.0 request MUST ignore that expectation" (RFC 9110, section 10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Returns the trimmed value of the first line of a field.
    #[must_use]
    pub fn field<'a>(&self, block: &'a [u8], field: Field) -> Option<&'a [u8]> {
        self.fields.first(block, field)
    }

    /// Returns whether a field has more than one line; [`Head::all`] returns them all.
    #[must_use]
    pub fn repeated(&self, field: Field) -> bool {
        self.fields.repeated(field)
    }

    /// Iterates over the values of all lines of a field, in order. As cheap as [`Head::field`] unless the
    /// field is repeated.
    pub fn all<'a>(&self, block: &'a [u8], field: Field) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.fields.all(block, field)
    }

    /// Returns the value of the first line of a field by its name, known or not: the slow path.
    #[must_use]
    pub fn named<'a>(&self, block: &'a [u8], name: &str) -> Option<&'a [u8]> {
        self.fields.named(block, name)
    }

    /// Iterates over all fields, name and trimmed value, in the order sent: the slow path.
    pub fn fields<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.lines(block)
    }
}
