//! The tables in SQLite, as a list of migrations.
//!
//! A released migration is never changed; changes are new migrations. Invariants: a file's `user_version`
//! is the number of migrations applied. A file that has had more than this program knows is not changed.

use rusqlite::{Connection, TransactionBehavior};

use super::failed;
use crate::directory::DirectoryError;
use crate::directory::values::signed;

/// Times are milliseconds since 1970. `version` counts the passwords an account has had. `permissions` are
/// the bits of `values.rs`. A session's id is a hash, a path is bytes. `networks` has keyed hashes of
/// networks that accounts logged in from.
const STEPS: [&str; 2] = [
    "
    CREATE TABLE accounts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        hash TEXT NOT NULL,
        version INTEGER NOT NULL,
        quota_bytes INTEGER,
        quota_files INTEGER,
        permissions INTEGER NOT NULL,
        enabled INTEGER NOT NULL,
        created INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
        id BLOB NOT NULL PRIMARY KEY,
        account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_age ON sessions (account, created, id);
    CREATE INDEX sessions_by_end ON sessions (expires);
    CREATE TABLE shares (
        id TEXT NOT NULL PRIMARY KEY,
        owner INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        holder INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        path BLOB NOT NULL,
        permission INTEGER NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        UNIQUE (owner, holder, path)
    ) STRICT;
    CREATE INDEX shares_by_holder ON shares (holder);
",
    "
    CREATE TABLE networks (
        account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        network BLOB NOT NULL,
        seen INTEGER NOT NULL,
        PRIMARY KEY (account, network)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX networks_by_age ON networks (seen);
",
];

/// Applies the missing migrations. Two processes that open the file at once apply them one after the
/// other.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), DirectoryError> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let had: i64 = step.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let Some(left) = usize::try_from(had).ok().and_then(|had| STEPS.get(had..)) else {
        let known = STEPS.len();
        return Err(DirectoryError::Failed(format!(
            "a newer plimsoll made the directory (version {had}, this one knows {known}): start that one"
        )));
    };
    if left.is_empty() {
        return Ok(());
    }
    for sql in left {
        step.execute_batch(sql).map_err(failed)?;
    }
    step.pragma_update(None, "user_version", signed(STEPS.len() as u64)).map_err(failed)?;
    step.commit().map_err(failed)
}
