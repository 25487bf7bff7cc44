//! A directory in a PostgreSQL database.
//!
//! Other processes may use it, too. Each change is one batch: one exchange, and one transaction. A batch
//! that concerns an account locks its row first, so that later statements see the changes of others to
//! it. Locks are taken in the order accounts, sessions, shares, links, locks, state, to prevent deadlocks.
//! Invariants: a call that has succeeded is committed. A call that failed has changed nothing, unless the
//! response to the commit was lost.

mod address;
mod connection;
mod guarded;
mod rows;
mod schema;
mod server_info;
mod stored_rows;
mod tls;

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
use crate::limits::{DATABASE_CONNECT_TIME, DATABASE_TIME, NETWORK_AGE_MAX};
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use address::DatabaseAddress;
use connection::Value::{Bool, Bytes, Int, Text};
use connection::{Answered, Connection, Statement, Value};
use plimsoll_rpc::time::{Millis, millis};
use rows::{ACCOUNT_COLUMNS, SHARE};
use stored_rows::{link_values, lock_values};

pub use server_info::PostgresInfo;

/// A database, and a connection to it.
pub struct PostgresDirectory {
    database: Database<Connection>,
    counter: Arc<ChangeCounter>,
}

impl DatabaseConnection for Connection {
    type Address = DatabaseAddress;

    fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        Connection::open(address, by)
    }

    fn set_deadline(&mut self, by: Deadline) {
        self.set_deadline(by);
    }

    fn check(&mut self, _: &DatabaseAddress) -> Result<(), DirectoryError> {
        schema::poll(self).map(drop)
    }

    fn is_open(&mut self) -> bool {
        self.is_open()
    }
}

fn number(value: i64) -> Value<'static> {
    Int(Some(value))
}

fn time(millis: Millis) -> Value<'static> {
    number(signed(millis))
}

fn bytes(value: &[u8]) -> Value<'_> {
    Bytes(Some(value))
}

/// Locks the row of an account, so that later statements see the changes of others to it.
const LOCK: &str = "SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE";

/// Adds to a statement that it increments the change counter if it changed a row. Returns a row for each
/// row changed: its `RETURNING` columns, and the counter.
fn counted(change: &str) -> String {
    counted_with("", change)
}

/// The same after other parts of the statement, each of which ends with a comma.
fn counted_with(parts: &str, change: &str) -> String {
    format!(
        "WITH {parts} done AS ({change}), raised AS (
            UPDATE state SET changes = changes + 1 WHERE EXISTS (SELECT FROM done) RETURNING changes
        ) SELECT done.*, raised.changes FROM done CROSS JOIN raised"
    )
}

fn accounts_where(condition: &str) -> String {
    format!("SELECT {ACCOUNT_COLUMNS} FROM accounts a WHERE {condition}")
}

fn shares_where(condition: &str) -> String {
    format!(
        "SELECT {SHARE} FROM shares s JOIN accounts o ON o.id = s.owner JOIN accounts h ON h.id = s.holder
        WHERE (s.expires IS NULL OR s.expires > $1) AND {condition}"
    )
}

/// Deletes shares in the order of their ids: concurrent deletions cannot deadlock.
fn end_shares_where(condition: &str) -> String {
    end_where("shares", condition)
}

/// The same for rows of a table.
fn end_where(table: &str, condition: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {condition} ORDER BY id FOR UPDATE)"
    )
}

fn links_where(condition: &str) -> String {
    format!("SELECT {} FROM links WHERE {condition}", Table::Links.columns())
}

/// Deletes expired rows, except those that others have locked: neither side waits.
fn forget_ended(table: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE id IN (
            SELECT id FROM {table} WHERE expires <= $1 FOR UPDATE SKIP LOCKED
        )"
    )
}

/// Finds the first share of an owner (`$2`) and a holder (`$3`) at or after a path (`$4`): one step in
/// the index.
fn first_share() -> String {
    let order = "substring(s.path from 1 for 1024)";
    shares_where(&format!(
        "s.owner = $2 AND s.holder = $3 AND {order} >= substring($4 from 1 for 1024) AND s.path >= $4
        ORDER BY {order}, s.path LIMIT 1"
    ))
}

impl PostgresDirectory {
    /// Opens the database that `url` names, and creates its tables if there are none:
    /// `postgres://USER@HOST/DB` or `postgres://USER@/DB?host=/FOLDER`. This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid. [`NotOpened::Store`] with the error of the server, or if
    /// a newer plimsoll has created the tables.
    pub fn open(url: &str) -> Result<PostgresDirectory, NotOpened> {
        PostgresDirectory::open_for(url, Opening::Serve)
    }

    pub(in crate::directory) fn open_for(
        url: &str,
        opening: Opening,
    ) -> Result<PostgresDirectory, NotOpened> {
        let address = DatabaseAddress::parse(url)?;
        let mut connection = Connection::open(&address, Deadline::after(DATABASE_CONNECT_TIME))?;
        connection.set_deadline(Deadline::after(DATABASE_TIME));
        if opening != Opening::Inspect {
            bring_up_to_date(&mut connection)?;
        }
        let count = if opening == Opening::Serve { schema::poll(&mut connection)? } else { 0 };
        Ok(PostgresDirectory {
            database: Database::new(address, connection, opening),
            counter: Arc::new(ChangeCounter::new(count)),
        })
    }

    fn run(&mut self, batch: &[Statement<'_>]) -> Result<Vec<Answered>, DirectoryError> {
        self.database.call(|connection| connection.transact(batch))
    }

    /// Runs a statement that changes nothing.
    fn read(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Answered, DirectoryError> {
        self.database.call(|connection| connection.read((sql, values)))
    }

    /// Runs a batch, and returns the result of its last statement.
    fn last(&mut self, batch: &[Statement<'_>]) -> Result<Answered, DirectoryError> {
        Ok(self.run(batch)?.pop().unwrap_or_default())
    }

    /// Runs a batch whose last statement is [`counted`]. Returns the rows that it changed.
    fn change_counted(&mut self, batch: &[Statement<'_>]) -> Result<Answered, DirectoryError> {
        let answered = self.last(batch)?;
        if let Some(row) = answered.rows.first() {
            self.counter.note_own_change(row.last_int()?);
        }
        Ok(answered)
    }

    fn account_where(
        &mut self,
        condition: &str,
        value: Value<'_>,
    ) -> Result<Option<AccountRow>, DirectoryError> {
        let answered = self.read(&accounts_where(condition), &[value])?;
        answered.rows.first().map(rows::account_row).transpose()
    }
}

impl Directory for PostgresDirectory {
    fn another(&self) -> Option<Box<dyn Directory>> {
        Some(Box::new(PostgresDirectory {
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
        self.run(&[("UPDATE state SET probed = $1", &[time(now)])]).map(drop)
    }

    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError> {
        let [sessions, shares, links, locks] = ["sessions", "shares", "links", "locks"].map(forget_ended);
        let networks = "DELETE FROM networks WHERE (account, network) IN (
            SELECT account, network FROM networks WHERE seen <= $1 FOR UPDATE SKIP LOCKED
        )";
        let oldest = time(now.saturating_sub(millis(NETWORK_AGE_MAX)));
        let now = [time(now)];
        let batch: [Statement<'_>; 5] =
            [(&sessions, &now), (&shares, &now), (&links, &now), (&locks, &now), (networks, &[oldest])];
        self.run(&batch).map(drop)
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        let sql = format!(
            "INSERT INTO accounts AS a
            (id, name, hash, version, quota_bytes, quota_files, permissions, enabled, created)
            OVERRIDING SYSTEM VALUE
            VALUES ($8, $1, $2, 1, $3, $4, $5, $6, $7)
            ON CONFLICT (name) DO NOTHING RETURNING {ACCOUNT_COLUMNS}"
        );
        let values = [
            Text(&new.name),
            Text(&new.hash),
            Int(new.quota.bytes.map(signed)),
            Int(new.quota.files.map(signed)),
            number(permission_bits(new.permissions)),
            Bool(new.enabled),
            time(new.created),
            number(new.id),
        ];
        self.last(&[(&sql, &values)])?.rows.first().map(rows::account).transpose()
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        let answered = self.read(&accounts_where("true ORDER BY a.name"), &[])?;
        answered.rows.iter().map(rows::account_row).collect()
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        self.account_where("a.name = $1", Text(name))
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        self.account_where("a.id = $1", number(id))
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        let (set, values) = match change {
            Change::Quota(quota) => (
                "quota_bytes = $2, quota_files = $3",
                vec![number(id), Int(quota.bytes.map(signed)), Int(quota.files.map(signed))],
            ),
            Change::Permissions(permissions) => {
                ("permissions = $2", vec![number(id), number(permission_bits(permissions))])
            }
            Change::Enabled(enabled) => ("enabled = $2", vec![number(id), Bool(enabled)]),
        };
        let sql =
            counted(&format!("UPDATE accounts a SET {set} WHERE a.id = $1 RETURNING {ACCOUNT_COLUMNS}"));
        let is_off = matches!(change, Change::Enabled(false));
        let batch: [Statement<'_>; 3] = [
            (LOCK, &[number(id)]),
            ("DELETE FROM sessions WHERE account = $1 AND $2", &[number(id), Bool(is_off)]),
            (&sql, &values),
        ];
        self.change_counted(&batch)?.rows.first().map(rows::account).transpose()
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        let id = [number(id)];
        let shares = end_shares_where("owner = $1 OR holder = $1");
        let links = end_where("links", "owner = $1");
        let locks = end_where("locks", "owner = $1 OR holder = $1");
        let batch: [Statement<'_>; 6] = [
            ("SELECT FROM accounts WHERE id = $1 FOR UPDATE", &id),
            ("DELETE FROM sessions WHERE account = $1", &id),
            (&shares, &id),
            (&links, &id),
            (&locks, &id),
            (&counted("DELETE FROM accounts WHERE id = $1 RETURNING id"), &id),
        ];
        Ok(self.change_counted(&batch)?.count > 0)
    }

    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        let (id, version) = (number(id), number(version));
        let but = Bytes(but.as_ref().map(|session| session.0.as_slice()));
        let set = counted(
            "UPDATE accounts SET hash = $3, version = version + 1
            WHERE id = $1 AND version = $2 RETURNING id",
        );
        let batch: [Statement<'_>; 3] = [
            (LOCK, &[id]),
            (
                "DELETE FROM sessions WHERE id IS DISTINCT FROM $3
                AND account = (SELECT id FROM accounts WHERE id = $1 AND version = $2)",
                &[id, version, but],
            ),
            (&set, &[id, version, Text(hash)]),
        ];
        Ok(self.change_counted(&batch)?.count > 0)
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        let sql = "UPDATE accounts SET hash = $3 WHERE id = $1 AND version = $2";
        self.run(&[(sql, &[number(id), number(version), Text(hash)])]).map(drop)
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        let account = number(new.account);
        let beyond = counted(
            "DELETE FROM sessions WHERE id IN (
                SELECT id FROM sessions WHERE account = $1 ORDER BY created DESC, id DESC OFFSET $2
            ) RETURNING id",
        );
        let batch: [Statement<'_>; 3] = [
            (LOCK, &[account]),
            (
                "INSERT INTO sessions (id, account, created, expires)
                SELECT $1, id, $4, $5 FROM accounts WHERE id = $2 AND version = $3 AND enabled",
                &[bytes(&new.id.0), account, number(new.version), time(new.created), time(new.expires)],
            ),
            (&beyond, &[account, number(signed(max as u64))]),
        ];
        let mut answered = self.run(&batch)?;
        let ended = answered.pop().unwrap_or_default().rows;
        if let Some(row) = ended.first() {
            self.counter.note_own_change(row.last_int()?);
        }
        let ended = ended.iter().map(|row| Ok(SessionId(session_number(row.bytes(0)?)?)));
        let ended = ended.collect::<Result<_, DirectoryError>>()?;
        Ok(answered.pop().is_some_and(|added| added.count > 0).then_some(ended))
    }

    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError> {
        let sql = format!(
            "SELECT {ACCOUNT_COLUMNS}, s.expires FROM sessions s JOIN accounts a ON a.id = s.account
            WHERE s.id = $1 AND s.expires > $2 AND a.enabled"
        );
        let answered = self.read(&sql, &[bytes(&id.0), time(now)])?;
        let read = |row| Ok((rows::account(row)?, unsigned(row.last_int()?)));
        answered.rows.first().map(read).transpose()
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        let sql = counted("DELETE FROM sessions WHERE id = $1 RETURNING account");
        Ok(self.change_counted(&[(&sql, &[bytes(&id.0)])])?.count > 0)
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError> {
        let sql = "SELECT seen FROM networks WHERE account = $1 AND network = $2";
        let answered = self.read(sql, &[number(account), bytes(&network.0)])?;
        answered.rows.first().map(|row| row.int(0).map(unsigned)).transpose()
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError> {
        let account = number(account);
        let batch: [Statement<'_>; 3] = [
            (LOCK, &[account]),
            (
                "INSERT INTO networks AS n (account, network, seen)
                SELECT id, $2, $3 FROM accounts WHERE id = $1
                ON CONFLICT (account, network) DO UPDATE SET seen = greatest(n.seen, excluded.seen)",
                &[account, bytes(&network.0), time(seen)],
            ),
            (
                "DELETE FROM networks WHERE account = $1 AND network IN (
                    SELECT network FROM networks WHERE account = $1 ORDER BY seen DESC, network DESC OFFSET $2
                )",
                &[account, number(signed(max as u64))],
            ),
        ];
        self.run(&batch).map(drop)
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        let (owner, holder, path) = (number(new.owner), number(new.with), bytes(&new.path));
        let kept = counted(
            "INSERT INTO shares (id, owner, holder, path, writes, created, expires)
            SELECT $1, o.id, h.id, $4, $5, $6, $7 FROM accounts o, accounts h
            WHERE o.id = $2 AND h.id = $3 AND $8 > (
                SELECT count(*) FROM shares WHERE owner = $2 AND NOT (holder = $3 AND path = $4)
            )
            ON CONFLICT (owner, holder, sha256(path))
            DO UPDATE SET writes = excluded.writes, expires = excluded.expires RETURNING id",
        );
        let (created, expires) = (time(new.created), Int(new.expires.map(signed)));
        let writes = Bool(new.permission == Permission::Write);
        let max = number(signed(max as u64));
        let batch: [Statement<'_>; 3] = [
            ("SELECT FROM accounts WHERE id = $1 OR id = $2 ORDER BY id FOR NO KEY UPDATE", &[owner, holder]),
            (&end_shares_where("owner = $1 AND expires <= $2"), &[owner, created]),
            (&kept, &[Text(&new.id), owner, holder, path, writes, created, expires, max]),
        ];
        let answered = self.change_counted(&batch)?;
        let Some(id) = answered.rows.first().map(|row| row.text(0)).transpose()? else { return Ok(None) };
        let sql = shares_where("s.id = $2");
        self.read(&sql, &[created, Text(id)])?.rows.first().map(rows::share).transpose()
    }

    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError> {
        let (condition, id) = match given {
            ShareSelection::By(owner) => ("s.owner = $2", owner),
            ShareSelection::With(holder) => ("s.holder = $2 AND o.enabled", holder),
        };
        let sql = format!("{} ORDER BY o.name, s.path, h.name", shares_where(condition));
        self.read(&sql, &[time(now), number(id)])?.rows.iter().map(rows::share).collect()
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError> {
        let sql = first_share();
        self.database.call(|connection| {
            effective_shares(path, |from| {
                let values = [time(now), number(owner), number(with), bytes(from)];
                let answered = connection.read((&sql, &values))?;
                answered.rows.first().map(rows::share).transpose()
            })
        })
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let sql = counted("DELETE FROM shares WHERE owner = $1 AND id = $2 RETURNING id");
        Ok(self.change_counted(&[(&sql, &[number(owner), Text(id)])])?.count > 0)
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        let below = [path, b"/"].concat();
        let condition =
            "owner = $1 AND (length($2) = 0 OR path = $2 OR substring(path from 1 for length($3)) = $3)";
        let parts = format!(
            "shares_ended AS ({} RETURNING id), links_ended AS ({} RETURNING id),",
            end_where("shares", condition),
            end_where("links", condition),
        );
        let all = "SELECT id FROM shares_ended UNION ALL SELECT id FROM links_ended";
        let sql = counted_with(&parts, all);
        Ok(self.change_counted(&[(&sql, &[number(owner), bytes(path), bytes(&below)])])?.count > 0)
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        let owner = number(new.owner);
        let sql = format!(
            "INSERT INTO links ({}) SELECT $1, id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM accounts
            WHERE id = $2 AND $13 > (SELECT count(*) FROM links WHERE owner = $2)",
            Table::Links.columns()
        );
        let mut values = link_values(new);
        values.push(number(signed(max as u64)));
        let ended = end_where("links", "owner = $1 AND expires <= $2");
        let batch: [Statement<'_>; 3] =
            [(LOCK, &[owner]), (&ended, &[owner, number(new.created)]), (&sql, &values)];
        Ok(self.last(&batch)?.count > 0)
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        self.read(&links_where("owner = $1"), &[number(owner)])?.rows.iter().map(stored_rows::link).collect()
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        self.read(&links_where("id = $1"), &[Text(id)])?.rows.first().map(stored_rows::link).transpose()
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError> {
        let sql = "UPDATE links SET uses = uses + 1, bytes = bytes + $2
            WHERE id = $1 AND (uses_max IS NULL OR uses < uses_max)
            AND (bytes_max IS NULL OR bytes <= bytes_max - $2) AND (expires IS NULL OR expires > $3)";
        let values = [Text(id), number(signed(bytes)), time(now)];
        Ok(self.last(&[(sql, &values)])?.count > 0)
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let sql = counted("DELETE FROM links WHERE owner = $1 AND id = $2 RETURNING id");
        Ok(self.change_counted(&[(&sql, &[number(owner), Text(id)])])?.count > 0)
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        let sql = counted(&format!(
            "INSERT INTO locks ({}) SELECT $1, o.id, h.id, $4, $5, $6, $7, $8, $9 FROM accounts o, accounts h
            WHERE o.id = $2 AND h.id = $3
            AND $10 > (SELECT count(*) FROM locks WHERE owner = $2 AND holder = $3)
            AND (o.id = h.id OR $11 > (SELECT count(*) FROM locks WHERE owner = $2 AND holder <> $2))
            AND (SELECT count(*) < $12 AND count(*) FILTER (WHERE NOT (shared AND $5)) = 0
                FROM locks WHERE owner = $2 AND (
                path = $4
                OR (deep AND (length(path) = 0 OR (substring($4 from 1 for length(path)) = path
                    AND substring($4 from length(path) + 1 for 1) = '\\x2f'::bytea)))
                OR ($6 AND (length($4) = 0 OR (substring(path from 1 for length($4)) = $4
                    AND substring(path from length($4) + 1 for 1) = '\\x2f'::bytea)))
            )) RETURNING id",
            Table::Locks.columns()
        ));
        let mut values = lock_values(new);
        let bounds = [bounds.holder, bounds.others, bounds.meeting];
        values.extend(bounds.map(|bound| number(signed(bound as u64))));
        let accounts = [number(new.owner), number(new.holder)];
        let ended = end_where("locks", "owner = $1 AND expires <= $2");
        let batch: [Statement<'_>; 3] = [
            ("SELECT FROM accounts WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE", &accounts),
            (&ended, &[number(new.owner), number(new.created)]),
            (&sql, &values),
        ];
        Ok(self.change_counted(&batch)?.count > 0)
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        let sql = format!("SELECT {} FROM locks WHERE owner = $1", Table::Locks.columns());
        self.read(&sql, &[number(owner)])?.rows.iter().map(stored_rows::lock).collect()
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        let sql = format!("SELECT {} FROM locks WHERE owner = $1 AND id = $2", Table::Locks.columns());
        self.read(&sql, &[number(owner), Text(id)])?.rows.first().map(stored_rows::lock).transpose()
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError> {
        let sql = counted("UPDATE locks SET expires = $3 WHERE owner = $1 AND id = $2 RETURNING id");
        Ok(self.change_counted(&[(&sql, &[number(owner), Text(id), time(expires)])])?.count > 0)
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        let all: Vec<String> = (2..ids.len() + 2).map(|at| format!("${at}")).collect();
        if all.is_empty() {
            return Ok(false);
        }
        let condition = format!("owner = $1 AND id IN ({})", all.join(", "));
        let sql = counted(&format!("{} RETURNING id", end_where("locks", &condition)));
        let values: Vec<Value<'_>> =
            [number(owner)].into_iter().chain(ids.iter().map(|id| Text(id))).collect();
        Ok(self.change_counted(&[(&sql, &values)])?.count > 0)
    }
}

fn session_number(bytes: Vec<u8>) -> Result<[u8; 32], DirectoryError> {
    bytes.try_into().map_err(|_| connection::broken("it holds a session that is none"))
}
