//! What a PostgreSQL server is set to, as far as it matters to what we keep there.
//!
//! It judges nothing, and makes no tables. What must hold: what cannot be found out is an error.

use super::connection::Connection;
use super::way::Way;
use crate::directory::Trouble;
use crate::directory::open::NotOpened;
use crate::directory::reach::socket::Deadline;
use crate::limits::DATABASE_TIME;

/// What PostgreSQL is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresFacts {
    /// `server_version`: such as 15.3.
    pub version: String,
    /// `fsync`: without it, a power cut can destroy the whole database.
    pub syncs: bool,
    /// `synchronous_commit`: `off` loses what was confirmed last when the server falls.
    pub synchronous_commit: String,
    /// Connections that may be open at once for us: the least of what the server, the database and the
    /// user allow.
    pub connections_max: u64,
    /// Of these, how many others have open.
    pub connections_taken: u64,
}

/// A limit below zero is none.
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

impl PostgresFacts {
    /// Asks the server that `url` names. This blocks.
    ///
    /// # Errors
    /// What is wrong with the URL, and what PostgreSQL says.
    pub fn of(url: &str) -> Result<PostgresFacts, NotOpened> {
        let way = Way::parse(url)?;
        Ok(facts(&way)?)
    }
}

fn facts(way: &Way) -> Result<PostgresFacts, Trouble> {
    let mut connection = Connection::open(way, Deadline::after(DATABASE_TIME))?;
    let answered = connection.run(&[(ASKED, &[])])?;
    let row = answered[0].rows.first().ok_or_else(|| super::connection::broken("it said nothing"))?;
    Ok(PostgresFacts {
        version: row.text(0)?.to_owned(),
        syncs: row.is_true(1)?,
        synchronous_commit: row.text(2)?.to_owned(),
        connections_max: super::unsigned(row.int(3)?),
        connections_taken: super::unsigned(row.int(4)?),
    })
}
