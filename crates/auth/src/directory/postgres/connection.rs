//! A connection to PostgreSQL: transactions and single reads, by the driver `tokio-postgres`.
//!
//! A connection's settings permit no statement to change anything outside of a transaction that begins with
//! [`BEGIN`]. Invariants: the statements of a transaction take one exchange. They are executed in one
//! transaction or not at all: without a successful [`BEGIN`], each of them fails. After any error the
//! connection is not used again.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use bytes::BytesMut;
use futures_util::TryStreamExt as _;
use futures_util::future::{join_all, join3, try_join_all};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error, Row};

use super::address::DatabaseAddress;
use super::guarded::Guarded;
use super::tls::{self, Encrypted, Handshake};
use crate::directory::database::deadline::Deadline;
use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::{Guest, Late};
use crate::directory::database::stream::Stream;
use crate::directory::{DirectoryError, Fault};
use crate::limits::{DATABASE_STATEMENT_TIME, STATEMENTS_KEPT};

/// Begins a transaction that may change something.
pub(super) const BEGIN: &str = "BEGIN READ WRITE";

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
pub(super) struct PostgresRow(Row);

/// The result of a statement.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) rows: Vec<PostgresRow>,
    /// Rows that were read or changed.
    pub(super) count: u64,
}

/// A connection.
pub(super) struct Connection {
    client: Client,
    /// Sends the client's requests and receives the responses, while it is polled.
    driver: Driver,
    /// By their text, the statements that were run.
    statements: HashMap<String, KnownStatement>,
    /// The last field: it is dropped after the driver.
    guest: Guest,
}

type Driver = tokio_postgres::Connection<Guarded<Stream>, Encrypted>;

/// A statement that was run before.
enum KnownStatement {
    Once,
    Prepared(tokio_postgres::Statement),
}

pub(super) fn broken(error: impl fmt::Display) -> DirectoryError {
    failed_by(None, error)
}

fn failed_by(fault: Option<Fault>, error: impl fmt::Display) -> DirectoryError {
    DirectoryError::of("PostgreSQL", fault, &error)
}

fn late(late: Late) -> DirectoryError {
    failed_by(Some(Fault::Timeout), late)
}

fn strange(description: &str) -> DirectoryError {
    broken(format!("the response does not fit the request ({description}); check the server's version"))
}

/// Converts an error of the server or of the driver.
fn failed(error: &Error) -> DirectoryError {
    let Some(response) = error.as_db_error() else {
        let (mut text, mut cause) = (error.to_string(), error.source());
        let mut fault = error.is_closed().then_some(Fault::Closed);
        while let Some(next) = cause {
            text = format!("{text}: {next}");
            fault = fault.or_else(|| tls::fault(next));
            cause = next.source();
        }
        return failed_by(fault, text);
    };
    let code = response.code().code();
    let text = format!("{} (SQLSTATE {code})", response.message());
    let stored = || format!("PostgreSQL: {text}");
    match code {
        // `disk_full`
        "53100" => DirectoryError::Full(stored()),
        // `serialization_failure`, `deadlock_detected`
        "40001" | "40P01" => DirectoryError::RolledBack(stored()),
        // `query_canceled`: the server's limit of the time of a statement
        "57014" => failed_by(Some(Fault::Timeout), text),
        // `invalid_authorization_specification`
        _ if code.starts_with("28") => failed_by(Some(Fault::Authentication), text),
        // `admin_shutdown` and others
        _ if code.starts_with("57P") => failed_by(Some(Fault::Closed), text),
        _ => broken(text),
    }
}

impl Value<'_> {
    fn sql_type(self) -> Type {
        match self {
            Value::Int(_) => Type::INT8,
            Value::Bool(_) => Type::BOOL,
            Value::Text(_) => Type::TEXT,
            Value::Bytes(_) => Type::BYTEA,
        }
    }
}

/// Without the value: the driver passes parameters to its log.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sql_type().name())
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        sql_type: &Type,
        into: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Int(number) => number.to_sql(sql_type, into),
            Value::Bool(is_so) => is_so.to_sql(sql_type, into),
            Value::Text(text) => text.to_sql(sql_type, into),
            Value::Bytes(bytes) => bytes.to_sql(sql_type, into),
        }
    }

    fn accepts(sql_type: &Type) -> bool {
        [Type::INT8, Type::BOOL, Type::TEXT, Type::BYTEA].contains(sql_type)
    }

    to_sql_checked!();
}

impl PostgresRow {
    pub(super) fn text(&self, at: usize) -> Result<&str, DirectoryError> {
        self.0.try_get(at).map_err(|_| strange("no text"))
    }

    pub(super) fn maybe_int(&self, at: usize) -> Result<Option<i64>, DirectoryError> {
        self.0.try_get(at).map_err(|_| strange("no number"))
    }

    pub(super) fn int(&self, at: usize) -> Result<i64, DirectoryError> {
        self.maybe_int(at)?.ok_or_else(|| strange("nothing where a number was"))
    }

    pub(super) fn is_true(&self, at: usize) -> Result<bool, DirectoryError> {
        self.0.try_get(at).map_err(|_| strange("neither true nor false"))
    }

    pub(super) fn bytes(&self, at: usize) -> Result<Vec<u8>, DirectoryError> {
        self.0.try_get(at).map_err(|_| strange("no bytes"))
    }

    /// Returns the last cell, as a number.
    pub(super) fn last_int(&self) -> Result<i64, DirectoryError> {
        self.int(self.0.len().saturating_sub(1))
    }
}

impl Connection {
    /// Connects, authenticates, and sets the server's timeout for statements.
    pub(super) fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        let mode = tls::mode(&address.encryption);
        let connected = match Connection::connect(address, by, mode)? {
            // As PostgreSQL's own client: a server with an older TLS is one that offers none.
            Err(error) if mode == SslMode::Prefer && tls::is_handshake_error(&error) => {
                Connection::connect(address, by, SslMode::Disable)?
            }
            connected => connected,
        };
        connected.map_err(|error| failed(&error))
    }

    fn connect(
        address: &DatabaseAddress,
        by: Deadline,
        mode: SslMode,
    ) -> Result<Result<Connection, Error>, DirectoryError> {
        let guest = Guest::new(&address.runtimes, by).map_err(broken)?;
        let stream = guest
            .connect(&address.place)
            .map_err(|error| failed_by(Fault::of_io(&error), format!("{}: {error}", address.place)))?;
        let mut config = tokio_postgres::Config::new();
        config.user(&address.user).dbname(&address.database).application_name("plimsoll");
        config.options(format!(
            "-c search_path=plimsoll -c default_transaction_isolation=read\\ committed \
             -c default_transaction_read_only=on -c statement_timeout={}",
            DATABASE_STATEMENT_TIME.as_millis()
        ));
        // Without one, the driver fails if the server requires it.
        if let Some(password) = &address.password {
            config.password(password.bytes());
        }
        config.ssl_mode(mode).channel_binding(address.channel_binding);
        let host = if let Endpoint::Tcp(host, _) = &address.place { host } else { "" };
        let handshake = Handshake::new(&address.encryption, host);
        let stream = Guarded::new(stream, address);
        let connected = guest.run(config.connect_raw(stream, handshake)).map_err(late)?;
        Ok(connected.map(|(client, driver)| Connection { client, driver, statements: HashMap::new(), guest }))
    }

    pub(super) fn set_deadline(&mut self, by: Deadline) {
        self.guest.set_deadline(by);
    }

    /// Returns whether the server has not closed the connection, as far as it has been received.
    pub(super) fn is_open(&mut self) -> bool {
        self.guest.is_driven(&mut self.driver)
    }

    /// Runs the statements in one transaction. Returns the result of each.
    pub(super) fn transact(&mut self, batch: &[Statement<'_>]) -> Result<Vec<Answered>, DirectoryError> {
        self.prepare(batch)?;
        let (client, statements) = (&self.client, &self.statements);
        let all = batch.iter().map(|statement| answer(client, statements, *statement));
        // Each is queued at its first poll, so in this order, before the driver sends anything.
        let work = join3(client.batch_execute(BEGIN), join_all(all), client.batch_execute("COMMIT"));
        drive(&self.guest, &mut self.driver, async {
            let (begun, answers, committed) = work.await;
            begun?;
            // A transaction with an error is rolled back, and that is a successful COMMIT.
            let answers = answers.into_iter().collect::<Result<_, _>>()?;
            committed?;
            Ok(answers)
        })
    }

    /// Runs a statement that changes nothing.
    pub(super) fn read(&mut self, statement: Statement<'_>) -> Result<Answered, DirectoryError> {
        self.prepare(&[statement])?;
        drive(&self.guest, &mut self.driver, answer(&self.client, &self.statements, statement))
    }

    /// Runs a text of statements without results. They are one transaction if the text has none of its own.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), DirectoryError> {
        drive(&self.guest, &mut self.driver, self.client.batch_execute(sql))
    }

    /// Has the server prepare those of the statements that run for the second time. At the first time that
    /// would cost a connection for one request another exchange.
    fn prepare(&mut self, batch: &[Statement<'_>]) -> Result<(), DirectoryError> {
        let is_second =
            |(sql, _): &Statement<'_>| matches!(self.statements.get(*sql), Some(KnownStatement::Once));
        let again: Vec<Statement<'_>> = batch.iter().copied().filter(is_second).collect();
        if !again.is_empty() {
            let all = try_join_all(again.iter().map(|statement| prepared(&self.client, *statement)));
            for ((sql, _), prepared) in again.iter().zip(drive(&self.guest, &mut self.driver, all)?) {
                self.statements.insert((*sql).to_owned(), KnownStatement::Prepared(prepared));
            }
        }
        for (sql, _) in batch {
            // The program has few statements, which do not depend on input: this limit is not meant to be
            // reached.
            if !self.statements.contains_key(*sql) && self.statements.len() < STATEMENTS_KEPT {
                self.statements.insert((*sql).to_owned(), KnownStatement::Once);
            }
        }
        Ok(())
    }
}

/// Has the server prepare a statement.
async fn prepared(client: &Client, (sql, values): Statement<'_>) -> Result<tokio_postgres::Statement, Error> {
    let types: Vec<Type> = values.iter().map(|value| value.sql_type()).collect();
    client.prepare_typed(sql, &types).await
}

/// Runs a statement.
async fn answer(
    client: &Client,
    statements: &HashMap<String, KnownStatement>,
    (sql, values): Statement<'_>,
) -> Result<Answered, Error> {
    let rows = match statements.get(sql) {
        Some(KnownStatement::Prepared(statement)) => client.query_raw(statement, values).await?,
        _ => client.query_typed_raw(sql, values.iter().map(|value| (value, value.sql_type()))).await?,
    };
    let mut rows = pin!(rows);
    let mut answered = Answered::default();
    while let Some(row) = rows.try_next().await? {
        answered.rows.push(PostgresRow(row));
    }
    answered.count = rows.rows_affected().unwrap_or(0);
    Ok(answered)
}

/// Polls `work` and the driver that it waits for, until `work` or the connection ends.
fn drive<T>(
    guest: &Guest,
    driver: &mut Driver,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, DirectoryError> {
    match guest.drive(driver, work).map_err(late)? {
        // The driver knows why.
        (Poll::Ready(Err(error)), Poll::Ready(Err(why))) if error.is_closed() => Err(failed(&why)),
        (Poll::Ready(done), _) => done.map_err(|error| failed(&error)),
        (Poll::Pending, Poll::Ready(Err(why))) => Err(failed(&why)),
        (Poll::Pending, _) => Err(failed_by(Some(Fault::Closed), "it closed the connection")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_not_shown_in_a_log() {
        assert_eq!(format!("{:?}", [Value::Text("secret"), Value::Bytes(Some(b"secret"))]), "[text, bytea]");
    }
}
