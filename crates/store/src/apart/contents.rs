//! A file on its way from a remote store: its metadata, and its bytes as they are received.
//!
//! It is one response to one request; only the bytes received last are in memory. Invariants: bytes and
//! metadata are of the same file. A truncated body must be an error.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Io, Lease, Segment, Stat, Tx};
use plimsoll_rpc::Permit;
use plimsoll_rpc::transport::{Error as HttpError, Response};
use plimsoll_wire::http::status::Status;

use super::ask::{Get, Seen};
use super::elsewhere::Elsewhere;
use super::remote::{CALL, FILES, Remote, STAT, TROUBLE, broken, check};
use super::trouble::Trouble;
use super::{from_ascii, to_ascii};
use crate::error::{Error, Result};
use crate::limits::{STORE_ANSWER_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;

/// The requested representation of a file.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Whether only the head is requested.
    pub head_only: bool,
    /// HTTP fields that select the bytes to be sent: conditions, ranges.
    pub fields: Vec<(&'static str, String)>,
    /// Whether the response takes as long as the file is large.
    pub is_long: bool,
}

/// A store's response for a file: all of it, parts of it, or a status and fields without bytes.
pub struct Contents {
    io: Io,
    remote: Arc<Remote>,
    /// None once all of it is received.
    coming: Option<Coming>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    status: Status,
    stat: Stat,
    length: u64,
    left: u64,
}

/// A response in progress, and its permit; a head alone needs none.
type Coming = (Response<'static>, Option<Permit>);

impl Elsewhere {
    /// Requests a file.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::IsFolder`]; [`Error::Away`]; [`Error::Busy`] while many transfers are
    /// in progress.
    pub async fn get(&self, io: &Io, path: &Path, wanted: Wanted) -> Result<Contents> {
        let remote = Arc::clone(&self.remote);
        let method = if wanted.head_only { "HEAD" } else { "GET" };
        let caller = io.owner().number();
        let call = to_ascii(&Get { owner: self.owner.clone(), caller, path: path.clone() });
        let mut request = remote.request(method, FILES).field(CALL, call);
        request.fields.extend(wanted.fields);
        let turn = if wanted.head_only { None } else { Some(remote.transfer(io).await?) };
        let patience = if wanted.is_long { STORE_LONG_ANSWER_TIME } else { STORE_ANSWER_TIME };
        let response = remote.client(io, patience).send_owned(request).await.map_err(broken)?;
        Contents::of(io, remote, (response, turn))
    }
}

impl Contents {
    fn of(io: &Io, remote: Arc<Remote>, (response, turn): Coming) -> Result<Contents> {
        if let Some(trouble) = response.field(TROUBLE) {
            let trouble: Option<Trouble> = from_ascii(trouble.as_bytes());
            remote.keep(io, response);
            return Err(trouble.map_or(Error::Away, Error::from));
        }
        let stat = response.field(STAT).and_then(|stat| from_ascii(stat.as_bytes()));
        let Some(Seen(stat)) = stat else {
            check(&response)?;
            return Err(Error::Away);
        };
        let fields = response.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let told = response.field("Content-Length").and_then(|length| length.parse().ok());
        // For a HEAD request, the length that a GET would have; else that of the body.
        let (left, status) = (response.length().ok_or(Error::Away)?, response.status());
        let length = told.unwrap_or(left);
        let (io, coming) = (io.clone(), Some((response, turn)));
        let mut contents = Contents { io, remote, coming, fields, status, stat, length, left };
        contents.keep_if_all();
        Ok(contents)
    }

    /// The status of the store's response.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The fields of the store's response.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// The metadata of the file.
    pub fn stat(&self) -> Stat {
        self.stat
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
        let Some((response, _)) = &mut self.coming else { return Ok(None) };
        let lease = came(response.recv().await)?;
        self.took(lease.len() as u64);
        Ok(Some(lease))
    }

    /// As [`Contents::next`], for a caller that pushes the bytes to `to` without inspecting them.
    pub async fn next_for(&mut self, to: &Tx) -> io::Result<Option<Segment>> {
        let Some((response, _)) = &mut self.coming else { return Ok(None) };
        let segment = came(response.recv_for(to).await)?;
        self.took(segment.len());
        Ok(Some(segment))
    }

    fn took(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.keep_if_all();
    }

    /// Returns the connection to the pool as soon as the body is complete.
    fn keep_if_all(&mut self) {
        if self.left == 0
            && let Some((response, _)) = self.coming.take()
        {
            self.remote.keep(&self.io, response);
        }
    }
}

/// Maps a receive of an incomplete body, where an end is an error.
fn came<T>(received: std::result::Result<Option<T>, HttpError>) -> io::Result<T> {
    let came = received.map_err(|error| {
        tracing::warn!(%error, "a file did not come from the store to its end");
        io::Error::from(io::ErrorKind::ConnectionAborted)
    })?;
    came.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contents({} of {})", self.left, self.length)
    }
}
