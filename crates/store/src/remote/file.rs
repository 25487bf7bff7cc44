//! A file that is received from a remote store: its metadata, and its bytes as they are received.
//!
//! It is one response to one request; only the bytes received last are in memory. Invariants: bytes and
//! metadata are of the same file. A truncated body must be an error.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{Io, Lease, Segment, Stat, Tx};
use plimsoll_rpc::CallPermit;
use plimsoll_rpc::transport::{Error as HttpError, Response};
use plimsoll_wire::http::digest::parse_digests;
use plimsoll_wire::http::range::{ContentRange, parse_content_range};
use plimsoll_wire::http::status::Status;

use super::client::{CALL, FILES, STAT, StoreClient, TROUBLE, broken, check};
use super::error_json::ErrorJson;
use super::home::RemoteHome;
use super::request::{Get, StatJson};
use super::{from_ascii, to_ascii};
use crate::error::{Error, Result};
use crate::limits::{STORE_ANSWER_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;

/// The requested representation of a file.
#[derive(Debug, Default)]
pub struct FileRequest {
    /// Whether only the metadata is requested.
    pub head_only: bool,
    /// HTTP fields that select the bytes to be sent: conditions, ranges.
    pub fields: Vec<(&'static str, String)>,
    /// Whether the response takes as long as the file is large.
    pub is_long: bool,
}

/// A file at a remote store, received while it is read: all of it, or the part that the request selects.
pub struct RemoteFile {
    io: Io,
    remote: Arc<StoreClient>,
    /// None once all of it is received.
    incoming: Option<Incoming>,
    stat: Stat,
    part: SentPart,
    sha256: Option<[u8; 32]>,
    length: u64,
    left: u64,
}

/// A response in progress, and its permit; a head alone needs none.
type Incoming = (Response<'static>, Option<CallPermit>);

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
    fn of(response: &Response<'_>) -> Option<SentPart> {
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

impl RemoteHome {
    /// Requests a file.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::IsFolder`]; [`Error::Away`]; [`Error::Busy`] while many transfers are
    /// in progress.
    pub(crate) async fn get(&self, io: &Io, path: &Path, request: FileRequest) -> Result<RemoteFile> {
        let FileRequest { head_only, fields, is_long } = request;
        let remote = Arc::clone(&self.remote);
        let method = if head_only { "HEAD" } else { "GET" };
        let caller = io.owner().number();
        let call = to_ascii(&Get { owner: self.owner.clone(), caller, path: path.clone() });
        let mut request = remote.request(method, FILES).field(CALL, call);
        request.fields.extend(fields);
        let permit = if head_only { None } else { Some(remote.transfer(io).await?) };
        let patience = if is_long { STORE_LONG_ANSWER_TIME } else { STORE_ANSWER_TIME };
        let response = remote.client(io, patience).send_owned(request).await.map_err(broken)?;
        RemoteFile::of(io, remote, (response, permit)).await
    }
}

impl RemoteFile {
    async fn of(io: &Io, remote: Arc<StoreClient>, (response, permit): Incoming) -> Result<RemoteFile> {
        if let Some(trouble) = response.field(TROUBLE) {
            let trouble: Option<ErrorJson> = from_ascii(trouble.as_bytes());
            remote.keep(io, response);
            return Err(trouble.map_or(Error::Away, Error::from));
        }
        let stat = response.field(STAT).and_then(|stat| from_ascii(stat.as_bytes()));
        let Some(StatJson(stat)) = stat else {
            check(&response)?;
            return Err(Error::Away);
        };
        let selected = SentPart::of(&response).ok_or(Error::Away)?;
        let digest = response.field("Repr-Digest").and_then(|value| parse_digests([value.as_bytes()]).ok());
        let announced = response.field("Content-Length").and_then(|length| length.parse().ok());
        // For a HEAD request, the length that a GET would have; else that of the body.
        let left = response.length().ok_or(Error::Away)?;
        let length = announced.unwrap_or(left);
        let (io, incoming) = (io.clone(), Some((response, permit)));
        let sha256 = digest.and_then(|digests| digests.sha256);
        let mut file = RemoteFile { io, remote, incoming, stat, part: selected, sha256, length, left };
        file.keep_if_all();
        if !matches!(file.part, SentPart::Whole | SentPart::Range(_) | SentPart::Multipart(_)) {
            // The text of a refusal: the front has its own.
            while file.next().await.map_err(|_| Error::Away)?.is_some() {}
        }
        Ok(file)
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
        let Some((response, _)) = &mut self.incoming else { return Ok(None) };
        let lease = received(response.recv().await)?;
        self.count(lease.len() as u64);
        Ok(Some(lease))
    }

    /// As [`RemoteFile::next`], for a caller that pushes the bytes to `to` without inspecting them.
    pub async fn next_for(&mut self, to: &Tx) -> io::Result<Option<Segment>> {
        let Some((response, _)) = &mut self.incoming else { return Ok(None) };
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
            && let Some((response, _)) = self.incoming.take()
        {
            self.remote.keep(&self.io, response);
        }
    }
}

/// Maps a receive of an incomplete body, where an end is an error.
fn received<T>(result: std::result::Result<Option<T>, HttpError>) -> io::Result<T> {
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
