//! The answer to a request: its head, and its body one lease at a time.
//!
//! It does not receive the next answer. Invariants: a body is returned exactly as it was framed, and one
//! that was cut short is an error. The connection returns to the client only when the body has ended.

use std::io;

use plimsoll_io::{Elapsed, Lease, Segment, Tx, Want};
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::response::{BadResponse, Framing, ResponseHead};
use plimsoll_wire::http::status::Status;
use serde::de::DeserializeOwned;

use super::client::{Client, KeepAlive};
use super::connection::Connection;
use super::error::{Error, When};

/// An answer, as far as it has not been read.
pub struct Response<'a> {
    client: Owner<'a>,
    /// `None` once the body has ended or failed.
    connection: Option<Connection>,
    head: ResponseHead,
    block: Vec<u8>,
    body: BodyDecoder,
    /// Whether the connection can carry another request when the body has ended.
    keeps: bool,
}

/// The owner of the client that sent the request.
pub(super) enum Owner<'a> {
    /// The caller, which has the client back when the answer is dropped.
    Lent(&'a mut Client),
    /// The answer.
    Taken(Box<Client>),
}

impl Owner<'_> {
    fn client(&mut self) -> &mut Client {
        match self {
            Owner::Lent(client) => client,
            Owner::Taken(client) => client,
        }
    }
}

impl<'a> Response<'a> {
    /// Creates the answer whose head is at the front of the connection's received bytes.
    pub(super) fn new(
        client: Owner<'a>,
        mut connection: Connection,
        head: ResponseHead,
        keeps: bool,
    ) -> Response<'a> {
        let block = connection.inbox.take_head(head.len());
        let body = BodyDecoder::new(head.framing());
        let mut response = Response { client, connection: Some(connection), head, block, body, keeps };
        response.end_if_ended();
        response
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.head.status()
    }

    /// Returns the value of the first line of a field, in any case of its name; `None` also if it is not
    /// UTF-8.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.head.named(&self.block, name)?).ok()
    }

    /// Iterates over all fields, name and value, in the order sent.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields(&self.block)
    }

    /// Returns the announced length of the body; `None` if it was not announced.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self.head.framing() {
            Framing::None => Some(0),
            Framing::Length(bytes) => Some(bytes),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// Returns the keep-alive connection, for another client, if the whole answer was received and permits
    /// that.
    #[must_use]
    pub fn into_connection(self) -> Option<KeepAlive> {
        match self.client {
            Owner::Taken(client) => client.into_connection(),
            Owner::Lent(_) => None,
        }
    }

    /// Returns the next bytes of the body, or `None` at its end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The body cannot be read to its end, and never will be.
    pub async fn recv(&mut self) -> Result<Option<Lease>, Error> {
        self.next().await.map_err(|error| self.fail(error))
    }

    /// Returns the rest of the body, of at most `bytes_max`.
    ///
    /// # Errors
    /// As [`Response::recv`]; [`Error::TooLong`].
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        while let Some(lease) = self.recv().await? {
            if whole.len() + lease.len() > bytes_max {
                return Err(Error::TooLong { bytes_max });
            }
            whole.extend_from_slice(&lease);
        }
        Ok(whole)
    }

    /// Returns the rest of the body as text.
    ///
    /// # Errors
    /// As [`Response::bytes`]; [`Error::Unreadable`] if it is not UTF-8.
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, Error> {
        String::from_utf8(self.bytes(bytes_max).await?).map_err(|_| Error::Unreadable("text"))
    }

    /// Returns the rest of the body as JSON.
    ///
    /// # Errors
    /// As [`Response::bytes`]; [`Error::Unreadable`] if it is not the JSON that was expected.
    pub async fn json<T: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<T, Error> {
        let bytes = self.bytes(bytes_max).await?;
        serde_json::from_slice(&bytes).map_err(|_| Error::Unreadable("the JSON that was expected"))
    }

    /// As [`Response::recv`], for a caller that pushes the bytes to `to` without reading them.
    ///
    /// # Errors
    /// As [`Response::recv`].
    pub async fn recv_for(&mut self, to: &Tx) -> Result<Option<Segment>, Error> {
        let received = match (self.body.left(), &mut self.connection) {
            (Some(left), Some(connection)) if connection.inbox.buffered.is_none() => {
                let client = self.client.client();
                client.deadline.after(client.times.between_bytes);
                let received = connection.inbox.rx.recv_for(to, left);
                came(client.deadline.within(received).await)
            }
            _ => return Ok(self.recv().await?.map(Segment::Lease)),
        };
        match received {
            Ok(segment) => {
                self.body.skip(segment.len());
                self.end_if_ended();
                Ok(Some(segment))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.connection = None;
        error
    }

    async fn next(&mut self) -> Result<Option<Lease>, Error> {
        loop {
            let Some(connection) = &mut self.connection else {
                // The cause was reported once; a second call must not look like an end.
                return match self.body.has_ended() {
                    true => Ok(None),
                    false => Err(broken(io::ErrorKind::InvalidData.into())),
                };
            };
            let Connection { inbox, .. } = connection;
            if inbox.buffered.is_none() {
                let client = self.client.client();
                client.deadline.after(client.times.between_bytes);
                match client.deadline.within(inbox.rx.recv(Want::Body)).await {
                    Ok(Ok(None)) if self.body.close() => {}
                    received => inbox.buffered = Some(came(received)?),
                }
            }
            let taken = inbox.take_body(&mut self.body).map_err(BadResponse::Chunk)?;
            self.end_if_ended();
            if taken.is_some() {
                return Ok(taken);
            }
        }
    }

    /// Returns the connection to the client, or ends it, once the body has ended. Bytes after the body were
    /// not requested, and could be taken for the answer to a later request.
    fn end_if_ended(&mut self) {
        if !self.body.has_ended() {
            return;
        }
        match self.connection.take() {
            Some(mut connection) if self.keeps && connection.inbox.buffered.is_none() => {
                connection.rest();
                self.client.client().keep_alive = Some(connection);
            }
            Some(connection) => connection.close(),
            None => {}
        }
    }
}

/// Maps the result of a receive in the middle of a body.
fn came<T>(received: Result<io::Result<Option<T>>, Elapsed>) -> Result<T, Error> {
    match received {
        Ok(Ok(Some(received))) => Ok(received),
        Ok(Ok(None)) => Err(broken(io::ErrorKind::UnexpectedEof.into())),
        Ok(Err(error)) => Err(broken(error)),
        Err(Elapsed) => Err(Error::Late(When::Receiving)),
    }
}

fn broken(source: io::Error) -> Error {
    Error::Broken { when: When::Receiving, source }
}
