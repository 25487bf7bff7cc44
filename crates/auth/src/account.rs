//! Accounts: their properties, quota and permissions.
//!
//! The password hash is not part of it: only the account service and exports have that. Invariants: an
//! account's number is never given to another account. This holds even after the account was removed or
//! the directory was lost.

use std::time::SystemTime;

use plimsoll_io::Io;
use serde::{Deserialize, Serialize};

/// An account, as all parts of the server use it. A third-party auth server may leave out the fields that
/// have a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Number, which stays the same when any other property changes.
    pub id: i64,
    /// Name, in the canonical form of [`crate::names`].
    pub name: String,
    /// Storage limits.
    #[serde(default)]
    pub quota: Quota,
    /// Permissions.
    #[serde(default)]
    pub permissions: Permissions,
    /// Whether it may log in, and whether its shares are valid.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Creation time, in whole milliseconds.
    #[serde(default = "long_ago")]
    pub created: SystemTime,
}

/// The smallest number that is drawn. Older versions counted from 1 and never reached it.
const ID_MIN: u64 = 1 << 32;
/// The upper bound of drawn numbers, exclusive: smaller ones are exact in JSON and in Lua.
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

/// Storage limits of an account; `None` is limited by the disk only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Total bytes of all its files.
    pub bytes: Option<u64>,
    /// Number of its files.
    pub files: Option<u64>,
}

/// An account's rights to its own files, whether it may read the server's metrics, whether its FTP uploads
/// create folders, and whether it may change other accounts. New accounts have the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Download and list.
    pub read: bool,
    /// Upload, create folders, move and copy.
    pub write: bool,
    /// Delete and overwrite.
    pub delete: bool,
    /// Give shares to others.
    pub share: bool,
    /// Read metrics and status of the server. Older versions lack this field.
    #[serde(default)]
    pub operate: bool,
    /// Upload over FTP into folders that do not exist: they are created. Older versions lack this field.
    #[serde(default)]
    pub parents: bool,
    /// Change other accounts over HTTP. Older versions lack this field.
    #[serde(default)]
    pub administer: bool,
}

impl Permissions {
    /// No right at all.
    pub const NONE: Permissions = Permissions {
        read: false,
        write: false,
        delete: false,
        share: false,
        operate: false,
        parents: false,
        administer: false,
    };
}

impl Default for Permissions {
    fn default() -> Permissions {
        Permissions { read: true, write: true, delete: true, share: true, ..Permissions::NONE }
    }
}

/// A change that an operator makes to an account. Passwords have a request of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// New storage limits.
    Quota(Quota),
    /// New permissions.
    Permissions(Permissions),
    /// Whether it may log in. Disabling an account ends its sessions.
    Enabled(bool),
}

/// An account for export: one line of JSON. Sessions and shares are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// Its number, which its home refers to. Exports of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// The hash of its password, in PHC form (`$argon2id$…`).
    pub password: String,
    /// Storage limits.
    #[serde(default)]
    pub quota: Quota,
    /// Permissions.
    #[serde(default)]
    pub permissions: Permissions,
    /// Whether it may log in.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// When it was created, in RFC 3339. Exports of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
}

fn enabled() -> bool {
    true
}

fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH
}
