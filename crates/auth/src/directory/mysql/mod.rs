//! A directory in a MySQL or MariaDB database.
//!
//! Other processes may use it, too. Each change is one exchange and one transaction. A transaction that
//! concerns an account locks its row first, so that later statements see the changes of others to it. A
//! transaction that the server rolls back because of a deadlock is retried. Invariants: a call that has
//! succeeded is committed. A call that failed has changed nothing, unless the response to the commit was
//! lost.

mod address;
mod authentication;
mod connection;
mod packets;
mod rows;
mod schema;
mod server_info;
mod stored_rows;

use std::sync::Arc;

use super::database::change_counter::ChangeCounter;
use super::database::deadline::Deadline;
use super::database::{Database, DatabaseConnection};
use super::effective_shares::effective_shares;
use super::migrations::bring_up_to_date;
use super::open::{NotOpened, Opening};
use super::transfer::Table;
use super::values::{permission_bits, signed, unsigned};
use super::{
    AccountRow, Directory, DirectoryError, DirectoryMeter, GivenShare, LockBounds, NewAccount, NewSession,
    ShareSelection, StoredLink, StoredLock,
};
use crate::account::{Account, Change};
use crate::limits::{DATABASE_CONNECT_TIME, DATABASE_TIME, MYSQL_DEADLOCKS_MAX, NETWORK_AGE_MAX};
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use address::DatabaseAddress;
use connection::{Answered, Connection, MysqlRow};
use plimsoll_rpc::time::{Millis, millis};
use rows::{ACCOUNT_COLUMNS, SHARE, literal, maybe};
use stored_rows::{link_values, lock_values};

pub use server_info::MysqlInfo;

/// A database, and a connection to it.
pub struct MysqlDirectory {
    database: Database<Connection>,
    counter: Arc<ChangeCounter>,
}

impl DatabaseConnection for Connection {
    type Address = DatabaseAddress;

    fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        Connection::open(address, by)
    }

    fn set_deadline(&mut self, by: Deadline) {
        self.socket().set_deadline(by);
    }

    fn check(&mut self, _: &DatabaseAddress) -> Result<(), DirectoryError> {
        schema::poll(self).map(drop)
    }

    fn is_open(&mut self) -> bool {
        self.socket().is_quiet()
    }
}

/// Increments the change counter if the last statement changed a row, and returns it as
/// `LAST_INSERT_ID`.
const RAISE: &str = "UPDATE plimsoll_state SET changes = LAST_INSERT_ID(changes + 1) WHERE ROW_COUNT() > 0";

/// Locks rows of accounts, so that later statements see the changes of others to them.
fn lock(condition: &str) -> String {
    format!("SELECT id FROM plimsoll_accounts WHERE {condition} ORDER BY id FOR UPDATE")
}

fn accounts_where(condition: &str) -> String {
    format!("SELECT {ACCOUNT_COLUMNS} FROM plimsoll_accounts a WHERE {condition}")
}

fn shares_where(now: Millis, condition: &str) -> String {
    format!(
        "SELECT {SHARE} FROM plimsoll_shares s
        JOIN plimsoll_accounts o ON o.id = s.owner JOIN plimsoll_accounts h ON h.id = s.holder
        WHERE (s.expires IS NULL OR s.expires > {}) AND {condition}",
        signed(now)
    )
}

fn links_where(condition: &str) -> String {
    format!("SELECT {} FROM plimsoll_links WHERE {condition}", Table::Links.columns())
}

/// Reads the first row of a result, if there is one.
fn first<T>(
    rows: &[MysqlRow],
    read: impl FnOnce(&MysqlRow) -> Result<T, DirectoryError>,
) -> Result<Option<T>, DirectoryError> {
    rows.first().map(read).transpose()
}

impl MysqlDirectory {
    /// Opens the database that `url` names, and creates its tables if there are none:
    /// `mysql://USER:PASSWORD@HOST:PORT/DATABASE` or `mysql://USER@/DATABASE?socket=/PATH`. This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid. [`NotOpened::Store`] with the error of the server, or
    /// if a newer plimsoll has created the tables.
    pub fn open(url: &str) -> Result<MysqlDirectory, NotOpened> {
        MysqlDirectory::open_for(url, Opening::Serve)
    }

    pub(in crate::directory) fn open_for(url: &str, opening: Opening) -> Result<MysqlDirectory, NotOpened> {
        let address = DatabaseAddress::parse(url)?;
        let mut connection = Connection::open(&address, Deadline::after(DATABASE_CONNECT_TIME))?;
        connection.set_deadline(Deadline::after(DATABASE_TIME));
        if opening != Opening::Inspect {
            bring_up_to_date(&mut connection)?;
        }
        let count = if opening == Opening::Serve { schema::poll(&mut connection)? } else { 0 };
        Ok(MysqlDirectory {
            database: Database::new(address, connection, opening),
            counter: Arc::new(ChangeCounter::new(count)),
        })
    }

    /// Runs one statement that changes nothing, and returns its rows.
    fn rows(&mut self, sql: String) -> Result<Vec<MysqlRow>, DirectoryError> {
        let mut answers = self.database.call(|connection| connection.run(&[sql]))?;
        Ok(answers.pop().unwrap_or_default().rows)
    }

    /// Runs statements in one transaction, and notes each value of the change counter that they set.
    fn change_by(&mut self, batch: &[String]) -> Result<Vec<Answered>, DirectoryError> {
        let mut tries = 0;
        let answers = loop {
            tries += 1;
            match self.database.call(|connection| connection.transaction(batch)) {
                Err(DirectoryError::RolledBack(_)) if tries < MYSQL_DEADLOCKS_MAX => {}
                done => break done?,
            }
        };
        for (sql, answered) in batch.iter().zip(&answers) {
            if sql.starts_with("UPDATE plimsoll_state") && answered.number > 0 {
                self.counter.note_own_change(signed(answered.number));
            }
        }
        Ok(answers)
    }

    /// The same for a batch whose last statement changes rows: appends [`RAISE`]. Returns whether rows
    /// were changed.
    fn change_counted(&mut self, mut batch: Vec<String>) -> Result<bool, DirectoryError> {
        let at = batch.len().saturating_sub(1);
        batch.push(RAISE.to_owned());
        let answers = self.change_by(&batch)?;
        Ok(answers.get(at).is_some_and(|answered| answered.count > 0))
    }
}

impl Directory for MysqlDirectory {
    fn another(&self) -> Option<Box<dyn Directory>> {
        Some(Box::new(MysqlDirectory {
            database: self.database.another(),
            counter: Arc::clone(&self.counter),
        }))
    }

    fn disconnect(&mut self) {
        self.database.disconnect();
    }

    fn count_in(&mut self, meter: &Arc<DirectoryMeter>) {
        self.database.count_in(meter);
    }

    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError> {
        let count = self.database.poll(schema::poll)?;
        let replace_with = self.counter.replace_with(count);
        Ok(self.database.was_lost() || replace_with)
    }

    fn check_writable(&mut self, now: Millis) -> Result<(), DirectoryError> {
        let sql = format!("REPLACE INTO plimsoll_probe VALUES (1, {})", signed(now));
        self.change_by(&[sql]).map(drop)
    }

    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError> {
        let oldest = signed(now.saturating_sub(millis(NETWORK_AGE_MAX)));
        let now = signed(now);
        let sweep = |table: &str| format!("DELETE FROM {table} WHERE expires <= {now}");
        let networks = format!("DELETE FROM plimsoll_networks WHERE seen <= {oldest}");
        let tables = ["plimsoll_sessions", "plimsoll_shares", "plimsoll_links", "plimsoll_locks"];
        let [sessions, shares, links, locks] = tables.map(sweep);
        self.change_by(&[sessions, shares, links, locks, networks]).map(drop)
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        let insert = format!(
            "INSERT INTO plimsoll_accounts
            (id, name, hash, version, quota_bytes, quota_files, permissions, enabled, created)
            VALUES ({}, {}, {}, 1, {}, {}, {}, {}, {}) ON DUPLICATE KEY UPDATE created = created",
            new.id,
            literal(&new.name),
            literal(&new.hash),
            maybe(new.quota.bytes),
            maybe(new.quota.files),
            permission_bits(new.permissions),
            new.enabled,
            signed(new.created),
        );
        let read = accounts_where(&format!("a.name = {}", literal(&new.name)));
        let answers = self.change_by(&[insert, read])?;
        if answers[0].count == 0 { Ok(None) } else { first(&answers[1].rows, rows::account) }
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        self.rows(accounts_where("TRUE ORDER BY a.name"))?.iter().map(rows::account_row).collect()
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        first(&self.rows(accounts_where(&format!("a.name = {}", literal(name))))?, rows::account_row)
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        first(&self.rows(accounts_where(&format!("a.id = {id}")))?, rows::account_row)
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        let set = match change {
            Change::Quota(quota) => {
                format!("quota_bytes = {}, quota_files = {}", maybe(quota.bytes), maybe(quota.files))
            }
            Change::Permissions(permissions) => format!("permissions = {}", permission_bits(permissions)),
            Change::Enabled(enabled) => format!("enabled = {enabled}"),
        };
        let answers = self.change_by(&[
            lock(&format!("id = {id}")),
            format!("UPDATE plimsoll_accounts SET {set} WHERE id = {id}"),
            format!(
                "DELETE FROM plimsoll_sessions WHERE account = {id}
                AND EXISTS (SELECT * FROM plimsoll_accounts WHERE id = {id} AND NOT enabled)"
            ),
            // Also if nothing changes: a caller that sets a value relies on it from now on.
            format!(
                "UPDATE plimsoll_state SET changes = LAST_INSERT_ID(changes + 1)
                WHERE EXISTS (SELECT * FROM plimsoll_accounts WHERE id = {id})"
            ),
            accounts_where(&format!("a.id = {id}")),
        ])?;
        first(&answers[4].rows, rows::account)
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        self.change_counted(vec![
            lock(&format!("id = {id}")),
            format!("DELETE FROM plimsoll_sessions WHERE account = {id}"),
            format!("DELETE FROM plimsoll_shares WHERE owner = {id} OR holder = {id}"),
            format!("DELETE FROM plimsoll_networks WHERE account = {id}"),
            format!("DELETE FROM plimsoll_links WHERE owner = {id}"),
            format!("DELETE FROM plimsoll_locks WHERE owner = {id} OR holder = {id}"),
            format!("DELETE FROM plimsoll_accounts WHERE id = {id}"),
        ])
    }

    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        let but = but.map(|session| format!("AND id <> {}", literal(session.0))).unwrap_or_default();
        self.change_counted(vec![
            lock(&format!("id = {id}")),
            format!(
                "DELETE FROM plimsoll_sessions WHERE account = (
                    SELECT id FROM plimsoll_accounts WHERE id = {id} AND version = {version}
                ) {but}"
            ),
            format!(
                "UPDATE plimsoll_accounts SET hash = {}, version = version + 1
                WHERE id = {id} AND version = {version}",
                literal(hash)
            ),
        ])
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        let hash = literal(hash);
        let sql =
            format!("UPDATE plimsoll_accounts SET hash = {hash} WHERE id = {id} AND version = {version}");
        self.change_by(&[sql]).map(drop)
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        let (account, version) = (new.account, new.version);
        let beyond = format!(
            "SELECT id FROM plimsoll_sessions WHERE account = {account}
            ORDER BY created DESC, id DESC LIMIT {} OFFSET {max}",
            i64::MAX
        );
        let answers = self.change_by(&[
            lock(&format!("id = {account}")),
            format!(
                "INSERT INTO plimsoll_sessions (id, account, created, expires) SELECT {}, id, {}, {}
                FROM plimsoll_accounts WHERE id = {account} AND version = {version} AND enabled",
                literal(new.id.0),
                signed(new.created),
                signed(new.expires)
            ),
            beyond.clone(),
            format!("DELETE FROM plimsoll_sessions WHERE id IN (SELECT id FROM ({beyond}) AS beyond)"),
            RAISE.to_owned(),
        ])?;
        let ended = answers[2].rows.iter().map(rows::session_id).collect::<Result<_, _>>()?;
        Ok((answers[1].count > 0).then_some(ended))
    }

    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError> {
        let found = self.rows(format!(
            "SELECT {ACCOUNT_COLUMNS}, s.expires FROM plimsoll_sessions s
            JOIN plimsoll_accounts a ON a.id = s.account
            WHERE s.id = {} AND s.expires > {} AND a.enabled",
            literal(id.0),
            signed(now)
        ))?;
        first(&found, |row| Ok((rows::account(row)?, unsigned(row.int(9)?))))
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        self.change_counted(vec![format!("DELETE FROM plimsoll_sessions WHERE id = {}", literal(id.0))])
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError> {
        let network = literal(network.0);
        let sql =
            format!("SELECT seen FROM plimsoll_networks WHERE account = {account} AND network = {network}");
        first(&self.rows(sql)?, |row| row.int(0).map(unsigned))
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError> {
        let (network, seen) = (literal(network.0), signed(seen));
        self.change_by(&[
            lock(&format!("id = {account}")),
            format!(
                "INSERT INTO plimsoll_networks (account, network, seen)
                SELECT id, {network}, {seen} FROM plimsoll_accounts WHERE id = {account}
                ON DUPLICATE KEY UPDATE seen = GREATEST(plimsoll_networks.seen, VALUES(seen))"
            ),
            format!(
                "DELETE FROM plimsoll_networks WHERE account = {account} AND network IN (
                    SELECT network FROM (
                        SELECT network FROM plimsoll_networks WHERE account = {account}
                        ORDER BY seen DESC, network DESC LIMIT {} OFFSET {max}
                    ) AS beyond
                )",
                i64::MAX
            ),
        ])
        .map(drop)
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        let (owner, holder, path) = (new.owner, new.with, literal(&new.path));
        let (created, writes) = (signed(new.created), new.permission == Permission::Write);
        let others = format!(
            "SELECT COUNT(*) FROM plimsoll_shares
            WHERE owner = {owner} AND NOT (holder = {holder} AND path = {path})"
        );
        let answers = self.change_by(&[
            lock(&format!("id = {owner} OR id = {holder}")),
            format!("DELETE FROM plimsoll_shares WHERE owner = {owner} AND expires <= {created}"),
            others.clone(),
            format!(
                "INSERT INTO plimsoll_shares
                (id, owner, holder, path, path_hash, writes, created, expires)
                SELECT {}, o.id, h.id, {path}, UNHEX(SHA2({path}, 256)), {writes}, {created}, {}
                FROM plimsoll_accounts o, plimsoll_accounts h
                WHERE o.id = {owner} AND h.id = {holder} AND {max} > ({others})
                ON DUPLICATE KEY UPDATE writes = VALUES(writes), expires = VALUES(expires)",
                literal(&new.id),
                maybe(new.expires)
            ),
            RAISE.to_owned(),
            shares_where(
                new.created,
                &format!("s.owner = {owner} AND s.holder = {holder} AND s.path = {path}"),
            ),
        ])?;
        let others = first(&answers[2].rows, |row| row.int(0))?.unwrap_or(0);
        if others >= signed(max as u64) { Ok(None) } else { first(&answers[5].rows, rows::share) }
    }

    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError> {
        let condition = match given {
            ShareSelection::By(owner) => format!("s.owner = {owner}"),
            ShareSelection::With(holder) => format!("s.holder = {holder} AND o.enabled"),
        };
        let sql = format!("{} ORDER BY o.name, s.path, h.name", shares_where(now, &condition));
        self.rows(sql)?.iter().map(rows::share).collect()
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError> {
        self.database.call(|connection| {
            effective_shares(path, |from| {
                let from = literal(from);
                let condition = format!("s.owner = {owner} AND s.holder = {with} AND s.path >= {from}");
                let sql = format!("{} ORDER BY s.path LIMIT 1", shares_where(now, &condition));
                first(&connection.run(&[sql])?[0].rows, rows::share)
            })
        })
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let id = literal(id);
        self.change_counted(vec![format!("DELETE FROM plimsoll_shares WHERE owner = {owner} AND id = {id}")])
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        let below = [path, b"/"].concat();
        let condition = if path.is_empty() {
            String::new()
        } else {
            format!("AND (path = {} OR LEFT(path, {}) = {})", literal(path), below.len(), literal(&below))
        };
        let end = |table: &str| format!("DELETE FROM {table} WHERE owner = {owner} {condition}");
        let [shares, links] = ["plimsoll_shares", "plimsoll_links"].map(end);
        // The counter is raised by the count of the statement before.
        let answers = self.change_by(&[shares, RAISE.to_owned(), links, RAISE.to_owned()])?;
        Ok(answers[0].count + answers[2].count > 0)
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        let owner = new.owner;
        let answers = self.change_by(&[
            lock(&format!("id = {owner}")),
            format!("DELETE FROM plimsoll_links WHERE owner = {owner} AND expires <= {}", new.created),
            format!(
                "INSERT INTO plimsoll_links ({}) SELECT {} FROM plimsoll_accounts WHERE id = {owner}
                AND {max} > (SELECT COUNT(*) FROM plimsoll_links WHERE owner = {owner})",
                Table::Links.columns(),
                link_values(new)
            ),
        ])?;
        Ok(answers[2].count > 0)
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        self.rows(links_where(&format!("owner = {owner}")))?.iter().map(stored_rows::link).collect()
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        first(&self.rows(links_where(&format!("id = {}", literal(id))))?, stored_rows::link)
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError> {
        let (id, bytes, now) = (literal(id), signed(bytes), signed(now));
        let answers = self.change_by(&[format!(
            "UPDATE plimsoll_links SET uses = uses + 1, bytes = bytes + {bytes}
            WHERE id = {id} AND (uses_max IS NULL OR uses < uses_max)
            AND (bytes_max IS NULL OR bytes <= bytes_max - {bytes}) AND (expires IS NULL OR expires > {now})"
        )])?;
        Ok(answers[0].count > 0)
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let id = literal(id);
        self.change_counted(vec![format!("DELETE FROM plimsoll_links WHERE owner = {owner} AND id = {id}")])
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        let StoredLock { owner, holder, shared, deep, .. } = *new;
        let (path, LockBounds { holder: own, others, meeting }) = (literal(&new.path), bounds);
        self.change_counted(vec![
            lock(&format!("id IN ({owner}, {holder})")),
            format!("DELETE FROM plimsoll_locks WHERE owner = {owner} AND expires <= {}", new.created),
            format!(
                "INSERT INTO plimsoll_locks ({}) SELECT {} FROM plimsoll_accounts o, plimsoll_accounts h
                WHERE o.id = {owner} AND h.id = {holder}
                AND {own} > (SELECT COUNT(*) FROM plimsoll_locks WHERE owner = {owner} AND holder = {holder})
                AND ({owner} = {holder} OR {others} > (
                    SELECT COUNT(*) FROM plimsoll_locks WHERE owner = {owner} AND holder <> {owner}))
                AND (SELECT COUNT(*) < {meeting} AND COALESCE(SUM(NOT (l.shared AND {shared})), 0) = 0
                    FROM plimsoll_locks l WHERE l.owner = {owner} AND (
                        l.path = {path}
                        OR (l.deep AND (LENGTH(l.path) = 0 OR (LEFT({path}, LENGTH(l.path)) = l.path
                            AND SUBSTRING({path}, LENGTH(l.path) + 1, 1) = X'2F')))
                        OR ({deep} AND (LENGTH({path}) = 0 OR (LEFT(l.path, LENGTH({path})) = {path}
                            AND SUBSTRING(l.path, LENGTH({path}) + 1, 1) = X'2F')))
                    ))",
                Table::Locks.columns(),
                lock_values(new)
            ),
        ])
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        let sql = format!("SELECT {} FROM plimsoll_locks WHERE owner = {owner}", Table::Locks.columns());
        self.rows(sql)?.iter().map(stored_rows::lock).collect()
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        let (columns, id) = (Table::Locks.columns(), literal(id));
        let sql = format!("SELECT {columns} FROM plimsoll_locks WHERE owner = {owner} AND id = {id}");
        self.rows(sql)?.first().map(stored_rows::lock).transpose()
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError> {
        // MySQL counts rows that were found, or rows that were changed: an end that is the same is no
        // failure.
        let (id, expires) = (literal(id), signed(expires));
        let is_there = format!("SELECT 1 FROM plimsoll_locks WHERE owner = {owner} AND id = {id} FOR UPDATE");
        let set =
            format!("UPDATE plimsoll_locks SET expires = {expires} WHERE owner = {owner} AND id = {id}");
        let answers = self.change_by(&[is_there, set, RAISE.to_owned()])?;
        Ok(!answers[0].rows.is_empty())
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        if ids.is_empty() {
            return Ok(false);
        }
        let ids = ids.iter().map(literal).collect::<Vec<_>>().join(", ");
        let end = format!("DELETE FROM plimsoll_locks WHERE owner = {owner} AND id IN ({ids})");
        self.change_counted(vec![end])
    }
}
