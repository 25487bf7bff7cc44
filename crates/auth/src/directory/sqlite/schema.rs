//! The tables, as a list of migrations.
//!
//! Invariants: a file's `user_version` is the number of migrations applied. All missing migrations are one
//! transaction, which another process waits for.

use rusqlite::{Connection, ErrorCode};

use super::{failed, one};
use crate::directory::migrations::{Migrations, Step};
use crate::directory::{DirectoryError, Fault};

const STEPS: [Step; 5] = [
    Step { name: "accounts, sessions and shares", text: include_str!("migrations/001_accounts.sql") },
    Step { name: "known networks", text: include_str!("migrations/002_networks.sql") },
    Step { name: "a note that servers may not use it", text: include_str!("migrations/003_closed.sql") },
    Step { name: "public links", text: include_str!("migrations/004_links.sql") },
    Step { name: "locks", text: include_str!("migrations/005_locks.sql") },
];

impl Migrations for Connection {
    const STORE: &'static str = "SQLite";
    const STEPS: &'static [Step] = &STEPS;

    fn version(&mut self) -> Result<i64, DirectoryError> {
        self.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)
    }

    fn closed(&mut self) -> Result<String, DirectoryError> {
        Ok(closed(self)?.unwrap_or_default())
    }

    fn try_lock(&mut self) -> Result<bool, DirectoryError> {
        match self.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn apply(&mut self, number: i64, step: &Step) -> Result<(), DirectoryError> {
        self.execute_batch(step.text).map_err(failed)?;
        self.pragma_update(None, "user_version", number).map_err(failed)
    }

    fn unlock(&mut self) -> Result<(), DirectoryError> {
        self.execute_batch("COMMIT").map_err(failed)
    }
}

/// Returns why no server may use the directory; `None` if servers may.
fn closed(connection: &Connection) -> Result<Option<String>, DirectoryError> {
    one(connection, "SELECT closed FROM state WHERE closed <> ''", (), |row| row.get(0))
}

/// Fails if the directory is closed to servers.
pub(super) fn check_open(connection: &Connection) -> Result<(), DirectoryError> {
    closed(connection)?.map_or(Ok(()), |reason| {
        let why = format!("SQLite: the directory is closed to servers: {reason}");
        Err(DirectoryError::Unavailable(Fault::Schema, why))
    })
}
