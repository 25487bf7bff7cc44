//! A connection to Redis: authentication, and calls of one script, by the driver `redis`.
//!
//! The protocol is RESP 2. Invariants: Redis gets no command a second time, except a call of the script that
//! it has not run. After any other error the connection is not used again.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, RedisResult, ServerError,
    ServerErrorKind, Value,
};
use plimsoll_wire::hex;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncWrite};

use super::address::DatabaseAddress;
use super::route;
use crate::directory::database::deadline::Deadline;
use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::{Guest, Late};
use crate::directory::database::tls::Encryption;
use crate::directory::{DirectoryError, Fault};
use crate::limits::DATABASE_REPLICATION_TIME;

/// The script that Redis runs.
const SCRIPT: &str = include_str!("directory.lua");

/// The name of the script in Redis, which keeps it until it restarts.
static SCRIPT_HASH: LazyLock<String> = LazyLock::new(|| hex::encode(&Sha1::digest(SCRIPT)));

/// The commands of the script that change nothing.
const READS: [&[u8]; 12] = [
    b"account",
    b"account_of",
    b"accounts",
    b"changes",
    b"first_share",
    b"network_seen",
    b"row_counts",
    b"session",
    b"shares",
    b"state",
    b"stored_accounts",
    b"stored_of",
];

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
    client: MultiplexedConnection,
    /// Sends the client's commands and receives the replies, while it is polled.
    driver: Driver,
    server: Endpoint,
    /// The replicas that must have a change before it is confirmed.
    replicas: u32,
    /// The last field: it is dropped after the driver.
    guest: Guest,
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A stream, encrypted or not.
trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

pub(super) fn broken(error: impl fmt::Display) -> DirectoryError {
    failed_by(None, error)
}

fn failed_by(fault: Option<Fault>, error: impl fmt::Display) -> DirectoryError {
    DirectoryError::of("Redis", fault, &error)
}

fn late(late: Late) -> DirectoryError {
    failed_by(Some(Fault::Timeout), late)
}

fn closed() -> DirectoryError {
    failed_by(Some(Fault::Closed), "it closed the connection")
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

impl TryFrom<Value> for Reply {
    type Error = DirectoryError;

    fn try_from(value: Value) -> Result<Reply, DirectoryError> {
        match value {
            Value::Nil => Ok(Reply::Nothing),
            Value::Int(number) => Ok(Reply::Int(number)),
            Value::BulkString(bytes) => Ok(Reply::Bytes(bytes)),
            Value::SimpleString(text) => Ok(Reply::Bytes(text.into_bytes())),
            Value::Okay => Ok(Reply::Bytes(b"OK".to_vec())),
            Value::Array(values) => {
                values.into_iter().map(Reply::try_from).collect::<Result<_, _>>().map(Reply::Many)
            }
            Value::ServerError(error) => Err(refusal(&error)),
            _ => Err(strange()),
        }
    }
}

impl Connection {
    /// Connects, authenticates, and selects the database.
    pub(super) fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        route::connect(address, by)
    }

    /// Connects to a server.
    pub(super) fn connect(
        address: &DatabaseAddress,
        server: &Endpoint,
        by: Deadline,
    ) -> Result<Connection, DirectoryError> {
        let unreachable = |error: io::Error| failed_by(Fault::of_io(&error), format!("{server}: {error}"));
        let guest = Guest::new(&address.runtimes, by).map_err(broken)?;
        let stream = guest.connect(server).map_err(unreachable)?;
        let stream: Box<dyn Transport> = match (&address.encryption, server) {
            (Encryption::Always(connector), Endpoint::Tcp(host, _)) => {
                let encrypted = guest.run(stream.encrypt(connector, host));
                Box::new(encrypted.unwrap_or_else(|late| Err(late.into())).map_err(unreachable)?)
            }
            _ => Box::new(stream),
        };
        // The driver's own limits of time are shorter than those of a call. It would also send its name.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let connected = guest.run(MultiplexedConnection::new_with_config(&info, stream, config));
        let (client, driver) = connected.map_err(late)?.map_err(|error| failed(&error))?;
        let (driver, server, replicas): (Driver, _, _) = (Box::pin(driver), server.clone(), address.replicas);
        Ok(Connection { client, driver, server, replicas, guest })
    }

    /// Authenticates and selects the database, in one exchange.
    pub(super) fn log_in(&mut self, address: &DatabaseAddress, database: u32) -> Result<(), DirectoryError> {
        let mut pipeline = ::redis::pipe();
        if address.user.is_some() || address.password.is_some() {
            let password = address.password.as_ref().map_or(b"".as_slice(), |password| password.bytes());
            pipeline.cmd("AUTH").arg(&address.user).arg(password);
        }
        if database != 0 {
            pipeline.cmd("SELECT").arg(database);
        }
        if pipeline.is_empty() {
            return Ok(());
        }
        let work = self.client.send_packed_commands(&pipeline, 0, pipeline.len());
        let replies = drive(&self.guest, &mut self.driver, work)?;
        replies.into_iter().try_for_each(|value| Reply::try_from(value).map(drop))
    }

    /// Returns the address of the server.
    pub(super) fn server(&self) -> &Endpoint {
        &self.server
    }

    /// Returns whether the server says that it is a master.
    pub(super) fn is_master(&mut self) -> Result<bool, DirectoryError> {
        Ok(self.command(&[b"ROLE"])?.at(0)?.bytes()? == b"master")
    }

    pub(super) fn set_deadline(&mut self, by: Deadline) {
        self.guest.set_deadline(by);
    }

    /// Returns whether the server has neither closed the connection nor sent anything, as far as it has been
    /// received. Bytes after a reply mean that it closes the connection.
    pub(super) fn is_open(&mut self) -> bool {
        self.guest.is_quiet(&mut self.driver)
    }

    /// Runs the script. If Redis does not know it, it has run nothing: then it gets the script, and the same
    /// call again. The key names the hash slot to a cluster.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, DirectoryError> {
        let head = [b"EVALSHA".as_slice(), SCRIPT_HASH.as_bytes(), b"1", b"plimsoll:state"];
        let all: Vec<&[u8]> = head.into_iter().chain(words.iter().copied()).collect();
        let reply = match self.send(&all)? {
            Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript) => {
                self.command(&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()])?;
                self.command(&all)?
            }
            value => value.try_into()?,
        };
        if self.replicas > 0 && !words.first().is_some_and(|question| READS.contains(question)) {
            self.wait_for_replicas()?;
        }
        Ok(reply)
    }

    /// Waits until enough replicas have what this connection has changed.
    fn wait_for_replicas(&mut self) -> Result<(), DirectoryError> {
        let (replicas, time) = (i64::from(self.replicas), DATABASE_REPLICATION_TIME.as_millis().to_string());
        let have = self.command(&[b"WAIT", replicas.to_string().as_bytes(), time.as_bytes()])?.int()?;
        if have < replicas {
            return Err(broken(format!("{have} of {replicas} replicas have confirmed the change in time")));
        }
        Ok(())
    }

    /// Sends one command and receives its reply.
    pub(super) fn command(&mut self, words: &[&[u8]]) -> Result<Reply, DirectoryError> {
        self.send(words)?.try_into()
    }

    pub(super) fn send(&mut self, words: &[&[u8]]) -> Result<Value, DirectoryError> {
        let mut command = Cmd::with_capacity(words.len(), words.iter().map(|word| word.len()).sum());
        for word in words {
            command.arg(*word);
        }
        drive(&self.guest, &mut self.driver, self.client.send_packed_command(&command))
    }
}

/// Polls `work` and the driver that it waits for, until `work` or the connection ends.
fn drive<T>(
    guest: &Guest,
    driver: &mut Driver,
    work: impl Future<Output = RedisResult<T>>,
) -> Result<T, DirectoryError> {
    match guest.drive(driver, work).map_err(late)?.0 {
        Poll::Ready(done) => done.map_err(|error| failed(&error)),
        Poll::Pending => Err(closed()),
    }
}

/// Converts an error of the driver. Its text about a reply that it cannot parse would quote the reply, which
/// may have a password's hash.
fn failed(error: &RedisError) -> DirectoryError {
    match error.kind() {
        ErrorKind::Parse => broken("the response was cut short, or is none; check the server's version"),
        _ if error.is_connection_dropped() => closed(),
        _ => broken(error),
    }
}

/// Converts an error reply, of the script or of Redis itself.
fn refusal(error: &ServerError) -> DirectoryError {
    let (code, detail) = (error.code(), error.details().unwrap_or_default());
    let text = format!("{code} {detail}");
    match code {
        // The script's own error is a sentence.
        "PLIMSOLL" => failed_by(Some(Fault::Schema), detail),
        "MOVED" | "READONLY" => failed_by(Some(Fault::Moved), text),
        // Before Redis 7, the error of a command in a script is within another.
        "ERR" if detail.contains(" -READONLY ") => failed_by(Some(Fault::Moved), text),
        "NOAUTH" | "NOPERM" | "WRONGPASS" => failed_by(Some(Fault::Authentication), text),
        // Its memory is full, or it cannot write to its disk: it refuses all changes.
        "MISCONF" | "OOM" => DirectoryError::Full(format!("Redis: {text}")),
        _ => broken(text),
    }
}
