//! A connection to MySQL or MariaDB: authentication, and batches of statements.
//!
//! It speaks the text protocol. Invariants: text from outside is in a statement as
//! hexadecimal digits only. After any error the connection is not used again.

use super::address::DatabaseAddress;
use super::authentication::{self, Greeting};
use super::packets::{Packets, Reader, failed_by, strange};
use crate::directory::database::deadline::Deadline;
use crate::directory::database::socket::Socket;
use crate::directory::{DirectoryError, Fault};
use crate::limits::{DATABASE_STATEMENT_TIME, MYSQL_COLUMNS_MAX, PATH_BYTES_MAX};

/// A row of a result.
pub(super) struct MysqlRow(Vec<Option<Vec<u8>>>);

/// The result of a statement.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) rows: Vec<MysqlRow>,
    /// Rows that were changed.
    pub(super) count: u64,
    /// The value of `LAST_INSERT_ID`; 0 if there is none.
    pub(super) number: u64,
}

/// A connection.
pub(super) struct Connection {
    packets: Packets,
}

/// The status flag that another result follows (`SERVER_MORE_RESULTS_EXISTS`).
const MORE: u16 = 0x0008;
const COM_QUERY: u8 = 0x03;

impl MysqlRow {
    pub(super) fn bytes(&self, at: usize) -> Result<&[u8], DirectoryError> {
        self.0.get(at).and_then(Option::as_deref).ok_or_else(strange)
    }

    pub(super) fn text(&self, at: usize) -> Result<&str, DirectoryError> {
        std::str::from_utf8(self.bytes(at)?).map_err(|_| strange())
    }

    pub(super) fn int(&self, at: usize) -> Result<i64, DirectoryError> {
        self.text(at)?.parse().map_err(|_| strange())
    }

    pub(super) fn maybe_int(&self, at: usize) -> Result<Option<i64>, DirectoryError> {
        if self.0.get(at).is_some_and(Option::is_some) { self.int(at).map(Some) } else { Ok(None) }
    }
}

impl Connection {
    /// Connects, authenticates, and sets the server's timeout for statements.
    pub(super) fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        let socket = Socket::open(&address.place, by)
            .map_err(|error| failed_by(Fault::of_io(&error), format!("{}: {error}", address.place)))?;
        let mut packets = Packets::new(socket);
        let greeting = Greeting::read(&packets.receive()?)?;
        let mut packets = authentication::encrypt(packets, address, &greeting)?;
        authentication::authenticate(&mut packets, address, &greeting)?;
        let mut connection = Connection { packets };
        // MariaDB executes the text in such a comment. MySQL has no such timeout.
        let time = DATABASE_STATEMENT_TIME.as_secs();
        connection.run(&[
            format!(
                "SET SESSION innodb_lock_wait_timeout = {time} /*M!100101 , max_statement_time = {time} */"
            ),
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'".to_owned(),
            // It sorts long values by their first 1024 bytes, unless this is larger. Two of those bytes
            // are the length.
            format!("SET SESSION max_sort_length = {}", PATH_BYTES_MAX + 2),
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned(),
        ])?;
        Ok(connection)
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        self.packets.socket()
    }

    /// Runs the statements in one transaction. Returns the result of each.
    pub(super) fn transaction(&mut self, batch: &[String]) -> Result<Vec<Answered>, DirectoryError> {
        let mut all = vec!["START TRANSACTION".to_owned()];
        all.extend_from_slice(batch);
        all.push("COMMIT".to_owned());
        let mut answers = self.run(&all)?;
        answers.pop();
        answers.remove(0);
        Ok(answers)
    }

    /// Runs the statements one after the other, until one fails. Returns the result of each.
    pub(super) fn run(&mut self, batch: &[String]) -> Result<Vec<Answered>, DirectoryError> {
        let sql = batch.join("; ");
        self.packets.begin();
        self.packets.send(&[&[COM_QUERY], sql.as_bytes()].concat())?;
        let mut answers = Vec::with_capacity(batch.len());
        loop {
            let (answered, status) = self.answer()?;
            answers.push(answered);
            if status & MORE == 0 {
                return if answers.len() == batch.len() { Ok(answers) } else { Err(strange()) };
            }
        }
    }

    fn answer(&mut self) -> Result<(Answered, u16), DirectoryError> {
        let packet = self.packets.receive()?;
        let mut reader = Reader(&packet);
        if packet.first() == Some(&0) {
            reader.skip(1)?;
            let (count, number) = (reader.number()?, reader.number()?);
            return Ok((Answered { rows: Vec::new(), count, number }, reader.u16()?));
        }
        let columns = usize::try_from(reader.number()?).ok().filter(|count| *count <= MYSQL_COLUMNS_MAX);
        let columns = columns.ok_or_else(strange)?;
        // The column definitions are skipped, because callers know them. An end packet follows them.
        for _ in 0..=columns {
            self.packets.receive()?;
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.packets.receive()?;
            if let Some(status) = end(&packet) {
                return Ok((Answered { rows, count: 0, number: 0 }, status));
            }
            let mut reader = Reader(&packet);
            let cells = (0..columns).map(|_| reader.cell()).collect::<Result<_, _>>()?;
            rows.push(MysqlRow(cells));
        }
    }
}

/// Returns the status in an end packet; `None` for other packets.
fn end(packet: &[u8]) -> Option<u16> {
    match packet {
        [0xfe, _, _, low, high] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}
