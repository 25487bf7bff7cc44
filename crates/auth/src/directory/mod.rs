//! The directory: accounts, sessions, shares, links and locks, as they are stored.
//!
//! It decides nothing: the account service checks permissions. Its calls block, and run where the engine
//! lets them. Invariants: a call that has succeeded is durable, and one that failed has changed nothing.
//! The exception is a remote database whose response was lost. All implementations pass the same suite of
//! tests.
//!
//! Design: docs/design/directory.md.

mod connections;
#[cfg(feature = "database")]
mod database;
mod effective_shares;
mod fault;
mod memory;
mod meter;
mod migrations;
#[cfg(feature = "mysql")]
mod mysql;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod sqlite;
mod transfer;
mod values;

use std::sync::Arc;

use crate::account::{Account, Change, Permissions, Quota};
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use plimsoll_rpc::time::Millis;

pub(crate) use connections::Connections;
pub use fault::Fault;
pub use memory::MemoryDirectory;
pub use meter::DirectoryMeter;
pub use migrations::Schema;
#[cfg(feature = "mysql")]
pub use mysql::{MysqlDirectory, MysqlInfo};
pub use open::{
    BadUrl, NotOpened, Opening, ServerInfo, file_of, open, open_rows, server_info, with_password,
    without_password,
};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresDirectory, PostgresInfo};
#[cfg(feature = "redis")]
pub use redis::{RedisDirectory, RedisInfo};
pub use sqlite::{CopiedDirectory, SqliteDirectory, copy_file, end_all_links, end_all_sessions};
pub use transfer::{
    DirectoryRows, DumpReader, DumpWriter, StoredAccount, StoredLink, StoredLock, StoredNetwork, StoredRow,
    StoredSession, StoredShare, Summary, TlsTerms, transfer,
};

/// The bounds of the locks in one home.
#[derive(Clone, Copy, Debug)]
pub struct LockBounds {
    /// Locks that one account holds.
    pub holder: usize,
    /// Locks that other accounts than the home's own hold.
    pub others: usize,
    /// Shared locks that one of them meets, itself included.
    pub meeting: usize,
}

/// Why a directory call failed: a text for the log, never for a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// Its disk is full; nothing was changed.
    #[error("{0}")]
    Full(String),
    /// A concurrent transaction had it rolled back; nothing was changed, and it may be retried.
    #[error("{0}")]
    RolledBack(String),
    /// The store is unavailable, for a known reason.
    #[error("{1}")]
    Unavailable(Fault, String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

/// An account with its password hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The account.
    pub account: Account,
    /// The hash of its password, in PHC form.
    pub hash: String,
    /// The version of the password: how often it was set. Rehashing the same password keeps the version.
    pub version: i64,
}

/// An account to be created.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Its number, which no other account has or ever had.
    pub id: i64,
    /// Its name, in canonical form.
    pub name: String,
    /// The hash of its password.
    pub hash: String,
    /// Storage limits.
    pub quota: Quota,
    /// Permissions.
    pub permissions: Permissions,
    /// Whether it may log in.
    pub enabled: bool,
    /// Creation time.
    pub created: Millis,
}

/// A session to be stored.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its number.
    pub id: SessionId,
    /// The session's account.
    pub account: i64,
    /// The version of the password that was presented: no session is stored for an older one.
    pub version: i64,
    /// When it begins.
    pub created: Millis,
    /// When it ends.
    pub expires: Millis,
}

/// A share to be stored. An existing share of the same path and grantee is changed by it, and keeps its
/// id.
#[derive(Clone, Debug)]
pub struct GivenShare {
    /// Its id.
    pub id: String,
    /// The account whose home it is.
    pub owner: i64,
    /// The grantee's account.
    pub with: i64,
    /// The path, in canonical form.
    pub path: Vec<u8>,
    /// The permitted operations.
    pub permission: Permission,
    /// Creation time.
    pub created: Millis,
    /// Expiry.
    pub expires: Option<Millis>,
}

/// The selection of shares to be listed.
#[derive(Clone, Copy, Debug)]
pub enum ShareSelection {
    /// All that an account gives.
    By(i64),
    /// All that an account receives, from owners that are enabled.
    With(i64),
}

/// The store of accounts, sessions and shares.
pub trait Directory: Send {
    /// Returns whether another process has changed or ended existing data since the last call. Additions
    /// (an account, a session) need not be reported.
    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError>;
    /// Creates another handle on the same database, for concurrent work. It connects at its first use.
    /// Neither reports the other's changes. Returns `None` if one handle serves all.
    fn another(&self) -> Option<Box<dyn Directory>> {
        None
    }
    /// Closes the connection to a database, if there is one: the next call opens another.
    fn disconnect(&mut self) {}
    /// Counts the connections of this handle and all others on the same database from now on.
    fn count_in(&mut self, _: &Arc<DirectoryMeter>) {}
    /// Checks that the directory can be written, by writing data that no other call reads.
    ///
    /// # Errors
    /// [`DirectoryError::Full`] if the disk is full; else the error of the store.
    fn check_writable(&mut self, now: Millis) -> Result<(), DirectoryError>;
    /// Removes sessions, shares, links and locks that ended before `now`, and networks of log-ins longer ago
    /// than [`NETWORK_AGE_MAX`](crate::limits::NETWORK_AGE_MAX).
    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError>;

    /// Creates an account; `None` if the name is taken. A number that is taken is an error.
    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError>;
    /// Lists all accounts by name.
    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError>;
    /// Looks up the account of this name.
    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError>;
    /// Looks up the account of this number.
    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError>;
    /// Changes an account, and ends its sessions if it is disabled; `None` if there is none of this
    /// number.
    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError>;
    /// Removes an account, its sessions, links and locks, and the shares that it gave and received. Returns
    /// false if there is none.
    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError>;
    /// Replaces the password of `version` and ends all sessions except `but`; false if the version is
    /// another.
    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError>;
    /// Stores another hash of the same password, if that still is of `version`.
    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError>;

    /// Stores a session if the account is enabled and its password is of that version, else returns
    /// `None`. Ends the oldest sessions beyond `max` and returns them.
    fn add_session(&mut self, new: &NewSession, max: usize)
    -> Result<Option<Vec<SessionId>>, DirectoryError>;
    /// Looks up the account of a session that has not ended, and when it will; `None` if the account is
    /// disabled.
    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError>;
    /// Ends a session; false if there is none.
    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError>;

    /// Returns when the account last logged in from a network, if that is stored.
    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError>;
    /// Stores that the account logged in from a network, and forgets all but its `max` latest networks. Does
    /// nothing if the account is gone.
    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError>;

    /// Stores a share. Returns `None` if the owner has `max` other valid ones, or if one of the two
    /// accounts is gone.
    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError>;
    /// Lists the selected shares that have not ended, by owner, path and account.
    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError>;
    /// Returns the valid shares between two accounts that cover `path`. If there are none, returns one
    /// for each name below `path`, for the first names in byte order.
    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError>;
    /// Ends a share of this owner; false if there is none.
    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError>;
    /// Ends the shares and the links of a path and of all paths below it. Returns whether there were any.
    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError>;

    /// Stores a link. Returns false if the owner has `max` others that have not ended, or is gone.
    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError>;
    /// Lists the links of an account, in any order; those that have ended may be among them.
    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError>;
    /// Looks up a link, which may have ended.
    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError>;
    /// Counts a use of a link, and bytes. Returns false, and counts nothing, if that is more than it
    /// permits, or if it has ended. It does not raise the change counter, because no server caches the count.
    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError>;
    /// Ends a link of this owner; false if there is none.
    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError>;

    /// Stores a lock, and removes those of the owner's home that ended before its creation. Returns false if
    /// another lock conflicts with it, if there are as many as `bounds` permit, or if either account is gone.
    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError>;
    /// Lists the locks of a home, in any order; those that have ended may be among them.
    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError>;
    /// Looks up a lock of this home, which may have ended.
    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError>;
    /// Sets when a lock of this home ends; false if there is none.
    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError>;
    /// Ends locks of this home in one step; false if there are none of these.
    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError>;
}
