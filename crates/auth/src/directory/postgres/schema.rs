//! The tables in PostgreSQL, as a list of migrations.
//!
//! They are in a schema of their own, separate from other programs' tables. A released migration is never
//! changed; changes are new migrations. Invariants: `state.version` is the number of migrations applied.
//! A database that has had more than this program knows is not changed. Of two servers that start at
//! once, one creates the tables.

use super::connection::{BEGIN, Connection};
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::limits::DATABASE_MIGRATION_TIME;

/// Times are milliseconds since 1970. `accounts.version` counts the passwords an account has had.
/// `permissions` are the bits of `values.rs`. A session's id is a hash, a path is bytes. An index entry
/// is limited to a third of a page, and a path may be longer. So its hash makes it unique, and its first
/// bytes sort it. `networks` has keyed hashes of networks that accounts logged in from. `state.probed` is
/// written only to check that the database can be written.
const STEPS: [&str; 2] = [
    "
    CREATE SCHEMA IF NOT EXISTS plimsoll;
    CREATE TABLE state (version bigint NOT NULL, changes bigint NOT NULL);
    INSERT INTO state VALUES (0, 0);
    CREATE TABLE accounts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE \"C\" NOT NULL UNIQUE,
        hash text NOT NULL,
        version bigint NOT NULL,
        quota_bytes bigint,
        quota_files bigint,
        permissions bigint NOT NULL,
        enabled boolean NOT NULL,
        created bigint NOT NULL
    );
    CREATE TABLE sessions (
        id bytea PRIMARY KEY,
        account bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        created bigint NOT NULL,
        expires bigint NOT NULL
    );
    CREATE INDEX sessions_by_age ON sessions (account, created, id);
    CREATE INDEX sessions_by_end ON sessions (expires);
    CREATE TABLE shares (
        id text COLLATE \"C\" PRIMARY KEY,
        owner bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        holder bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        path bytea NOT NULL,
        writes boolean NOT NULL,
        created bigint NOT NULL,
        expires bigint
    );
    CREATE UNIQUE INDEX shares_by_path ON shares (owner, holder, sha256(path));
    CREATE INDEX shares_in_order ON shares (owner, holder, substring(path from 1 for 1024));
    CREATE INDEX shares_by_holder ON shares (holder);
    CREATE INDEX shares_by_end ON shares (expires);
",
    "
    ALTER TABLE state ADD COLUMN probed bigint NOT NULL DEFAULT 0;
    CREATE TABLE networks (
        account bigint NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        network bytea NOT NULL,
        seen bigint NOT NULL,
        PRIMARY KEY (account, network)
    );
    CREATE INDEX networks_by_age ON networks (seen);
",
];

/// The key of the advisory lock that serialises servers that create the tables.
const LOCK: i64 = 0x0070_6c69_6d73_6f6c;

/// Returns the number of migrations that the database has had.
fn version(connection: &mut Connection) -> Result<usize, DirectoryError> {
    let is_made = connection.read(("SELECT to_regclass('plimsoll.state') IS NOT NULL", &[]))?;
    let is_made = is_made.rows.first().map(|row| row.is_true(0)).transpose()?;
    if is_made != Some(true) {
        return Ok(0);
    }
    let state = connection.read(("SELECT version FROM state", &[]))?;
    let version = state.rows.first().map(|row| row.int(0)).transpose()?.unwrap_or(0);
    usize::try_from(version).map_err(|_| unknown(version))
}

fn unknown(version: impl std::fmt::Display) -> DirectoryError {
    let known = STEPS.len();
    DirectoryError::Failed(format!(
        "PostgreSQL: a newer plimsoll made the tables (version {version}, this one knows {known}): \
         start that one"
    ))
}

/// Checks that the tables have the version of this program.
pub(super) fn check(connection: &mut Connection) -> Result<(), DirectoryError> {
    match version(connection)? {
        had if had == STEPS.len() => Ok(()),
        had if had > STEPS.len() => Err(unknown(had)),
        had => Err(DirectoryError::Failed(format!(
            "PostgreSQL: the tables are gone, or older than they were (version {had}): start the server again"
        ))),
    }
}

/// Applies the missing migrations.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), DirectoryError> {
    if version(connection)? < STEPS.len() {
        connection.set_deadline(Deadline::after(DATABASE_MIGRATION_TIME));
        let time = DATABASE_MIGRATION_TIME.as_millis();
        // The lock is taken before the transaction begins, which then sees the work of its previous
        // owner.
        connection.script(&format!("SET statement_timeout = {time}; SELECT pg_advisory_lock({LOCK})"))?;
        connection.script(BEGIN)?;
        let had = version(connection)?;
        for sql in STEPS.get(had..).unwrap_or_default() {
            connection.script(sql)?;
        }
        connection.script(&format!("UPDATE state SET version = {}; COMMIT", STEPS.len().max(had)))?;
        connection.script(&format!("SELECT pg_advisory_unlock({LOCK}); RESET statement_timeout"))?;
    }
    check(connection)
}
