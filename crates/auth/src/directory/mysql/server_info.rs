//! The configuration of a MySQL or MariaDB server, as far as it matters for a directory.
//!
//! It judges nothing, and creates no tables. Invariant: a value that cannot be read is an error.

use super::address::DatabaseAddress;
use super::connection::Connection;
use super::packets::strange;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::open::NotOpened;
use crate::directory::values::unsigned;
use crate::limits::DATABASE_CONNECT_TIME;

/// The configuration of a MySQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlInfo {
    /// `version`, for example 10.11.6-MariaDB.
    pub version: String,
    /// `innodb_flush_log_at_trx_commit`: 1 if a commit is synced before it is confirmed.
    pub flush: i64,
    /// Connections that we may open at once: the lesser of the server's limit and the user's.
    pub connections_max: u64,
    /// Connections that others have open.
    pub connections_taken: u64,
}

const ASKED: &str = "SELECT VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.max_connections,
    @@SESSION.max_user_connections";

impl MysqlInfo {
    /// Reads the configuration of the server that `url` names. This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the server.
    pub fn of(url: &str) -> Result<MysqlInfo, NotOpened> {
        Ok(server_info(&DatabaseAddress::parse(url)?)?)
    }
}

fn server_info(address: &DatabaseAddress) -> Result<MysqlInfo, DirectoryError> {
    let mut connection = Connection::open(address, Deadline::after(DATABASE_CONNECT_TIME))?;
    let taken = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
    let answers = connection.run(&[ASKED.to_owned(), taken.to_owned()])?;
    let row = answers[0].rows.first().ok_or_else(strange)?;
    let (all, ours) = (unsigned(row.int(2)?), unsigned(row.int(3)?));
    let taken = answers[1].rows.first().ok_or_else(strange)?.int(1)?;
    Ok(MysqlInfo {
        version: row.text(0)?.to_owned(),
        flush: row.int(1)?,
        // 0 means no limit.
        connections_max: if ours == 0 { all } else { all.min(ours) },
        connections_taken: unsigned(taken).saturating_sub(1),
    })
}
