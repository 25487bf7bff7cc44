//! The tables in PostgreSQL, as a list of migrations.
//!
//! They are in a schema of their own, separate from other programs' tables. Invariants: `state.version` is
//! the number of migrations applied. All missing migrations are one transaction, under an advisory lock.

use super::connection::{BEGIN, Connection};
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::migrations::{Migrations, Schema, Step, schema};
use crate::limits::{
    DATABASE_MIGRATION_TIME, DATABASE_TIME, MIGRATION_LOCK_ATTEMPTS, MIGRATION_LOCK_WAIT_TIME,
};

const STEPS: [Step; 5] = [
    Step { name: "accounts, sessions and shares", text: include_str!("migrations/001_accounts.sql") },
    Step { name: "known networks", text: include_str!("migrations/002_networks.sql") },
    Step { name: "a note that servers may not use it", text: include_str!("migrations/003_closed.sql") },
    Step { name: "public links", text: include_str!("migrations/004_links.sql") },
    Step { name: "locks", text: include_str!("migrations/005_locks.sql") },
];

/// The key of the advisory lock that serialises migrations.
const LOCK: i64 = 0x0070_6c69_6d73_6f6c;

/// The expression for `closed` that also holds for older tables, which lack the column.
const CLOSED: &str = "coalesce(to_jsonb(state) ->> 'closed', '')";

impl Migrations for Connection {
    const STORE: &'static str = "PostgreSQL";
    const STEPS: &'static [Step] = &STEPS;

    fn version(&mut self) -> Result<i64, DirectoryError> {
        let is_made = self.read(("SELECT to_regclass('plimsoll.state') IS NOT NULL", &[]))?;
        let is_made = is_made.rows.first().map(|row| row.is_true(0)).transpose()?;
        if is_made != Some(true) {
            return Ok(0);
        }
        let state = self.read(("SELECT version FROM state", &[]))?;
        Ok(state.rows.first().map(|row| row.int(0)).transpose()?.unwrap_or(0))
    }

    fn closed(&mut self) -> Result<String, DirectoryError> {
        let answered = self.read((&format!("SELECT {CLOSED} FROM state"), &[]))?;
        Ok(answered.rows.first().map_or(Ok(""), |row| row.text(0))?.to_owned())
    }

    fn try_lock(&mut self) -> Result<bool, DirectoryError> {
        self.set_deadline(Deadline::after(DATABASE_TIME));
        let wait = (MIGRATION_LOCK_WAIT_TIME / MIGRATION_LOCK_ATTEMPTS).as_secs_f64();
        let (lock, wait) =
            (format!("SELECT pg_try_advisory_lock({LOCK})"), format!("SELECT 1 FROM pg_sleep({wait})"));
        for _ in 0..MIGRATION_LOCK_ATTEMPTS {
            let locked = self.read((&lock, &[]))?;
            if locked.rows.first().is_some_and(|row| row.is_true(0) == Ok(true)) {
                let time = DATABASE_MIGRATION_TIME;
                self.set_deadline(Deadline::after(time));
                // The transaction begins after the lock is taken, and sees the work of the previous owner.
                self.script(&format!("{BEGIN}; SET LOCAL statement_timeout = {}", time.as_millis()))?;
                return Ok(true);
            }
            self.read((&wait, &[]))?;
        }
        Ok(false)
    }

    fn apply(&mut self, number: i64, step: &Step) -> Result<(), DirectoryError> {
        self.script(&format!("{}; UPDATE state SET version = {number}", step.text))
    }

    fn unlock(&mut self) -> Result<(), DirectoryError> {
        self.script("COMMIT")?;
        self.script(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
        self.set_deadline(Deadline::after(DATABASE_TIME));
        Ok(())
    }
}

/// Returns the change counter. Fails if another program has migrated the tables, or closed the directory.
pub(super) fn poll(connection: &mut Connection) -> Result<i64, DirectoryError> {
    let answered = connection.read((&format!("SELECT changes, version, {CLOSED} FROM state"), &[]))?;
    let Some(row) = answered.rows.first() else { return schema(connection)?.check().map(|()| 0) };
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let closed = row.text(2)?.to_owned();
    Schema { store: Connection::STORE, version: row.int(1)?, known, closed }.check()?;
    row.int(0)
}
