//! A directory in a SQLite file: the default.
//!
//! Other processes may have it open, too. Invariants: a change is on disk before its call returns (WAL,
//! `synchronous = FULL`). A file created here is readable by its owner only. A log-out needs no free disk
//! space.

mod copying;
mod revoked;
mod rows;
mod schema;
mod stored_locks;
mod stored_rows;

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Params, Row, Transaction, TransactionBehavior,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::effective_shares::effective_shares;
use super::migrations::{bring_up_to_date, schema};
use super::open::Opening;
use super::transfer::Table;
use super::values::{permission_bits, signed, unsigned};
use super::{
    AccountRow, Directory, DirectoryError, GivenShare, LockBounds, NewAccount, NewSession, ShareSelection,
    StoredLink, StoredLock,
};
use crate::account::{Account, Change};
use crate::limits::{DIRECTORY_BUSY_TIME, NETWORK_AGE_MAX, OPEN_TRIES_MAX, STATEMENTS_KEPT};
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
pub use copying::{CopiedDirectory, copy_file, end_all_links, end_all_sessions};
use plimsoll_rpc::time::{Millis, millis};
use revoked::{Revoked, probe};
use rows::{ACCOUNT_COLUMNS, SHARE};
use stored_rows::{insert_link, select};

/// A connection to the file.
pub struct SqliteDirectory {
    connection: Connection,
    path: PathBuf,
    revoked: Revoked,
    /// Whether a closed directory is refused.
    is_server: bool,
    /// SQLite's counter of changes by other connections.
    data_version: i64,
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn failed(error: rusqlite::Error) -> DirectoryError {
    let text = format!("SQLite: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DirectoryError::Full(text),
        _ => DirectoryError::Failed(text),
    }
}

impl SqliteDirectory {
    /// Opens the file at `path`, or creates it; its folder must exist. This blocks.
    ///
    /// # Errors
    /// The error of the kernel or of SQLite, or that a newer plimsoll has created the file.
    pub fn open(path: &Path) -> Result<SqliteDirectory, DirectoryError> {
        SqliteDirectory::open_for(path, Opening::Serve)
    }

    pub(in crate::directory) fn open_for(
        path: &Path,
        opening: Opening,
    ) -> Result<SqliteDirectory, DirectoryError> {
        let at = |failure: DirectoryError| DirectoryError::Failed(format!("{}: {failure}", path.display()));
        if opening != Opening::Inspect {
            make_private(path).map_err(at)?;
        }
        Self::connect(path, opening).map_err(at)
    }

    fn connect(path: &Path, opening: Opening) -> Result<SqliteDirectory, DirectoryError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(DIRECTORY_BUSY_TIME).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        if opening != Opening::Inspect {
            set_up(&mut connection)?;
        }
        let revoked = match opening {
            Opening::Inspect => Revoked::recorded(path),
            Opening::Serve | Opening::Transfer => Revoked::open(path),
        };
        let (path, is_server) = (path.to_owned(), opening == Opening::Serve);
        let mut directory = SqliteDirectory { connection, path, revoked, is_server, data_version: 0 };
        if is_server {
            directory.has_foreign_changes()?;
        }
        Ok(directory)
    }

    /// Deletes the rows of sessions that were revoked while the disk was full. Retried later if it fails.
    fn delete_revoked(&mut self) {
        let all = self.revoked.all();
        let gone = all.iter().map(|session| {
            run(&self.connection, "DELETE FROM sessions WHERE id = ?1", [session.0]).map(|_| *session)
        });
        let gone: Vec<_> = gone.map_while(Result::ok).collect();
        if !gone.is_empty() {
            self.revoked.remove(&gone);
        }
    }

    fn is_session(&self, id: SessionId) -> Result<bool, DirectoryError> {
        let found = one(&self.connection, "SELECT 1 FROM sessions WHERE id = ?1", [id.0], |_| Ok(()))?;
        Ok(found.is_some() && !self.revoked.contains(id))
    }

    /// Begins to write. A directory that is closed meanwhile is refused: a move has read its rows.
    fn begin(&mut self) -> Result<Transaction<'_>, DirectoryError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        if self.is_server {
            schema::check_open(&transaction)?;
        }
        Ok(transaction)
    }

    /// Executes one statement that changes rows. Returns their number.
    fn change_rows(&mut self, sql: &str, params: impl Params) -> Result<usize, DirectoryError> {
        let transaction = self.begin()?;
        let changed = run(&transaction, sql, params)?;
        transaction.commit().map_err(failed)?;
        Ok(changed)
    }
}

/// Creates the file with its own mode, before SQLite would with that of the process. Never opens an
/// existing file: closing it would release the locks that this process has on it.
fn make_private(path: &Path) -> Result<(), DirectoryError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(DirectoryError::Failed(format!("cannot be made: {error}"))),
    }
}

/// Creates the tables, and switches the file to WAL. SQLite waits for another process that writes, but not
/// for one that switches the file at this moment. Then a transaction waits, and the switch is repeated.
fn set_up(connection: &mut Connection) -> Result<(), DirectoryError> {
    bring_up_to_date(connection)?;
    for _ in 1..OPEN_TRIES_MAX {
        match switch_to_wal(connection) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                drop(connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?);
            }
            turned => return turned.map_err(failed),
        }
    }
    switch_to_wal(connection).map_err(failed)
}

fn switch_to_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
}

fn run(connection: &Connection, sql: &str, params: impl Params) -> Result<usize, DirectoryError> {
    connection.prepare_cached(sql).and_then(|mut prepared| prepared.execute(params)).map_err(failed)
}

fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, DirectoryError> {
    let mut prepared = connection.prepare_cached(sql).map_err(failed)?;
    prepared.query_row(params, read).optional().map_err(failed)
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, DirectoryError> {
    let mut prepared = connection.prepare_cached(sql).map_err(failed)?;
    let rows = prepared.query_map(params, read).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

fn account_where(
    connection: &Connection,
    condition: &str,
    value: impl Params,
) -> Result<Option<AccountRow>, DirectoryError> {
    one(
        connection,
        &format!("SELECT {ACCOUNT_COLUMNS} FROM accounts a WHERE {condition} = ?1"),
        value,
        rows::account_row,
    )
}

fn share_where(condition: &str) -> String {
    format!(
        "SELECT {SHARE} FROM shares s JOIN accounts o ON o.id = s.owner JOIN accounts h ON h.id = s.holder
        WHERE (s.expires IS NULL OR s.expires > ?1) AND {condition}"
    )
}

fn all_shares_where(condition: &str) -> String {
    format!("{} ORDER BY o.name, s.path, h.name", share_where(condition))
}

/// Finds the first share of an owner (`?2`) and a holder (`?3`) at or after a path (`?4`): one step in
/// the index.
fn first_share() -> String {
    format!("{} ORDER BY s.path LIMIT 1", share_where("s.owner = ?2 AND s.holder = ?3 AND s.path >= ?4"))
}

impl Directory for SqliteDirectory {
    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError> {
        let has_revoked = self.revoked.refresh();
        self.delete_revoked();
        let version = one(&self.connection, "PRAGMA data_version", (), |row| row.get(0))?.unwrap_or(0);
        if version != self.data_version {
            // The change may be a migration by another program, or that the directory was closed.
            schema(&mut self.connection)?.check()?;
        }
        Ok(std::mem::replace(&mut self.data_version, version) != version || has_revoked)
    }

    fn check_writable(&mut self, _: Millis) -> Result<(), DirectoryError> {
        // Without a commit: other processes would have to read it as a change.
        drop(self.begin()?);
        probe(&self.path).map_err(|error| {
            let text = format!("{}: {error}", self.path.display());
            let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if is_full { DirectoryError::Full(text) } else { DirectoryError::Failed(text) }
        })
    }

    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError> {
        self.revoked.allocate();
        let oldest = now.saturating_sub(millis(NETWORK_AGE_MAX));
        let transaction = self.begin()?;
        run(&transaction, "DELETE FROM networks WHERE seen <= ?1", [signed(oldest)])?;
        run(&transaction, "DELETE FROM sessions WHERE expires <= ?1", [signed(now)])?;
        run(&transaction, "DELETE FROM shares WHERE expires <= ?1", [signed(now)])?;
        run(&transaction, "DELETE FROM links WHERE expires <= ?1", [signed(now)])?;
        run(&transaction, "DELETE FROM locks WHERE expires <= ?1", [signed(now)])?;
        transaction.commit().map_err(failed)
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        let transaction = self.begin()?;
        let added = run(
            &transaction,
            "INSERT INTO accounts
            (id, name, hash, version, quota_bytes, quota_files, permissions, enabled, created)
            VALUES (?8, ?1, ?2, 1, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO NOTHING",
            (
                &new.name,
                &new.hash,
                new.quota.bytes.map(signed),
                new.quota.files.map(signed),
                permission_bits(new.permissions),
                new.enabled,
                signed(new.created),
                new.id,
            ),
        )?;
        let row = if added == 0 { None } else { account_where(&transaction, "a.name", [&new.name])? };
        transaction.commit().map_err(failed)?;
        Ok(row.map(|row| row.account))
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        let sql = format!("SELECT {ACCOUNT_COLUMNS} FROM accounts a ORDER BY a.name");
        all(&self.connection, &sql, (), rows::account_row)
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        account_where(&self.connection, "a.name", [name])
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        account_where(&self.connection, "a.id", [id])
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        let transaction = self.begin()?;
        match change {
            Change::Quota(quota) => run(
                &transaction,
                "UPDATE accounts SET quota_bytes = ?2, quota_files = ?3 WHERE id = ?1",
                (id, quota.bytes.map(signed), quota.files.map(signed)),
            )?,
            Change::Permissions(permissions) => run(
                &transaction,
                "UPDATE accounts SET permissions = ?2 WHERE id = ?1",
                (id, permission_bits(permissions)),
            )?,
            Change::Enabled(enabled) => {
                run(&transaction, "UPDATE accounts SET enabled = ?2 WHERE id = ?1", (id, enabled))?
            }
        };
        run(
            &transaction,
            "DELETE FROM sessions WHERE account = (SELECT id FROM accounts WHERE id = ?1 AND NOT enabled)",
            [id],
        )?;
        let row = account_where(&transaction, "a.id", [id])?;
        transaction.commit().map_err(failed)?;
        Ok(row.map(|row| row.account))
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        Ok(self.change_rows("DELETE FROM accounts WHERE id = ?1", [id])? > 0)
    }

    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        let transaction = self.begin()?;
        let set = run(
            &transaction,
            "UPDATE accounts SET hash = ?3, version = version + 1 WHERE id = ?1 AND version = ?2",
            (id, version, hash),
        )?;
        if set > 0 {
            let but = but.map(|session| session.0);
            run(&transaction, "DELETE FROM sessions WHERE account = ?1 AND id IS NOT ?2", (id, but))?;
        }
        transaction.commit().map_err(failed)?;
        Ok(set > 0)
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        let sql = "UPDATE accounts SET hash = ?3 WHERE id = ?1 AND version = ?2";
        run(&self.connection, sql, (id, version, hash)).map(drop)
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        let transaction = self.begin()?;
        let added = run(
            &transaction,
            "INSERT INTO sessions (id, account, created, expires)
            SELECT ?1, id, ?4, ?5 FROM accounts WHERE id = ?2 AND version = ?3 AND enabled",
            (new.id.0, new.account, new.version, signed(new.created), signed(new.expires)),
        )?;
        let ended = all(
            &transaction,
            "DELETE FROM sessions WHERE id IN (
                SELECT id FROM sessions WHERE account = ?1
                ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?2
            ) RETURNING id",
            (new.account, signed(max as u64)),
            |row| row.get(0).map(SessionId),
        )?;
        transaction.commit().map_err(failed)?;
        Ok((added > 0).then_some(ended))
    }

    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError> {
        if self.revoked.contains(id) {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {ACCOUNT_COLUMNS}, s.expires FROM sessions s JOIN accounts a ON a.id = s.account
            WHERE s.id = ?1 AND s.expires > ?2 AND a.enabled"
        );
        let read = |row: &Row<'_>| Ok((rows::account(row)?, unsigned(row.get("expires")?)));
        one(&self.connection, &sql, (id.0, signed(now)), read)
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        if !self.is_session(id)? {
            return Ok(false);
        }
        // Without a transaction, which could need room on a full disk.
        schema::check_open(&self.connection)?;
        match run(&self.connection, "DELETE FROM sessions WHERE id = ?1", [id.0]) {
            Ok(deleted) => Ok(deleted > 0),
            // Most likely the disk is full. The row is deleted when there is space again.
            Err(failure) => match self.revoked.add(id) {
                Ok(()) => {
                    tracing::warn!(
                        trouble = %failure,
                        "the disk is full: a logout is recorded in reserved space"
                    );
                    Ok(true)
                }
                Err(error) => {
                    tracing::error!(%error, "a logout could not be recorded in reserved space");
                    Err(failure)
                }
            },
        }
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError> {
        let sql = "SELECT seen FROM networks WHERE account = ?1 AND network = ?2";
        one(&self.connection, sql, (account, network.0), |row| row.get(0).map(unsigned))
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError> {
        let transaction = self.begin()?;
        run(
            &transaction,
            "INSERT INTO networks (account, network, seen) SELECT id, ?2, ?3 FROM accounts WHERE id = ?1
            ON CONFLICT (account, network) DO UPDATE SET seen = max(seen, excluded.seen)",
            (account, network.0, signed(seen)),
        )?;
        run(
            &transaction,
            "DELETE FROM networks WHERE account = ?1 AND network IN (
                SELECT network FROM networks WHERE account = ?1
                ORDER BY seen DESC, network DESC LIMIT -1 OFFSET ?2
            )",
            (account, signed(max as u64)),
        )?;
        transaction.commit().map_err(failed)
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        let transaction = self.begin()?;
        let ended = "DELETE FROM shares WHERE owner = ?1 AND expires <= ?2";
        run(&transaction, ended, (new.owner, signed(new.created)))?;
        let others: i64 = one(
            &transaction,
            "SELECT count(*) FROM shares WHERE owner = ?1 AND NOT (holder = ?2 AND path = ?3)",
            (new.owner, new.with, &new.path),
            |row| row.get(0),
        )?
        .unwrap_or(0);
        if others >= signed(max as u64) {
            return Ok(None);
        }
        run(
            &transaction,
            "INSERT INTO shares (id, owner, holder, path, permission, created, expires)
            SELECT ?1, o.id, h.id, ?4, ?5, ?6, ?7 FROM accounts o, accounts h WHERE o.id = ?2 AND h.id = ?3
            ON CONFLICT (owner, holder, path)
            DO UPDATE SET permission = excluded.permission, expires = excluded.expires",
            (
                &new.id,
                new.owner,
                new.with,
                &new.path,
                new.permission == Permission::Write,
                signed(new.created),
                new.expires.map(signed),
            ),
        )?;
        let sql = share_where("s.owner = ?2 AND s.holder = ?3 AND s.path = ?4");
        let at = (signed(new.created), new.owner, new.with, &new.path);
        let share = one(&transaction, &sql, at, rows::share)?;
        transaction.commit().map_err(failed)?;
        Ok(share)
    }

    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError> {
        let (connection, now) = (&self.connection, signed(now));
        match given {
            ShareSelection::By(owner) => {
                all(connection, &all_shares_where("s.owner = ?2"), (now, owner), rows::share)
            }
            ShareSelection::With(holder) => {
                let sql = all_shares_where("s.holder = ?2 AND o.enabled");
                all(connection, &sql, (now, holder), rows::share)
            }
        }
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError> {
        let mut prepared = self.connection.prepare_cached(&first_share()).map_err(failed)?;
        effective_shares(path, |from| {
            prepared.query_row((signed(now), owner, with, from), rows::share).optional().map_err(failed)
        })
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        Ok(self.change_rows("DELETE FROM shares WHERE owner = ?1 AND id = ?2", (owner, id))? > 0)
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        let below = [path, b"/"].concat();
        let transaction = self.begin()?;
        let end = |table: &str| {
            let sql = format!(
                "DELETE FROM {table} WHERE owner = ?1
                AND (length(?2) = 0 OR path = ?2 OR substr(path, 1, length(?3)) = ?3)"
            );
            run(&transaction, &sql, (owner, path, &below))
        };
        let ended = end("shares")? + end("links")?;
        transaction.commit().map_err(failed)?;
        Ok(ended > 0)
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        let transaction = self.begin()?;
        let ended = "DELETE FROM links WHERE owner = ?1 AND expires <= ?2";
        run(&transaction, ended, (new.owner, new.created))?;
        let room = "SELECT 1 FROM accounts WHERE id = ?1
            AND ?2 > (SELECT count(*) FROM links WHERE owner = ?1)";
        let is_added = one(&transaction, room, (new.owner, signed(max as u64)), |_| Ok(()))?.is_some();
        if is_added {
            insert_link(&transaction, new)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(is_added)
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        all(
            &self.connection,
            &format!("{} WHERE owner = ?1", select(Table::Links)),
            [owner],
            stored_rows::link,
        )
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        one(&self.connection, &format!("{} WHERE id = ?1", select(Table::Links)), [id], stored_rows::link)
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError> {
        let sql = "UPDATE links SET uses = uses + 1, bytes = bytes + ?2
            WHERE id = ?1 AND (uses_max IS NULL OR uses < uses_max)
            AND (bytes_max IS NULL OR bytes <= bytes_max - ?2) AND (expires IS NULL OR expires > ?3)";
        Ok(self.change_rows(sql, (id, signed(bytes), signed(now)))? > 0)
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        Ok(self.change_rows("DELETE FROM links WHERE owner = ?1 AND id = ?2", (owner, id))? > 0)
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        let transaction = self.begin()?;
        let is_added = stored_locks::add(&transaction, new, bounds)?;
        transaction.commit().map_err(failed)?;
        Ok(is_added)
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        let sql = format!("{} WHERE owner = ?1", select(Table::Locks));
        all(&self.connection, &sql, [owner], stored_rows::lock)
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        let sql = format!("{} WHERE owner = ?1 AND id = ?2", select(Table::Locks));
        one(&self.connection, &sql, (owner, id), stored_rows::lock)
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError> {
        let sql = "UPDATE locks SET expires = ?3 WHERE owner = ?1 AND id = ?2";
        Ok(self.change_rows(sql, (owner, id, signed(expires)))? > 0)
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        let transaction = self.begin()?;
        let is_any = stored_locks::end(&transaction, owner, ids)?;
        transaction.commit().map_err(failed)?;
        Ok(is_any)
    }
}

#[cfg(test)]
mod tests;
