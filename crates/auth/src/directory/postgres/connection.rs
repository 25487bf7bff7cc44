//! A connection to PostgreSQL: authentication, and batches of statements.
//!
//! The messages are those of `postgres-protocol`. The socket is our own, because the driver for them
//! cannot bound a wait for a response. It does not speak TLS. Invariants: the statements of a batch are
//! one transaction and one exchange. After any error the connection is not used again.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;

use super::address::DatabaseAddress;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::database::socket::Socket;
use crate::limits::{
    DATABASE_BLOCK_BYTES, DATABASE_MESSAGE_BYTES_MAX, DATABASE_STATEMENT_TIME, STATEMENTS_KEPT,
};
use plimsoll_wire::hex;

/// A parameter of a statement, of one of the types that the tables use.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Int(Option<i64>),
    Bool(bool),
    Text(&'a str),
    Bytes(Option<&'a [u8]>),
}

/// A statement and its parameters.
pub(super) type Statement<'a> = (&'a str, &'a [Value<'a>]);

/// A row of a result.
pub(super) struct PostgresRow {
    bytes: Bytes,
    cells: Vec<Option<Range<usize>>>,
}

/// The result of a statement.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) rows: Vec<PostgresRow>,
    /// Rows that were read or changed.
    pub(super) count: u64,
}

/// A connection.
pub(super) struct Connection {
    pub(super) socket: Socket,
    received: BytesMut,
    /// The names of the statements that the server has prepared, by their text.
    statements: HashMap<String, String>,
}

pub(super) fn broken(error: impl std::fmt::Display) -> DirectoryError {
    DirectoryError::Failed(format!("PostgreSQL: {error}"))
}

fn strange(description: &str) -> DirectoryError {
    broken(format!("the response does not fit the request ({description}); check the server's version"))
}

impl Value<'_> {
    /// Returns the type's number in PostgreSQL (`pg_type.oid`).
    fn type_oid(self) -> u32 {
        match self {
            Value::Bool(_) => 16,
            Value::Bytes(_) => 17,
            Value::Int(_) => 20,
            Value::Text(_) => 25,
        }
    }

    /// Returns 1 for binary format, 0 for text.
    fn format(self) -> i16 {
        i16::from(matches!(self, Value::Bytes(_)))
    }

    fn write(self, into: &mut BytesMut) -> IsNull {
        match self {
            Value::Int(None) | Value::Bytes(None) => return IsNull::Yes,
            Value::Int(Some(number)) => into.extend_from_slice(number.to_string().as_bytes()),
            Value::Bool(is_so) => into.extend_from_slice(if is_so { b"t" } else { b"f" }),
            Value::Text(text) => into.extend_from_slice(text.as_bytes()),
            Value::Bytes(Some(bytes)) => into.extend_from_slice(bytes),
        }
        IsNull::No
    }
}

impl PostgresRow {
    fn read(body: &DataRowBody) -> io::Result<PostgresRow> {
        Ok(PostgresRow { bytes: body.buffer_bytes().clone(), cells: body.ranges().collect()? })
    }

    fn cell(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(self.cells.get(at)?.clone()?)
    }

    pub(super) fn text(&self, at: usize) -> Result<&str, DirectoryError> {
        let cell = self.cell(at).ok_or_else(|| strange("nothing where a value was"))?;
        std::str::from_utf8(cell).map_err(|_| strange("no text"))
    }

    pub(super) fn maybe_int(&self, at: usize) -> Result<Option<i64>, DirectoryError> {
        self.cell(at).map(|_| self.int(at)).transpose()
    }

    pub(super) fn int(&self, at: usize) -> Result<i64, DirectoryError> {
        self.text(at)?.parse().map_err(|_| strange("no number"))
    }

    pub(super) fn is_true(&self, at: usize) -> Result<bool, DirectoryError> {
        Ok(self.text(at)? == "t")
    }

    pub(super) fn bytes(&self, at: usize) -> Result<Vec<u8>, DirectoryError> {
        let digits = self.text(at)?.strip_prefix("\\x").and_then(|digits| hex::decode(digits.as_bytes()));
        digits.ok_or_else(|| strange("no bytes"))
    }

    /// Returns the last cell, as a number.
    pub(super) fn last_int(&self) -> Result<i64, DirectoryError> {
        self.int(self.cells.len().saturating_sub(1))
    }
}

impl Connection {
    /// Connects, authenticates, and sets the server's timeout for statements.
    pub(super) fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        let socket = Socket::open(&address.place, by)
            .map_err(|error| broken(format!("{}: {error}", address.place)))?;
        let mut connection = Connection { socket, received: BytesMut::new(), statements: HashMap::new() };
        let statement_time = DATABASE_STATEMENT_TIME.as_millis().to_string();
        let asked = [
            ("user", address.user.as_str()),
            ("database", &address.database),
            ("client_encoding", "UTF8"),
            ("application_name", "plimsoll"),
            ("search_path", "plimsoll"),
            ("bytea_output", "hex"),
            ("default_transaction_isolation", "read committed"),
            ("statement_timeout", &statement_time),
        ];
        let mut message = BytesMut::new();
        frontend::startup_message(asked, &mut message).map_err(broken)?;
        connection.send(&message)?;
        super::authentication::authenticate(&mut connection, address)?;
        connection.until_ready(|_| Ok(()))?;
        Ok(connection)
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), DirectoryError> {
        self.socket.send(message).map_err(broken)
    }

    /// Receives the next message, except notices and parameter reports. An error is a message, too.
    pub(super) fn receive(&mut self) -> Result<Message, DirectoryError> {
        let mut block = [0; DATABASE_BLOCK_BYTES];
        loop {
            match Message::parse(&mut self.received).map_err(broken)? {
                Some(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Some(message) => return Ok(message),
                None if self.received.len() > DATABASE_MESSAGE_BYTES_MAX => {
                    return Err(strange("a message that has no end"));
                }
                None => {
                    let received = self.socket.receive(&mut block).map_err(broken)?;
                    self.received.extend_from_slice(&block[..received]);
                }
            }
        }
    }

    /// Runs the statements in one transaction. Returns the result of each.
    pub(super) fn run(&mut self, batch: &[Statement<'_>]) -> Result<Vec<Answered>, DirectoryError> {
        let mut messages = BytesMut::new();
        for (sql, values) in batch {
            self.ask(sql, values, &mut messages).map_err(broken)?;
        }
        frontend::sync(&mut messages);
        self.send(&messages)?;
        self.answers(batch.len())
    }

    /// Runs a text of statements without results, in one transaction.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), DirectoryError> {
        let mut message = BytesMut::new();
        frontend::query(sql, &mut message).map_err(broken)?;
        self.send(&message)?;
        self.until_ready(|_| Ok(()))
    }

    /// Appends the messages that run a statement. Has the server prepare it at the first time.
    fn ask(&mut self, sql: &str, values: &[Value<'_>], messages: &mut BytesMut) -> io::Result<()> {
        let name = match self.statements.get(sql) {
            Some(name) => name.clone(),
            None => {
                // The program has few statements, which do not depend on input: this limit is not meant
                // to be reached.
                let is_kept = self.statements.len() < STATEMENTS_KEPT;
                let name = if is_kept { format!("s{}", self.statements.len()) } else { String::new() };
                let types = values.iter().map(|value| value.type_oid());
                frontend::parse(&name, sql, types, messages)?;
                if is_kept {
                    self.statements.insert(sql.to_owned(), name.clone());
                }
                name
            }
        };
        let formats = values.iter().map(|value| value.format());
        let write = |value: &Value<'_>, into: &mut BytesMut| Ok(value.write(into));
        let bound = frontend::bind("", &name, formats, values, write, None::<i16>, messages);
        bound.map_err(|error| match error {
            frontend::BindError::Conversion(error) => io::Error::other(error),
            frontend::BindError::Serialization(error) => error,
        })?;
        frontend::execute("", 0, messages)
    }

    fn answers(&mut self, expected: usize) -> Result<Vec<Answered>, DirectoryError> {
        let (mut answers, mut answer) = (Vec::with_capacity(expected), Answered::default());
        self.until_ready(|message| {
            match message {
                Message::DataRow(body) => answer.rows.push(PostgresRow::read(&body)?),
                Message::CommandComplete(body) => {
                    let count = body.tag()?.rsplit(' ').next().and_then(|count| count.parse().ok());
                    answer.count = count.unwrap_or(0);
                    answers.push(std::mem::take(&mut answer));
                }
                _ => {}
            }
            Ok(())
        })?;
        if answers.len() == expected { Ok(answers) } else { Err(strange("too few answers")) }
    }

    /// Passes on each message until the server is ready for the next query. Then returns its error, if
    /// there was one.
    fn until_ready(&mut self, mut each: impl FnMut(Message) -> io::Result<()>) -> Result<(), DirectoryError> {
        let mut failed = None;
        loop {
            match self.receive() {
                Ok(Message::ErrorResponse(body)) => failed = Some(refusal(&body)),
                Ok(Message::ReadyForQuery(_)) => return failed.map_or(Ok(()), Err),
                Ok(message) => each(message).map_err(broken)?,
                // The server reported an error and closed the connection: the report tells more than the
                // end of the stream.
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
    }
}

/// Converts an error response: its text and its code.
pub(super) fn refusal(body: &ErrorResponseBody) -> DirectoryError {
    let (mut code, mut text) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value(),
            b'M' => text = value(),
            _ => {}
        }
    }
    broken(format!("{text} (SQLSTATE {code})"))
}
