//! What is known of an account, and what it may do.
//!
//! Its password's hash is not here: only the keeper and an export see that. What must hold: an account's
//! number is never given to another one, also after the account was removed, or its directory was lost.

use std::time::SystemTime;

use plimsoll_io::Io;
use serde::{Deserialize, Serialize};

/// An account as every part of the server knows it. A program of somebody else's that answers fronts may
/// leave out what has a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its number, which outlives a change of anything else.
    pub id: i64,
    /// Its name, in the one form of [`crate::names`].
    pub name: String,
    /// What it may store.
    #[serde(default)]
    pub quota: Quota,
    /// What it may do.
    #[serde(default)]
    pub permissions: Permissions,
    /// Whether it may log in, and whether its shares hold.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// When it was made, in whole milliseconds.
    #[serde(default = "long_ago")]
    pub created: SystemTime,
}

/// The least number that is drawn. Older versions counted from 1, and never came this far.
const ID_MIN: u64 = 1 << 32;
/// The first number beyond those that are drawn: smaller ones are exact in JSON and in Lua.
const ID_END: u64 = 1 << 53;

/// Draws the number of a new account.
///
/// Numbers are random because a directory can be lost. A directory that counts from 1 again gives a new
/// account the number of an old one, and with it the old account's home.
pub(crate) fn draw_id(io: &Io) -> i64 {
    let mut drawn = [0; 8];
    io.entropy(&mut drawn);
    let id = ID_MIN + u64::from_le_bytes(drawn) % (ID_END - ID_MIN);
    i64::try_from(id).unwrap_or(i64::MAX)
}

/// What an account may store; `None` is as much as there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Bytes of all its files together.
    pub bytes: Option<u64>,
    /// Count of its files.
    pub files: Option<u64>,
}

/// What an account may do with its own files, where a new one may do everything; and whether it may read what
/// the server does, which a new one may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Download and list.
    pub read: bool,
    /// Upload, make folders, move and copy.
    pub write: bool,
    /// Delete and overwrite.
    pub delete: bool,
    /// Give shares to others.
    pub share: bool,
    /// Read metrics and status of the server. Older programs do not know of it.
    #[serde(default)]
    pub operate: bool,
}

impl Default for Permissions {
    fn default() -> Permissions {
        Permissions { read: true, write: true, delete: true, share: true, operate: false }
    }
}

/// What an operator changes of an account. A password is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// What it may store.
    Quota(Quota),
    /// What it may do.
    Permissions(Permissions),
    /// Whether it may log in. An account that is disabled loses its sessions.
    Enabled(bool),
}

/// One account as data for a file: one line of JSON each. Sessions and shares are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// Its number, by which its home knows it. Exports of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// The hash of its password, in PHC form (`$argon2id$…`).
    pub password: String,
    /// What it may store.
    #[serde(default)]
    pub quota: Quota,
    /// What it may do.
    #[serde(default)]
    pub permissions: Permissions,
    /// Whether it may log in.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

fn enabled() -> bool {
    true
}

fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH
}
