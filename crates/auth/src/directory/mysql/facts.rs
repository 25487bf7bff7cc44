//! What a MySQL or MariaDB server is set to, as far as it matters to what we keep there.
//!
//! It judges nothing, and makes no tables. What must hold: what cannot be found out is an error.

use super::connection::Connection;
use super::packets::strange;
use super::way::Way;
use crate::directory::Trouble;
use crate::directory::open::NotOpened;
use crate::directory::reach::socket::Deadline;
use crate::directory::values::unsigned;
use crate::limits::DATABASE_CONNECT_TIME;

/// What MySQL is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlFacts {
    /// `version`: such as 10.11.6-MariaDB.
    pub version: String,
    /// `innodb_flush_log_at_trx_commit`: 1 if a commit is synced before it is confirmed.
    pub flush: i64,
    /// Connections that may be open at once for us: the lesser of what the server and the user allow.
    pub connections_max: u64,
    /// Of these, how many others have open.
    pub connections_taken: u64,
}

const ASKED: &str = "SELECT VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.max_connections,
    @@SESSION.max_user_connections";

impl MysqlFacts {
    /// Asks the server that `url` names. This blocks.
    ///
    /// # Errors
    /// What is wrong with the URL, and what MySQL says.
    pub fn of(url: &str) -> Result<MysqlFacts, NotOpened> {
        Ok(facts(&Way::parse(url)?)?)
    }
}

fn facts(way: &Way) -> Result<MysqlFacts, Trouble> {
    let mut connection = Connection::open(way, Deadline::after(DATABASE_CONNECT_TIME))?;
    let taken = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
    let answers = connection.run(&[ASKED.to_owned(), taken.to_owned()])?;
    let row = answers[0].rows.first().ok_or_else(strange)?;
    let (all, ours) = (unsigned(row.int(2)?), unsigned(row.int(3)?));
    let taken = answers[1].rows.first().ok_or_else(strange)?.int(1)?;
    Ok(MysqlFacts {
        version: row.text(0)?.to_owned(),
        flush: row.int(1)?,
        // No limit is 0.
        connections_max: if ours == 0 { all } else { all.min(ours) },
        connections_taken: unsigned(taken).saturating_sub(1),
    })
}
