//! A connection to Redis: authentication, and calls of one script.
//!
//! The protocol is RESP 2, of which a client needs one form of request and five forms of reply. It does
//! not speak TLS. Invariant: after any error the connection is not used again.

use super::address::DatabaseAddress;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::database::socket::Socket;
use crate::limits::{
    DATABASE_BLOCK_BYTES, DATABASE_MESSAGE_BYTES_MAX, REDIS_DEPTH_MAX, REDIS_LINE_BYTES_MAX,
};

/// The script that Redis runs.
const SCRIPT: &str = include_str!("directory.lua");

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nothing,
    Int(i64),
    Bytes(Vec<u8>),
    Many(Vec<Reply>),
}

/// A connection.
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// Received bytes; those before `read` were read.
    received: Vec<u8>,
    read: usize,
    /// The SHA-1 by which Redis identifies the script. Empty until it is loaded.
    script: Vec<u8>,
}

pub(super) fn broken(error: impl std::fmt::Display) -> DirectoryError {
    DirectoryError::Failed(format!("Redis: {error}"))
}

pub(super) fn strange() -> DirectoryError {
    broken("the response does not fit the request; check the server's version")
}

impl Reply {
    pub(super) fn bytes(&self) -> Result<&[u8], DirectoryError> {
        if let Reply::Bytes(bytes) = self { Ok(bytes) } else { Err(strange()) }
    }

    pub(super) fn text(&self) -> Result<&str, DirectoryError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| strange())
    }

    pub(super) fn int(&self) -> Result<i64, DirectoryError> {
        if let Reply::Int(number) = self { Ok(*number) } else { self.text()?.parse().map_err(|_| strange()) }
    }

    /// Reads a number; `None` for an empty text.
    pub(super) fn maybe_int(&self) -> Result<Option<i64>, DirectoryError> {
        if self.bytes()?.is_empty() { Ok(None) } else { self.int().map(Some) }
    }

    pub(super) fn many(&self) -> Result<&[Reply], DirectoryError> {
        if let Reply::Many(replies) = self { Ok(replies) } else { Err(strange()) }
    }

    /// Returns the element of an array reply at this index.
    pub(super) fn at(&self, at: usize) -> Result<&Reply, DirectoryError> {
        self.many()?.get(at).ok_or_else(strange)
    }
}

impl Connection {
    /// Connects, authenticates, and selects the database.
    pub(super) fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        let socket = Socket::open(&address.place, by)
            .map_err(|error| broken(format!("{}: {error}", address.place)))?;
        let mut connection = Connection { socket, received: Vec::new(), read: 0, script: Vec::new() };
        if let Some(password) = &address.password {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(address.user.as_deref().map(str::as_bytes));
            words.push(password.bytes());
            connection.command(&words)?;
        }
        if address.database != 0 {
            connection.command(&[b"SELECT", address.database.to_string().as_bytes()])?;
        }
        Ok(connection)
    }

    /// Runs the script. Loads it first, once for each connection.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, DirectoryError> {
        if self.script.is_empty() {
            let loaded = self.command(&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()])?;
            loaded.bytes()?.clone_into(&mut self.script);
        }
        let script = self.script.clone();
        let all: Vec<&[u8]> =
            [b"EVALSHA".as_slice(), &script, b"0"].into_iter().chain(words.iter().copied()).collect();
        self.command(&all)
    }

    /// Sends one command and receives its reply.
    pub(super) fn command(&mut self, words: &[&[u8]]) -> Result<Reply, DirectoryError> {
        let mut message = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            message.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            message.extend_from_slice(word);
            message.extend_from_slice(b"\r\n");
        }
        self.socket.send(&message).map_err(broken)?;
        let reply = self.reply(0);
        self.received.clear();
        self.read = 0;
        reply
    }

    fn reply(&mut self, depth: usize) -> Result<Reply, DirectoryError> {
        if depth > REDIS_DEPTH_MAX {
            return Err(strange());
        }
        let line = self.line()?;
        let (form, rest) = line.split_first().ok_or_else(strange)?;
        let number = || std::str::from_utf8(rest).ok().and_then(|text| text.parse().ok()).ok_or_else(strange);
        match form {
            b'+' => Ok(Reply::Bytes(rest.to_vec())),
            b'-' => Err(refusal(&String::from_utf8_lossy(rest))),
            b':' => Ok(Reply::Int(number()?)),
            b'$' | b'*' if rest == b"-1" => Ok(Reply::Nothing),
            b'$' => {
                let length = usize::try_from(number()?).map_err(|_| strange())?;
                let mut bytes = self.take(length.saturating_add(2), DATABASE_MESSAGE_BYTES_MAX)?;
                bytes.truncate(length);
                Ok(Reply::Bytes(bytes))
            }
            b'*' => (0..number()?).map(|_| self.reply(depth + 1)).collect::<Result<_, _>>().map(Reply::Many),
            _ => Err(strange()),
        }
    }

    /// Reads a line, without its end.
    fn line(&mut self) -> Result<Vec<u8>, DirectoryError> {
        let mut seen = 0;
        loop {
            let unread = &self.received[self.read..];
            if let Some(end) = unread[seen..].windows(2).position(|pair| pair == b"\r\n") {
                let line = unread[..seen + end].to_vec();
                self.read += line.len() + 2;
                return Ok(line);
            }
            if unread.len() > REDIS_LINE_BYTES_MAX {
                return Err(strange());
            }
            seen = unread.len().saturating_sub(1);
            self.receive()?;
        }
    }

    fn take(&mut self, length: usize, max: usize) -> Result<Vec<u8>, DirectoryError> {
        if length > max {
            return Err(strange());
        }
        while self.received.len() - self.read < length {
            self.receive()?;
        }
        let taken = self.received[self.read..self.read + length].to_vec();
        self.read += length;
        Ok(taken)
    }

    fn receive(&mut self) -> Result<(), DirectoryError> {
        // Read bytes are removed before more are received.
        self.received.drain(..self.read);
        self.read = 0;
        let mut block = [0; DATABASE_BLOCK_BYTES];
        let received = self.socket.receive(&mut block).map_err(broken)?;
        self.received.extend_from_slice(&block[..received]);
        Ok(())
    }
}

/// Converts an error reply, of the script or of Redis itself.
fn refusal(text: &str) -> DirectoryError {
    broken(text.strip_prefix("PLIMSOLL ").unwrap_or(text))
}
