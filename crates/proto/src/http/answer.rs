//! A service's response: a status, fields and a body to be sent.
//!
//! This module does not send. Invariant: the Content-Length of the head, if it has one, is the length of the
//! body.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{File, FileRange};
use plimsoll_operations::Permit;
use plimsoll_store::backend::RemoteFile;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::status::Status;

use super::limits::COPIED_BODY_BYTES_MAX;
use crate::body_stream::StreamedBody;
use crate::limits::UNSENT_BYTES_MAX;

/// A response. Date, Connection and Content-Length or Transfer-Encoding are added when it is sent.
#[derive(Debug)]
pub struct Answer {
    status: Status,
    /// The status line and the fields so far, in the buffer that is sent.
    pub(super) head: Vec<u8>,
    pub(super) body: Body,
    pub(super) when_sent: Option<WhenSent>,
    /// The permission that is checked while the body is sent.
    pub(super) permit: Option<Box<Permit>>,
}

/// A callback for the end of sending.
pub(super) struct WhenSent(Box<dyn FnOnce(u64, bool)>);

impl WhenSent {
    /// Reports the number of sent bytes of the body, and whether the body is complete.
    pub(super) fn report(self, body_bytes: u64, whole: bool) {
        (self.0)(body_bytes, whole);
    }
}

impl std::fmt::Debug for WhenSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhenSent")
    }
}

/// The body of a response.
#[derive(Debug)]
pub enum Body {
    /// No body; the Content-Length is zero where a body is possible.
    Empty,
    /// Bytes generated for this response.
    Bytes(Vec<u8>),
    /// Bytes that are in memory anyway.
    Shared(Arc<[u8]>),
    /// A range of a file.
    File(FileRange),
    /// The body of multipart/byteranges: part heads with their ranges of a file, and the closing delimiter.
    Parts(Vec<(Vec<u8>, Range<u64>)>, File, Vec<u8>),
    /// Bytes of a remote store, received while they are sent.
    Remote(Box<RemoteFile>),
    /// Bytes generated while they are sent: their number is unknown.
    Stream(StreamedBody),
}

/// Initial capacity, which holds the usual head without reallocation; a small body may follow it.
const HEAD_BYTES_USUAL: usize = 384;

impl Answer {
    /// Creates a response without a body.
    pub fn new(status: Status) -> Answer {
        Answer::with_room(status, 0)
    }

    /// As [`Answer::new`], with capacity for `bytes` more behind the usual head.
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

    /// Adds a field with a formatted value.
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

    /// Calls `report` at the end of sending, with the number of body bytes that the kernel accepted and
    /// whether the body is complete. If the connection ends before, `report` is dropped without a call.
    #[must_use]
    pub fn when_sent(mut self, report: impl FnOnce(u64, bool) + 'static) -> Answer {
        self.when_sent = Some(WhenSent(Box::new(report)));
        self
    }

    /// Sends the body while the permission holds. The connection is reset when it ends.
    #[must_use]
    pub fn while_permitted(mut self, permit: Option<Box<Permit>>) -> Answer {
        self.permit = permit.filter(|_| self.may_take_long());
        self
    }

    /// Whether sending may wait for the client: false for a body that is handed to the kernel at once.
    pub fn may_take_long(&self) -> bool {
        self.body.has_file() || self.body.len() > UNSENT_BYTES_MAX
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl Body {
    /// Returns the length in bytes; that of a stream is unknown, and counts as zero.
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty | Body::Stream(_) => 0,
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Shared(bytes) => bytes.len() as u64,
            Body::File(part) => part.range.end - part.range.start,
            Body::Parts(parts, _, close) => {
                let parts = parts.iter().map(|(head, range)| head.len() as u64 + range.end - range.start);
                parts.sum::<u64>() + close.len() as u64
            }
            Body::Remote(file) => file.len(),
        }
    }

    /// Whether the body holds an open file, or a connection to a remote store.
    pub(super) fn has_file(&self) -> bool {
        matches!(self, Body::File(_) | Body::Parts(..) | Body::Remote(_) | Body::Stream(_))
    }

    /// Whether the length is known before the body is sent.
    pub(super) fn has_length(&self) -> bool {
        !matches!(self, Body::Stream(_))
    }

    /// Returns the number of generated bytes that stay in memory until they are sent; small bodies do not
    /// count.
    pub(super) fn generated_bytes(&self) -> u64 {
        match self {
            Body::Bytes(bytes) if bytes.len() > COPIED_BODY_BYTES_MAX => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.has_length()
    }
}
