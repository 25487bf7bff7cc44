//! The directory: accounts, sessions and shares, as they are stored.
//!
//! It decides nothing: who may do what is the keeper's. Its calls block, and run where the engine lets them.
//! What must hold: a call that has answered is done for good, and one that failed has changed nothing
//! (unless it was the answer of a database elsewhere that was lost); the same suite of tests passes over
//! each of them.

mod around;
mod connections;
mod memory;
#[cfg(feature = "mysql")]
mod mysql;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod reach;
#[cfg(feature = "redis")]
mod redis;
mod sqlite;
mod values;

use crate::account::{Account, Change, Permissions, Quota};
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Permission, Share};
use crate::time::Millis;

pub(crate) use connections::Connections;
pub use memory::MemoryDirectory;
#[cfg(feature = "mysql")]
pub use mysql::{MysqlDirectory, MysqlFacts};
pub use open::{BadUrl, Facts, NotOpened, facts, file_of, open, without_password};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresDirectory, PostgresFacts};
#[cfg(feature = "redis")]
pub use redis::{RedisDirectory, RedisFacts};
pub use sqlite::SqliteDirectory;

/// Why a directory cannot do as it was told: a text for the log, never for a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Trouble {
    /// The disk that it is on is full, so that nothing was changed.
    Full(String),
    /// Anything else.
    Failed(String),
}

/// An account with what is known of its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The account.
    pub account: Account,
    /// The hash of its password, in PHC form.
    pub hash: String,
    /// How often the password was set; the same password hashed anew is the same version.
    pub version: i64,
}

/// An account that is to be made.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Its number, which no account has or ever had.
    pub id: i64,
    /// Its name, in its one form.
    pub name: String,
    /// The hash of its password.
    pub hash: String,
    /// What it may store.
    pub quota: Quota,
    /// What it may do.
    pub permissions: Permissions,
    /// Whether it may log in.
    pub enabled: bool,
    /// When it is made.
    pub created: Millis,
}

/// A session that is to be kept.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its number.
    pub id: SessionId,
    /// Whose it is.
    pub account: i64,
    /// The version of the password that was shown: an older one opens nothing.
    pub version: i64,
    /// When it begins.
    pub created: Millis,
    /// When it ends.
    pub expires: Millis,
}

/// A share that is to be kept. One for the same path and account is changed by it, and keeps its id.
#[derive(Clone, Debug)]
pub struct GivenShare {
    /// Its name for unsharing.
    pub id: String,
    /// Whose home it is.
    pub owner: i64,
    /// Who gets it.
    pub with: i64,
    /// The path, in its one form.
    pub path: Vec<u8>,
    /// What it lets do.
    pub permission: Permission,
    /// When it is given.
    pub created: Millis,
    /// When it ends.
    pub expires: Option<Millis>,
}

/// Whose shares are looked for.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// All that an account gives.
    By(i64),
    /// All that an account has, of owners that are enabled.
    With(i64),
}

/// Where accounts, sessions and shares are kept.
pub trait Directory: Send {
    /// Whether somebody else has changed or ended anything that was there since this was asked last. What is
    /// only new (an account, a session) need not be told.
    fn changed_elsewhere(&mut self) -> Result<bool, Trouble>;
    /// Another connection to the same database, for work beside this one's; it connects when there is work.
    /// What either changes is no news to the other. None where one does for all.
    fn another(&self) -> Option<Box<dyn Directory>> {
        None
    }
    /// Ends the connection to a database, if there is one: the next call makes another.
    fn disconnect(&mut self) {}
    /// Checks that the directory can be written, by writing something that no other call reads.
    ///
    /// # Errors
    /// [`Trouble::Full`] if the disk is full; else what the store reports.
    fn check_writable(&mut self, now: Millis) -> Result<(), Trouble>;
    /// Forgets sessions and shares that ended before `now`, and networks of log-ins longer ago than
    /// [`NETWORK_AGE_MAX`](crate::limits::NETWORK_AGE_MAX).
    fn sweep(&mut self, now: Millis) -> Result<(), Trouble>;

    /// Makes an account; `None` if the name is taken. A number that is taken is an error.
    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, Trouble>;
    /// All accounts by name.
    fn accounts(&mut self) -> Result<Vec<Record>, Trouble>;
    /// The account of this name.
    fn account(&mut self, name: &str) -> Result<Option<Record>, Trouble>;
    /// The account of this number.
    fn account_of(&mut self, id: i64) -> Result<Option<Record>, Trouble>;
    /// Changes an account, and ends its sessions if it is disabled; `None` if there is none of this number.
    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, Trouble>;
    /// Removes an account, its sessions, and the shares that it gave and had.
    fn remove_account(&mut self, id: i64) -> Result<bool, Trouble>;
    /// Sets a password in place of `version` and ends all sessions but `but`; false if it is another version.
    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, Trouble>;
    /// Stores another hash of the same password, if that still is of `version`.
    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), Trouble>;

    /// Keeps a session if the account is enabled and its password is of that version (else `None`); tells
    /// which of its oldest sessions ended so that it has at most `max`.
    fn add_session(&mut self, new: &NewSession, max: usize) -> Result<Option<Vec<SessionId>>, Trouble>;
    /// The account of a session that has not ended, and when it will; none of a disabled account.
    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, Trouble>;
    /// Ends a session; false if there is none.
    fn end_session(&mut self, id: SessionId) -> Result<bool, Trouble>;

    /// Returns when the account last logged in from a network, if that is stored.
    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, Trouble>;
    /// Stores that the account logged in from a network, and forgets all but its `max` latest networks. Does
    /// nothing if the account is gone.
    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), Trouble>;

    /// Keeps a share; `None` if the owner has `max` others that have not ended, or one of the two accounts
    /// is gone.
    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, Trouble>;
    /// Shares that have not ended, by owner, path and account.
    fn shares(&mut self, given: Given, now: Millis) -> Result<Vec<Share>, Trouble>;
    /// The shares that cover `path`, of those that one account gives to another and that have not ended. If
    /// there are none, one for each name below `path`, for the first names in the order of bytes.
    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, Trouble>;
    /// Ends a share of this owner's; false if there is none.
    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, Trouble>;
    /// Ends the shares of a path and of all below it. Returns whether there were any.
    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, Trouble>;
}
