//! Requests, as callers make them.
//!
//! Not here: their bytes. What must hold: what frames a request, and names its host, is the client's to say.

use std::fmt;

use crate::source::Source;

/// A request to be sent.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method, in capital letters.
    pub method: &'a str,
    /// The target below the client's base, encoded already: a path that begins with `/`, and its query.
    pub target: &'a str,
    /// Fields beside those that the client adds itself: Host, User-Agent (unless it is among these) and what
    /// frames the body.
    pub fields: Vec<(&'a str, String)>,
    /// The body.
    pub body: Body<'a>,
    /// Whether to ask twice is the same as to ask once, though its method does not say so.
    pub is_idempotent: bool,
}

/// The body of a request.
pub enum Body<'a> {
    /// None.
    Empty,
    /// Bytes at hand.
    Bytes(Vec<u8>),
    /// Bytes from elsewhere.
    Stream {
        /// How many bytes will come; None if nobody knows, and then they are sent as chunks.
        length: Option<u64>,
        /// Where they come from.
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
    /// A request without fields and body.
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

    /// Says whether to ask twice is the same as to ask once, whatever the method says: it is then asked again
    /// where a kept connection turned out to be closed.
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
