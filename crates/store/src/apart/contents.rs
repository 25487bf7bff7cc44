//! A file on its way from a store elsewhere: what is known of it, and its bytes as they come.
//!
//! It is one answer to one request, and not more in memory than came last. What must hold: bytes and what is
//! said of them are of one file; what is cut short is an error.

use std::io;
use std::sync::Arc;

use plimsoll_client::http::{Error as HttpError, Response};
use plimsoll_io::{Io, Lease, Segment, Stat, Tx};
use plimsoll_wire::http::status::Status;

use super::ask::{Get, Seen};
use super::elsewhere::Elsewhere;
use super::remote::{CALL, FILES, Remote, STAT, TROUBLE, away, check};
use super::trouble::Trouble;
use super::turns::Turn;
use super::{from_ascii, to_ascii};
use crate::error::{Error, Result};
use crate::limits::{STORE_ANSWER_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;

/// What is asked of a file, and how.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Whether only the head is wanted.
    pub head_only: bool,
    /// Fields of HTTP that choose what is sent: conditions, ranges.
    pub fields: Vec<(&'static str, String)>,
    /// Whether the answer takes as long as the file is large.
    pub is_long: bool,
}

/// An answer of a store with a file in it, or parts of it, or what else is to be said of it.
pub struct Contents {
    io: Io,
    remote: Arc<Remote>,
    /// None once all of it has come.
    coming: Option<Coming>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    status: Status,
    stat: Stat,
    length: u64,
    left: u64,
}

/// An answer on its way, and the turn that it has; a head alone needs none.
type Coming = (Response<'static>, Option<Turn>);

impl Elsewhere {
    /// Asks for a file.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::IsFolder`]; [`Error::Away`]; [`Error::Busy`] while many files are on
    /// their way.
    pub async fn get(&self, io: &Io, path: &Path, wanted: Wanted) -> Result<Contents> {
        let remote = Arc::clone(&self.remote);
        let method = if wanted.head_only { "HEAD" } else { "GET" };
        let caller = io.owner().number();
        let call = to_ascii(&Get { owner: self.owner.clone(), caller, path: path.clone() });
        let mut request = remote.request(method, FILES).field(CALL, call);
        request.fields.extend(wanted.fields);
        let turn = if wanted.head_only { None } else { Some(remote.transfer(io).await?) };
        let patience = if wanted.is_long { STORE_LONG_ANSWER_TIME } else { STORE_ANSWER_TIME };
        let response = remote.client(io, patience).send_along(request).await.map_err(|error| away(&error))?;
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
        // Of a HEAD, the length that a GET would have; else that of what comes.
        let (left, status) = (response.length().ok_or(Error::Away)?, response.status());
        let length = told.unwrap_or(left);
        let (io, coming) = (io.clone(), Some((response, turn)));
        let mut contents = Contents { io, remote, coming, fields, status, stat, length, left };
        contents.keep_if_all();
        Ok(contents)
    }

    /// The status that the store gives it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The fields that the store sends with it.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// What is known of the file.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// Bytes that come, or would.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether none do.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The next bytes; none when all have come. Dropping the future loses nothing.
    ///
    /// # Errors
    /// They cannot come to their end.
    pub async fn next(&mut self) -> io::Result<Option<Lease>> {
        let Some((response, _)) = &mut self.coming else { return Ok(None) };
        let lease = came(response.recv().await)?;
        self.took(lease.len() as u64);
        Ok(Some(lease))
    }

    /// As [`Contents::next`], for who pushes the bytes to `to` and does not look at them.
    ///
    /// # Errors
    /// As [`Contents::next`].
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

    /// The connection is for others as soon as nothing more comes.
    fn keep_if_all(&mut self) {
        if self.left == 0
            && let Some((response, _)) = self.coming.take()
        {
            self.remote.keep(&self.io, response);
        }
    }
}

/// What came of a file that has not come to its end.
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
