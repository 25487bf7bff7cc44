//! A directory in a Redis database.
//!
//! Other processes may use it, too. Each step is one run of a script (`directory.lua`), which Redis runs
//! as one transaction. Its durability is that of Redis: docs/databases.md says what each setting can
//! lose. Invariants: a run of the script changes all or nothing. While a server runs, a Redis that has
//! lost its data is not taken for an empty one.

mod address;
mod cluster;
mod connection;
mod route;
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
use connection::{Connection, Reply, strange};
use plimsoll_rpc::time::{Millis, millis};
use plimsoll_wire::hex;
use schema::Upgrade;
use stored_rows::{link_words, lock_words};

pub use server_info::RedisInfo;

/// A database, and a connection to it.
pub struct RedisDirectory {
    database: Database<Connection>,
    counter: Arc<ChangeCounter>,
    /// Whether rows were added, changed or ended while all were last read.
    changed_meanwhile: bool,
}

impl DatabaseConnection for Connection {
    type Address = DatabaseAddress;

    fn open(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
        Connection::open(address, by)
    }

    fn set_deadline(&mut self, by: Deadline) {
        self.set_deadline(by);
    }

    /// The script checks the tables at each call.
    fn check(&mut self, address: &DatabaseAddress) -> Result<(), DirectoryError> {
        route::check(self, address)
    }

    fn is_open(&mut self) -> bool {
        self.is_open()
    }
}

fn text(number: i64) -> String {
    number.to_string()
}

fn time(millis: Millis) -> String {
    text(signed(millis))
}

/// Formats a number; `None` is an empty text.
fn maybe(number: Option<u64>) -> String {
    number.map(|number| text(signed(number))).unwrap_or_default()
}

fn flag(is_so: bool) -> &'static str {
    if is_so { "1" } else { "0" }
}

impl RedisDirectory {
    /// Opens the database that `url` names, and creates the directory if there is none:
    /// `redis://USER:PASSWORD@HOST:PORT/NUMBER`, the same with `rediss`, or `redis+unix:///PATH?db=NUMBER`.
    /// This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid. [`NotOpened::Store`] with the error of the server, or if
    /// a newer plimsoll has created the directory.
    pub fn open(url: &str) -> Result<RedisDirectory, NotOpened> {
        RedisDirectory::open_for(url, Opening::Serve)
    }

    pub(in crate::directory) fn open_for(url: &str, opening: Opening) -> Result<RedisDirectory, NotOpened> {
        let address = DatabaseAddress::parse(url)?;
        let mut connection = Connection::open(&address, Deadline::after(DATABASE_CONNECT_TIME))?;
        connection.set_deadline(Deadline::after(DATABASE_TIME));
        if opening != Opening::Inspect {
            bring_up_to_date(&mut Upgrade::new(&mut connection))?;
        }
        // Refused if the directory is closed.
        let count = if opening == Opening::Serve { connection.ask(&[b"changes"])?.int()? } else { 0 };
        Ok(RedisDirectory {
            database: Database::new(address, connection, opening),
            counter: Arc::new(ChangeCounter::new(count)),
            changed_meanwhile: false,
        })
    }

    /// Runs the script with a command and its arguments; `None` for an empty reply.
    fn ask<W: AsRef<[u8]>>(&mut self, question: &str, words: &[W]) -> Result<Option<Reply>, DirectoryError> {
        let words = [question.as_bytes()].into_iter().chain(words.iter().map(AsRef::as_ref));
        let words: Vec<&[u8]> = words.collect();
        let reply = self.database.call_master(|connection| connection.ask(&words))?;
        Ok(Some(reply).filter(|reply| *reply != Reply::Nothing))
    }

    /// The same for a command whose reply begins with the change counter.
    fn change_counted<W: AsRef<[u8]>>(
        &mut self,
        question: &str,
        words: &[W],
    ) -> Result<Option<Reply>, DirectoryError> {
        let reply = self.ask(question, words)?;
        if let Some(reply) = &reply
            && let count @ 1.. = reply.at(0)?.int()?
        {
            self.counter.note_own_change(count);
        }
        Ok(reply)
    }
}

impl Directory for RedisDirectory {
    fn another(&self) -> Option<Box<dyn Directory>> {
        Some(Box::new(RedisDirectory {
            database: self.database.another(),
            counter: Arc::clone(&self.counter),
            changed_meanwhile: false,
        }))
    }

    fn disconnect(&mut self) {
        self.database.disconnect();
    }

    fn count_in(&mut self, meter: &Arc<DirectoryMeter>) {
        self.database.count_in(meter);
    }

    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError> {
        let count = self.database.call_master(|connection| connection.ask(&[b"changes"])?.int())?;
        let replace_with = self.counter.replace_with(count);
        Ok(self.database.was_lost() || replace_with)
    }

    fn check_writable(&mut self, now: Millis) -> Result<(), DirectoryError> {
        self.ask("check_writable", &[time(now)]).map(drop)
    }

    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError> {
        let oldest = time(now.saturating_sub(millis(NETWORK_AGE_MAX)));
        let now = time(now);
        self.database.call(|connection| {
            while connection.ask(&[b"sweep", now.as_bytes(), oldest.as_bytes()])?.int()? > 0 {}
            Ok(())
        })
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        let words = [
            new.name.clone(),
            new.hash.clone(),
            maybe(new.quota.bytes),
            maybe(new.quota.files),
            text(permission_bits(new.permissions)),
            flag(new.enabled).to_owned(),
            time(new.created),
            text(new.id),
        ];
        self.ask("add_account", &words)?.as_ref().map(rows::account).transpose()
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        let reply = self.ask::<&str>("accounts", &[])?.ok_or_else(strange)?;
        let mut rows = reply.many()?.iter().map(rows::account_row).collect::<Result<Vec<_>, _>>()?;
        rows.sort_by(|one, other| one.account.name.cmp(&other.account.name));
        Ok(rows)
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        self.ask("account", &[name])?.as_ref().map(rows::account_row).transpose()
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        self.ask("account_of", &[text(id)])?.as_ref().map(rows::account_row).transpose()
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        let mut words = vec![text(id)];
        let mut set = |field: &str, value: String| words.extend([field.to_owned(), value]);
        match change {
            Change::Quota(quota) => {
                set("quota_bytes", maybe(quota.bytes));
                set("quota_files", maybe(quota.files));
            }
            Change::Permissions(permissions) => set("permissions", text(permission_bits(permissions))),
            Change::Enabled(enabled) => set("enabled", flag(enabled).to_owned()),
        }
        let changed = self.change_counted("change", &words)?;
        changed.map(|reply| rows::account(reply.at(1)?)).transpose()
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("remove_account", &[text(id)])?.is_some())
    }

    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        let but = but.map(|session| hex::encode(&session.0)).unwrap_or_default();
        let words = [text(id), text(version), hash.to_owned(), but];
        Ok(self.change_counted("set_password", &words)?.is_some())
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        self.ask("set_hash", &[&text(id), &text(version), hash]).map(drop)
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        let words = [
            hex::encode(&new.id.0),
            text(new.account),
            text(new.version),
            time(new.created),
            time(new.expires),
            max.to_string(),
        ];
        let Some(reply) = self.change_counted("add_session", &words)? else { return Ok(None) };
        reply.at(1)?.many()?.iter().map(rows::session_id).collect::<Result<_, _>>().map(Some)
    }

    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError> {
        let reply = self.ask("session", &[hex::encode(&id.0), time(now)])?;
        reply.map(|reply| Ok((rows::account(&reply)?, rows::expires_of_session(&reply)?))).transpose()
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("end_session", &[hex::encode(&id.0)])?.is_some())
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError> {
        let reply = self.ask("network_seen", &[text(account), hex::encode(&network.0)])?;
        reply.map(|reply| reply.int().map(unsigned)).transpose()
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError> {
        let words = [text(account), hex::encode(&network.0), time(seen), max.to_string()];
        self.ask("add_network", &words).map(drop)
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        let (owner, holder) = (text(new.owner), text(new.with));
        let (created, expires) = (time(new.created), maybe(new.expires));
        let (writes, max) = (flag(new.permission == Permission::Write), max.to_string());
        let words: [&[u8]; 8] = [
            new.id.as_bytes(),
            owner.as_bytes(),
            holder.as_bytes(),
            &new.path,
            writes.as_bytes(),
            created.as_bytes(),
            expires.as_bytes(),
            max.as_bytes(),
        ];
        let kept = self.change_counted("add_share", &words)?;
        kept.map(|reply| rows::share(reply.at(1)?)).transpose()
    }

    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError> {
        let (side, id) = match given {
            ShareSelection::By(owner) => ("given", owner),
            ShareSelection::With(holder) => ("held", holder),
        };
        let reply = self.ask("shares", &[side, &text(id), &time(now)])?.ok_or_else(strange)?;
        let mut shares = reply.many()?.iter().map(rows::share).collect::<Result<Vec<_>, _>>()?;
        shares.sort_by(|one, other| {
            (&one.owner, &one.path, &one.with).cmp(&(&other.owner, &other.path, &other.with))
        });
        Ok(shares)
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError> {
        let (owner, with, now) = (text(owner), text(with), time(now));
        self.database.call(|connection| {
            effective_shares(path, |from| {
                let words = [b"first_share", owner.as_bytes(), with.as_bytes(), from, now.as_bytes()];
                match connection.ask(&words)? {
                    Reply::Nothing => Ok(None),
                    reply => rows::share(&reply).map(Some),
                }
            })
        })
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("end_share", &[&text(owner), id])?.is_some())
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("end_shares", &[text(owner).as_bytes(), path])?.is_some())
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        let mut words = link_words(new);
        words.push(max.to_string().into_bytes());
        Ok(self.ask("add_link", &words)?.is_some())
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        let reply = self.ask("links", &[text(owner)])?.ok_or_else(strange)?;
        reply.many()?.iter().map(stored_rows::link).collect()
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        self.ask("link", &[id])?.as_ref().map(stored_rows::link).transpose()
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError> {
        Ok(self.ask("use_link", &[id.to_owned(), text(signed(bytes)), time(now)])?.is_some())
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("end_link", &[&text(owner), id])?.is_some())
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        let mut words = lock_words(new);
        let bounds = [bounds.holder, bounds.others, bounds.meeting];
        words.extend(bounds.map(|bound| bound.to_string().into_bytes()));
        Ok(self.change_counted("add_lock", &words)?.is_some())
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        let reply = self.ask("locks", &[text(owner)])?.ok_or_else(strange)?;
        reply.many()?.iter().map(stored_rows::lock).collect()
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        self.ask("find_lock", &[text(owner).as_str(), id])?.map(|found| stored_rows::lock(&found)).transpose()
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError> {
        Ok(self.change_counted("refresh_lock", &[&text(owner), id, &time(expires)])?.is_some())
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        let words: Vec<String> = [text(owner)].into_iter().chain(ids.iter().cloned()).collect();
        Ok(self.change_counted("end_locks", &words)?.is_some())
    }
}
