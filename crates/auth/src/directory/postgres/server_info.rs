//! The configuration of a PostgreSQL server, as far as it matters for a directory.
//!
//! It judges nothing, and creates no tables. Invariant: a value that cannot be read is an error.

use super::address::DatabaseAddress;
use super::connection::Connection;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::open::NotOpened;
use crate::limits::DATABASE_TIME;

/// The configuration of a PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresInfo {
    /// `server_version`, for example 15.3.
    pub version: String,
    /// `fsync`: without it, a power cut can destroy the whole database.
    pub syncs: bool,
    /// `synchronous_commit`: with `off`, a crash of the server loses the last confirmed commits.
    pub synchronous_commit: String,
    /// Connections that we may open at once: the least of the limits of the server, the database and the
    /// user.
    pub connections_max: u64,
    /// Connections that others have open.
    pub connections_taken: u64,
}

/// A limit of -1 means none.
const ASKED: &str = "
    SELECT current_setting('server_version'), current_setting('fsync')::boolean,
        current_setting('synchronous_commit'),
        least(
            current_setting('max_connections')::bigint
                - current_setting('superuser_reserved_connections')::bigint,
            (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
            (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)
        ),
        (SELECT count(*) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())
";

impl PostgresInfo {
    /// Reads the configuration of the server that `url` names. This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the server.
    pub fn of(url: &str) -> Result<PostgresInfo, NotOpened> {
        let address = DatabaseAddress::parse(url)?;
        Ok(server_info(&address)?)
    }
}

fn server_info(address: &DatabaseAddress) -> Result<PostgresInfo, DirectoryError> {
    let mut connection = Connection::open(address, Deadline::after(DATABASE_TIME))?;
    let answered = connection.read((ASKED, &[]))?;
    let row = answered.rows.first().ok_or_else(|| super::connection::broken("it said nothing"))?;
    Ok(PostgresInfo {
        version: row.text(0)?.to_owned(),
        syncs: row.is_true(1)?,
        synchronous_commit: row.text(2)?.to_owned(),
        connections_max: super::unsigned(row.int(3)?),
        connections_taken: super::unsigned(row.int(4)?),
    })
}
