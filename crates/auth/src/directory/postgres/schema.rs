//! The tables in PostgreSQL, as the steps that made them.
//!
//! They are in a schema of their own, so that they are in nobody's way. A step that was released is never
//! changed; what is new is another one. What must hold: `state.version` is the count of steps that a
//! database has had; one that has had more than we know is left alone; of two servers that begin at once,
//! one makes the tables.

use super::connection::Connection;
use crate::directory::Trouble;
use crate::directory::reach::socket::Deadline;
use crate::limits::DATABASE_MIGRATION_TIME;

/// Times are milliseconds since 1970. `accounts.version` counts the passwords an account has had.
/// `permissions` are the bits of `values.rs`. A session's id is a hash, a path is bytes. An entry of an index
/// has room for a third of a page: a path may be longer, so it is unique by its hash and in order by its
/// first bytes. `networks` has keyed hashes of networks that accounts logged in from. `state.probed` is
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

/// A number of our own, by which servers that make the tables wait for each other.
const LOCK: i64 = 0x0070_6c69_6d73_6f6c;

/// How many steps the database has had.
fn version(connection: &mut Connection) -> Result<usize, Trouble> {
    let is_made = connection.run(&[("SELECT to_regclass('plimsoll.state') IS NOT NULL", &[])])?;
    let is_made = is_made[0].rows.first().map(|row| row.is_true(0)).transpose()?;
    if is_made != Some(true) {
        return Ok(0);
    }
    let state = connection.run(&[("SELECT version FROM state", &[])])?;
    let version = state[0].rows.first().map(|row| row.int(0)).transpose()?.unwrap_or(0);
    usize::try_from(version).map_err(|_| unknown(version))
}

fn unknown(version: impl std::fmt::Display) -> Trouble {
    let known = STEPS.len();
    Trouble::Failed(format!(
        "PostgreSQL: a newer plimsoll made the tables (version {version}, this one knows {known}): \
         start that one"
    ))
}

/// Makes sure that the tables are those that we know.
pub(super) fn check(connection: &mut Connection) -> Result<(), Trouble> {
    match version(connection)? {
        had if had == STEPS.len() => Ok(()),
        had if had > STEPS.len() => Err(unknown(had)),
        had => Err(Trouble::Failed(format!(
            "PostgreSQL: the tables are gone, or older than they were (version {had}): start the server again"
        ))),
    }
}

/// Takes the steps that the database has not had.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), Trouble> {
    if version(connection)? < STEPS.len() {
        connection.socket.set_deadline(Deadline::after(DATABASE_MIGRATION_TIME));
        let time = DATABASE_MIGRATION_TIME.as_millis();
        // The lock comes before the transaction, which then sees what was done by whoever had it.
        connection.script(&format!("SET statement_timeout = {time}; SELECT pg_advisory_lock({LOCK})"))?;
        connection.script("BEGIN")?;
        let had = version(connection)?;
        for sql in STEPS.get(had..).unwrap_or_default() {
            connection.script(sql)?;
        }
        connection.script(&format!("UPDATE state SET version = {}; COMMIT", STEPS.len().max(had)))?;
        connection.script(&format!("SELECT pg_advisory_unlock({LOCK}); RESET statement_timeout"))?;
    }
    check(connection)
}
