//! The tables in MySQL, as a list of migrations.
//!
//! MySQL commits after each statement that creates a table. So each statement of a migration can be
//! repeated, and a migration that was interrupted is applied again. Invariants: `plimsoll_state.version` is
//! the number of migrations applied. They are applied under a lock of the server.

use super::connection::Connection;
use crate::directory::DirectoryError;
use crate::directory::database::DatabaseConnection as _;
use crate::directory::database::deadline::Deadline;
use crate::directory::migrations::{Migrations, Schema, Step};
use crate::limits::{DATABASE_MIGRATION_TIME, DATABASE_TIME, MIGRATION_LOCK_WAIT_TIME};

const STEPS: [Step; 5] = [
    Step { name: "accounts, sessions and shares", text: include_str!("migrations/001_accounts.sql") },
    Step { name: "known networks", text: include_str!("migrations/002_networks.sql") },
    Step { name: "a note that servers may not use it", text: include_str!("migrations/003_closed.sql") },
    Step { name: "public links", text: include_str!("migrations/004_links.sql") },
    Step { name: "locks", text: include_str!("migrations/005_locks.sql") },
];

/// The name of the lock. Locks belong to the whole server, so it has a hash of the database's name.
const LOCK: &str = "CONCAT('plimsoll ', MD5(DATABASE()))";

impl Migrations for Connection {
    const STORE: &'static str = "MariaDB or MySQL";
    const STEPS: &'static [Step] = &STEPS;

    fn version(&mut self) -> Result<i64, DirectoryError> {
        let known = "SELECT COUNT(*) FROM information_schema.tables
            WHERE table_schema = DATABASE() AND table_name = 'plimsoll_state'";
        if int(self, known)? == 0 {
            return Ok(0);
        }
        int(self, "SELECT version FROM plimsoll_state")
    }

    fn closed(&mut self) -> Result<String, DirectoryError> {
        let answers = self.run(&["SELECT reason FROM plimsoll_closed".to_owned()])?;
        Ok(answers[0].rows.first().map_or(Ok(""), |row| row.text(0))?.to_owned())
    }

    fn try_lock(&mut self) -> Result<bool, DirectoryError> {
        self.set_deadline(Deadline::after(DATABASE_TIME));
        let wait = MIGRATION_LOCK_WAIT_TIME.as_secs();
        // The answer is NULL if the server could not take it for another reason.
        let is_locked = int(self, &format!("SELECT COALESCE(GET_LOCK({LOCK}, {wait}), 0)"))? == 1;
        if is_locked {
            let time = DATABASE_MIGRATION_TIME;
            self.set_deadline(Deadline::after(time));
            // MariaDB limits the time of each statement.
            self.run(&[
                "SET @bound = 0 /*M!100101 + @@SESSION.max_statement_time */".to_owned(),
                format!("SET @unbound = 0 /*M!100101 , SESSION max_statement_time = {} */", time.as_secs()),
            ])?;
        }
        Ok(is_locked)
    }

    fn apply(&mut self, number: i64, step: &Step) -> Result<(), DirectoryError> {
        let lines = step.text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        let statements = lines.split(';').map(str::trim).filter(|sql| !sql.is_empty());
        let version = format!("UPDATE plimsoll_state SET version = {number}");
        self.run(&statements.map(str::to_owned).chain([version]).collect::<Vec<_>>()).map(drop)
    }

    fn unlock(&mut self) -> Result<(), DirectoryError> {
        self.run(&[
            format!("DO RELEASE_LOCK({LOCK})"),
            "SET @unbound = 0 /*M!100101 , SESSION max_statement_time = @bound */".to_owned(),
        ])?;
        self.set_deadline(Deadline::after(DATABASE_TIME));
        Ok(())
    }
}

/// Returns the first cell of the first row; 0 if there is none.
fn int(connection: &mut Connection, sql: &str) -> Result<i64, DirectoryError> {
    let answers = connection.run(&[sql.to_owned()])?;
    answers[0].rows.first().map_or(Ok(0), |row| row.int(0))
}

/// Returns the change counter. Fails if another program has migrated the tables, or closed the directory.
pub(super) fn poll(connection: &mut Connection) -> Result<i64, DirectoryError> {
    let state = "SELECT changes, version FROM plimsoll_state".to_owned();
    let answers = connection.run(&[state, "SELECT reason FROM plimsoll_closed".to_owned()])?;
    let row = answers[0].rows.first();
    let at = |at| row.map_or(Ok(0), |row| row.int(at));
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let closed = answers[1].rows.first().map_or(Ok(""), |row| row.text(0))?.to_owned();
    Schema { store: Connection::STORE, version: at(1)?, known, closed }.check()?;
    at(0)
}
