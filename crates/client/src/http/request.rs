//! Requests, as callers create them.
//!
//! It does not encode them. Invariant: only the client itself sets the fields for framing and the host.

use std::fmt;

use crate::source::Source;

/// A request to be sent.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method, in capital letters.
    pub method: &'a str,
    /// The target below the client's base, already encoded: a path that begins with `/`, and its query.
    pub target: &'a str,
    /// Fields in addition to those that the client adds: Host, User-Agent (unless it is among these) and the
    /// framing of the body.
    pub fields: Vec<(&'a str, String)>,
    /// The body.
    pub body: Body<'a>,
    /// Whether the request is idempotent, even if its method is not.
    pub is_idempotent: bool,
}

/// The body of a request.
pub enum Body<'a> {
    /// None.
    Empty,
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// Bytes from a source.
    Stream {
        /// The number of bytes; `None` if unknown: they are then sent as chunks.
        length: Option<u64>,
        /// The source of the bytes.
        source: &'a mut dyn Source,
    },
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Empty => f.write_str("Empty"),
            Body::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Body::Stream { length, .. } => write!(f, "Stream({length:?})"),
        }
    }
}

impl<'a> Request<'a> {
    /// Creates a request without fields and body.
    #[must_use]
    pub fn new(method: &'a str, target: &'a str) -> Request<'a> {
        Request { method, target, fields: Vec::new(), body: Body::Empty, is_idempotent: false }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &'a str, value: impl Into<String>) -> Request<'a> {
        self.fields.push((name, value.into()));
        self
    }

    /// Sets whether the request is idempotent, whatever its method. If so, it is repeated when a keep-alive
    /// connection turns out to be closed.
    #[must_use]
    pub fn idempotent_if(mut self, is_idempotent: bool) -> Request<'a> {
        self.is_idempotent = is_idempotent;
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: Body<'a>) -> Request<'a> {
        self.body = body;
        self
    }
}
