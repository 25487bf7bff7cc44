//! The tables in MySQL, as a list of migrations.
//!
//! A released migration is never changed; changes are new migrations. MySQL commits after each statement
//! that creates a table, so each can be repeated. Invariants: `plimsoll_state.version` is the number of
//! migrations applied. A database that has had more than this program knows is not changed. Of two
//! servers that start at once, one creates the tables.

use super::connection::Connection;
use super::packets::broken;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::limits::DATABASE_MIGRATION_TIME;

/// Times are milliseconds since 1970. `version` counts the passwords an account has had. `permissions`
/// are the bits of `values.rs`. Text is binary, so that it is compared and sorted by its bytes. A path
/// may be longer than an index entry: its hash makes it unique, and its first bytes sort it.
/// `plimsoll_networks` has keyed hashes of networks that accounts logged in from. `plimsoll_probe` is
/// written only to check that the database can be written.
const STEPS: [&[&str]; 2] = [
    &[
        "CREATE TABLE IF NOT EXISTS plimsoll_accounts (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        name VARBINARY(255) NOT NULL UNIQUE,
        hash VARBINARY(1024) NOT NULL,
        version BIGINT NOT NULL,
        quota_bytes BIGINT,
        quota_files BIGINT,
        permissions BIGINT NOT NULL,
        enabled BIGINT NOT NULL,
        created BIGINT NOT NULL
    ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS plimsoll_sessions (
        id VARBINARY(32) NOT NULL PRIMARY KEY,
        account BIGINT NOT NULL,
        created BIGINT NOT NULL,
        expires BIGINT NOT NULL,
        KEY by_age (account, created, id),
        KEY by_end (expires),
        FOREIGN KEY (account) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
    ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS plimsoll_shares (
        id VARBINARY(255) NOT NULL PRIMARY KEY,
        owner BIGINT NOT NULL,
        holder BIGINT NOT NULL,
        path VARBINARY(4096) NOT NULL,
        path_hash BINARY(32) NOT NULL,
        writes BIGINT NOT NULL,
        created BIGINT NOT NULL,
        expires BIGINT,
        UNIQUE KEY by_path (owner, holder, path_hash),
        KEY in_order (owner, holder, path(700)),
        KEY by_holder (holder),
        KEY by_end (expires),
        FOREIGN KEY (owner) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE,
        FOREIGN KEY (holder) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
    ) ENGINE = InnoDB",
    ],
    &[
        "CREATE TABLE IF NOT EXISTS plimsoll_networks (
        account BIGINT NOT NULL,
        network BINARY(32) NOT NULL,
        seen BIGINT NOT NULL,
        PRIMARY KEY (account, network),
        KEY by_age (seen),
        FOREIGN KEY (account) REFERENCES plimsoll_accounts (id) ON DELETE CASCADE
    ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS plimsoll_probe (
        one BIGINT NOT NULL PRIMARY KEY, probed BIGINT NOT NULL
    ) ENGINE = InnoDB",
    ],
];

fn one(sql: &str) -> [String; 1] {
    [sql.to_owned()]
}

/// Returns the number of migrations that the database has had.
fn version(connection: &mut Connection) -> Result<usize, DirectoryError> {
    let known = connection.run(&one("SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'plimsoll_state'"))?;
    if known[0].rows.first().map_or(Ok(0), |row| row.int(0))? == 0 {
        return Ok(0);
    }
    let state = connection.run(&one("SELECT version FROM plimsoll_state"))?;
    let version = state[0].rows.first().map_or(Ok(0), |row| row.int(0))?;
    usize::try_from(version).map_err(|_| unknown(version))
}

fn unknown(version: impl std::fmt::Display) -> DirectoryError {
    let known = STEPS.len();
    broken(format!(
        "a newer plimsoll made the tables (version {version}, this one knows {known}): start that one"
    ))
}

/// Checks that the tables have the version of this program.
pub(super) fn check(connection: &mut Connection) -> Result<(), DirectoryError> {
    match version(connection)? {
        had if had == STEPS.len() => Ok(()),
        had if had > STEPS.len() => Err(unknown(had)),
        had => Err(broken(format!(
            "the tables are gone, or older than they were (version {had}): start the server again"
        ))),
    }
}

/// Applies the missing migrations.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), DirectoryError> {
    if version(connection)? < STEPS.len() {
        connection.socket().set_deadline(Deadline::after(DATABASE_MIGRATION_TIME));
        let time = DATABASE_MIGRATION_TIME.as_secs();
        // MariaDB limits the time of each statement, and this one may wait for other servers.
        connection.run(&[
            "SET @bound = 0 /*M!100101 + @@SESSION.max_statement_time */".to_owned(),
            format!("SET @unbound = 0 /*M!100101 , SESSION max_statement_time = {time} */"),
            format!("DO GET_LOCK('plimsoll', {time})"),
        ])?;
        take_steps(connection)?;
        connection.run(&[
            "DO RELEASE_LOCK('plimsoll')".to_owned(),
            "SET @unbound = 0 /*M!100101 , SESSION max_statement_time = @bound */".to_owned(),
        ])?;
    }
    check(connection)
}

fn take_steps(connection: &mut Connection) -> Result<(), DirectoryError> {
    connection.run(&[
        "CREATE TABLE IF NOT EXISTS plimsoll_state (
            one BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, changes BIGINT NOT NULL
        ) ENGINE = InnoDB"
            .to_owned(),
        "INSERT IGNORE INTO plimsoll_state VALUES (1, 0, 0)".to_owned(),
    ])?;
    // Another server may have been faster.
    let had = version(connection)?;
    for step in STEPS.get(had..).unwrap_or_default() {
        connection.run(&step.iter().map(|sql| (*sql).to_owned()).collect::<Vec<_>>())?;
    }
    let now = STEPS.len().max(had);
    connection.run(&one(&format!("UPDATE plimsoll_state SET version = {now}"))).map(drop)
}
