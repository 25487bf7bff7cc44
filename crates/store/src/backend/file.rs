//! A file at a remote store: its metadata, and its bytes as they are received.
//!
//! It is one response to one request; only the bytes received last are in memory. Invariants: bytes and
//! metadata are of the same file. A truncated body must be an error. No chunk takes an allocation.

use std::io;
use std::ops::Range;

use plimsoll_io::{Lease, Segment, Stat, Tx};
use plimsoll_rpc::transport::{Error as HttpError, Response};
use plimsoll_wire::http::range::{ContentRange, parse_content_range};
use plimsoll_wire::http::status::Status;

/// The requested representation of a file.
#[derive(Debug, Default)]
pub struct FileRequest {
    /// Whether only the metadata is requested.
    pub head_only: bool,
    /// HTTP fields that select the bytes to be sent: conditions, ranges. A store may ignore them, except a
    /// single range up to the end of the file, and [`RemoteFile::part`] says what it sends.
    pub fields: Vec<(&'static str, String)>,
    /// Whether the response takes as long as the file is large.
    pub is_long: bool,
}

/// A file at a remote store, received while it is read: all of it, or the part that the request selects.
pub struct RemoteFile {
    /// The response in progress; none once all of it is received.
    response: Option<(Response<'static>, KeepConnection)>,
    /// The bytes, if they are in memory.
    memory: Option<Lease>,
    stat: Stat,
    part: SentPart,
    sha256: Option<[u8; 32]>,
    length: u64,
    left: u64,
}

/// Returns the connection of a complete response to a pool.
type KeepConnection = Box<dyn FnOnce(Response<'static>)>;

/// The part of a file that a store sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentPart {
    /// All of it.
    Whole,
    /// This range of it.
    Range(Range<u64>),
    /// Several ranges of it, in the form multipart/byteranges; the text is the media type with its boundary.
    Multipart(String),
    /// None: the ranges lie outside of it.
    Unsatisfiable,
    /// None: the client has it.
    NotModified,
    /// None: a condition is false.
    PreconditionFailed,
}

impl SentPart {
    /// Returns the part that is the body of a response; none if the response has no part of a file.
    pub(crate) fn of(response: &Response<'_>) -> Option<SentPart> {
        match response.status() {
            Status::OK => Some(SentPart::Whole),
            Status::NOT_MODIFIED => Some(SentPart::NotModified),
            Status::PRECONDITION_FAILED => Some(SentPart::PreconditionFailed),
            Status::RANGE_NOT_SATISFIABLE => Some(SentPart::Unsatisfiable),
            Status::PARTIAL_CONTENT => match response.field("Content-Range") {
                None => response.field("Content-Type").map(|media| SentPart::Multipart(media.to_owned())),
                Some(range) => match parse_content_range(range.as_bytes())? {
                    ContentRange::Part { range, .. } => Some(SentPart::Range(range)),
                    ContentRange::Unsatisfied { .. } => None,
                },
            },
            _ => None,
        }
    }
}

impl RemoteFile {
    /// The file that a response has, whose body is `length` bytes. `keep` returns its connection to a pool.
    pub(crate) fn of_response(
        response: Response<'static>,
        (stat, part): (Stat, SentPart),
        length: u64,
        keep: impl FnOnce(Response<'static>) + 'static,
    ) -> RemoteFile {
        let response = Some((response, Box::new(keep) as KeepConnection));
        let (memory, sha256, left) = (None, None, length);
        let mut file = RemoteFile { response, memory, stat, part, sha256, length, left };
        file.keep_if_all();
        file
    }

    /// A file whose selected bytes are in memory.
    pub fn of_bytes(stat: Stat, part: SentPart, bytes: Vec<u8>) -> RemoteFile {
        let length = bytes.len() as u64;
        let memory = (length > 0).then(|| Lease::owned(bytes));
        RemoteFile { response: None, memory, stat, part, sha256: None, length, left: 0 }
    }

    /// Sets the SHA-256 of the whole file.
    pub(crate) fn with_sha256(self, sha256: Option<[u8; 32]>) -> RemoteFile {
        RemoteFile { sha256, ..self }
    }

    /// Sets the length that the body of a GET would have, for a response to a HEAD.
    pub(crate) fn with_length(self, length: u64) -> RemoteFile {
        RemoteFile { length, ..self }
    }

    /// The part of the file that the store sends, by the conditions and ranges of the request.
    pub fn part(&self) -> &SentPart {
        &self.part
    }

    /// The metadata of the file.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// The SHA-256 of the whole file, if it was requested, and known or computed in time.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        self.sha256
    }

    /// The length of the body in bytes; for a HEAD request, that of the body of a GET.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether that length is zero.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Receives the next bytes; none at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body cannot be received to its end.
    pub async fn next(&mut self) -> io::Result<Option<Lease>> {
        let Some((response, _)) = &mut self.response else { return Ok(self.memory.take()) };
        let lease = received(response.recv().await)?;
        self.count(lease.len() as u64);
        Ok(Some(lease))
    }

    /// As [`RemoteFile::next`], for a caller that pushes the bytes to `to` without inspecting them.
    pub async fn next_for(&mut self, to: &Tx) -> io::Result<Option<Segment>> {
        let Some((response, _)) = &mut self.response else {
            return Ok(self.memory.take().map(Segment::Lease));
        };
        let segment = received(response.recv_for(to).await)?;
        self.count(segment.len());
        Ok(Some(segment))
    }

    fn count(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.keep_if_all();
    }

    /// Returns the connection to the pool as soon as the body is complete.
    fn keep_if_all(&mut self) {
        if self.left == 0
            && let Some((response, keep)) = self.response.take()
        {
            keep(response);
        }
    }
}

/// Maps a receive of an incomplete body, where an end is an error.
fn received<T>(result: Result<Option<T>, HttpError>) -> io::Result<T> {
    let more = result.map_err(|error| {
        tracing::warn!(%error, "a file did not come from the store to its end");
        io::Error::from(io::ErrorKind::ConnectionAborted)
    })?;
    more.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteFile({} of {} bytes left)", self.left, self.length)
    }
}
