//! Shares: the right that one account gives another to a path.
//!
//! It does not know whether the path exists; callers check that. Invariant: a path has one form, and a
//! share of `a` covers `a/b` but not `ab`.

use std::borrow::Cow;
use std::time::SystemTime;

use plimsoll_io::Io;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::Error;
use crate::limits::PATH_BYTES_MAX;
use plimsoll_rpc::hex;

/// The operations that a share permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// List and download.
    Read,
    /// Also upload, overwrite and delete.
    Write,
}

/// A share to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewShare {
    /// A path of the owner's home, with `/` between its parts; empty is the whole home.
    pub path: Vec<u8>,
    /// The name of the grantee's account.
    pub with: String,
    /// The permitted operations.
    pub permission: Permission,
    /// When it expires.
    pub expires: Option<SystemTime>,
}

/// A valid share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its id: random text.
    pub id: String,
    /// The name of the account that gave it.
    pub owner: String,
    /// The path in the owner's home: no `/` at either end; empty is the whole home.
    pub path: Vec<u8>,
    /// The name of the grantee's account.
    pub with: String,
    /// The permitted operations.
    pub permission: Permission,
    /// When it was first created, in whole milliseconds.
    pub created: SystemTime,
    /// When it expires, in whole milliseconds.
    pub expires: Option<SystemTime>,
}

impl Share {
    /// Returns whether it covers `path`, which must be in canonical form.
    pub fn covers(&self, path: &[u8]) -> bool {
        covers(&self.path, path)
    }
}

/// The shares through which an account may reach another's home, at or below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The home's account.
    pub owner: Account,
    /// The shares that cover the path. If there are none, one for each name below it that leads to a
    /// share, for the first [`NAMES_BELOW_MAX`](crate::limits::NAMES_BELOW_MAX) names. Never empty.
    pub shares: Vec<Share>,
}

impl Grant {
    /// Returns the largest permission at `path` itself; `None` if the shares are all below it.
    pub fn permission_at(&self, path: &[u8]) -> Option<Permission> {
        let covering = self.shares.iter().filter(|share| share.covers(path));
        covering.map(|share| share.permission).max()
    }
}

/// Returns whether `path` is `folder` or below it. Both must be in canonical form.
pub(crate) fn covers(folder: &[u8], path: &[u8]) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Converts a path to canonical form: no `/` at either end, and no part that is empty, `.` or `..`.
///
/// # Errors
/// [`Error::BadShare`].
pub(crate) fn shared_path(path: &[u8]) -> Result<Vec<u8>, Error> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let mut parts = path.split(|byte| *byte == b'/');
    let is_whole_home = path.is_empty();
    let is_good = is_whole_home || parts.all(|part| !part.is_empty() && part != b"." && part != b"..");
    if is_good && path.len() <= PATH_BYTES_MAX && !path.contains(&0) {
        return Ok(path.to_vec());
    }
    Err(Error::BadShare(Cow::Borrowed("This path cannot be shared. Give one without empty parts, . and ..")))
}

/// Draws the id of a new share.
pub(crate) fn draw_id(io: &Io) -> String {
    let mut drawn = [0; 16];
    io.entropy(&mut drawn);
    hex::text(&drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_covers_itself_and_what_is_below_it_by_whole_parts() {
        let cases: [(&str, &str, bool); 7] = [
            ("a", "a", true),
            ("a", "a/b", true),
            ("a", "ab", false),
            ("a/b", "a", false),
            ("a/b", "a/b/c/d", true),
            ("", "a", true),
            ("", "", true),
        ];
        for (folder, path, is_covered) in cases {
            assert_eq!(covers(folder.as_bytes(), path.as_bytes()), is_covered, "{folder} {path}");
        }
    }

    #[test]
    fn a_path_has_one_form() {
        for (given, kept) in [("/a/b/", "a/b"), ("a", "a"), ("/", ""), ("", ""), ("..a/b.", "..a/b.")] {
            assert_eq!(shared_path(given.as_bytes()).unwrap(), kept.as_bytes(), "{given}");
        }
        for bad in ["a//b", "//a", "a/..", "./a", "a\0b", &"a".repeat(PATH_BYTES_MAX + 1)] {
            assert!(shared_path(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
