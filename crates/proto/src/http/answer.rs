//! What a service answers: a status, fields and a body that is not yet sent.
//!
//! It does not say how it is sent. What must hold: the length that its head tells is the length that its
//! body has.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{File, FileRange};
use plimsoll_operations::Permit;
use plimsoll_store::apart::Contents;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::status::Status;

use super::limits::COPIED_BODY_BYTES_MAX;
use crate::outgoing::UNSENT_BYTES_MAX;

/// An answer. Date, Connection and Content-Length are added when it is sent.
#[derive(Debug)]
pub struct Answer {
    status: Status,
    /// Status line and fields so far, in the buffer that is sent.
    pub(super) head: Vec<u8>,
    pub(super) body: Body,
    pub(super) when_sent: Option<WhenSent>,
    /// The right that is checked while it is sent.
    pub(super) permit: Option<Box<Permit>>,
}

/// What is to be done once an answer is sent.
pub(super) struct WhenSent(Box<dyn FnOnce(u64, bool)>);

impl WhenSent {
    /// Tells how many bytes of the body went out, and whether they were all.
    pub(super) fn tell(self, body_bytes: u64, whole: bool) {
        (self.0)(body_bytes, whole);
    }
}

impl std::fmt::Debug for WhenSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhenSent")
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// None; tells a length of zero where a body could be.
    Empty,
    /// Bytes that were made for it.
    Bytes(Vec<u8>),
    /// Bytes that are in memory whether they are sent or not.
    Shared(Arc<[u8]>),
    /// A range of a file.
    File(FileRange),
    /// Ranges of a file with heads between them, and the close: a multipart body.
    Parts(Vec<(Vec<u8>, Range<u64>)>, File, Vec<u8>),
    /// Bytes that come from a store elsewhere as they are sent.
    Contents(Box<Contents>),
}

/// Room for the usual head, so that it is allocated once; a small body may come behind it.
const HEAD_BYTES_USUAL: usize = 384;

impl Answer {
    /// An answer without a body.
    pub fn new(status: Status) -> Answer {
        Answer::with_room(status, 0)
    }

    /// The same, with room behind the usual head for so many bytes more.
    pub(super) fn with_room(status: Status, bytes: usize) -> Answer {
        let mut head = Vec::with_capacity(HEAD_BYTES_USUAL + bytes);
        let _unfinished = AnswerHead::begin(&mut head, status);
        Answer { status, head, body: Body::Empty, when_sent: None, permit: None }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Answer {
        let _unfinished = AnswerHead::resume(&mut self.head).field(name, value);
        self
    }

    /// Adds a field whose value is made up on the way.
    #[must_use]
    pub fn field_display(mut self, name: &str, value: impl std::fmt::Display) -> Answer {
        let _unfinished = AnswerHead::resume(&mut self.head).field_display(name, value);
        self
    }

    /// Adds fields that [`AnswerHead`] has written.
    #[must_use]
    pub(super) fn written(mut self, fields: &[u8]) -> Answer {
        self.head.extend_from_slice(fields);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: Body) -> Answer {
        self.body = body;
        self
    }

    /// Calls `tell` once the answer is sent, with the bytes of its body that the network took and whether
    /// those were all. It is dropped instead if the connection ends before.
    #[must_use]
    pub fn when_sent(mut self, tell: impl FnOnce(u64, bool) + 'static) -> Answer {
        self.when_sent = Some(WhenSent(Box::new(tell)));
        self
    }

    /// Sends the body for as long as the right holds: the connection is reset when that ends.
    #[must_use]
    pub fn while_permitted(mut self, permit: Option<Box<Permit>>) -> Answer {
        self.permit = permit.filter(|_| self.may_take_long());
        self
    }

    /// Whether the client may be waited for while its body is sent: not for one that is handed over at once.
    pub fn may_take_long(&self) -> bool {
        self.body.has_file() || self.body.len() > UNSENT_BYTES_MAX
    }

    /// Its status.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl Body {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Shared(bytes) => bytes.len() as u64,
            Body::File(part) => part.range.end - part.range.start,
            Body::Parts(parts, _, close) => {
                let parts = parts.iter().map(|(head, range)| head.len() as u64 + range.end - range.start);
                parts.sum::<u64>() + close.len() as u64
            }
            Body::Contents(contents) => contents.len(),
        }
    }

    /// Whether it holds a file open, or a connection to where one is.
    pub(super) fn has_file(&self) -> bool {
        matches!(self, Body::File(_) | Body::Parts(..) | Body::Contents(_))
    }

    /// Bytes of it that were made for it and are in memory until they are sent; small ones are not counted.
    pub(super) fn made_bytes(&self) -> u64 {
        match self {
            Body::Bytes(bytes) if bytes.len() > COPIED_BODY_BYTES_MAX => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
