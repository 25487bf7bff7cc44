//! Locks of files and folders (RFC 4918, section 6): their scope, and the resources that they cover.
//!
//! It does not know whether a path exists. Invariant: two locks that both cover a resource are both shared.

use std::time::{Duration, SystemTime};

use plimsoll_io::Io;
use plimsoll_wire::hex;
use serde::{Deserialize, Serialize};

use crate::directory::StoredLock;
use crate::shares::covers;
use plimsoll_rpc::time::{Millis, time};

/// A lock to be taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewLock {
    /// The number of the account whose home has the path.
    pub owner: i64,
    /// The number of the account that takes it.
    pub holder: i64,
    /// The path, with `/` between its parts; empty is the whole home.
    pub path: Vec<u8>,
    /// Whether others may take a shared lock, too.
    pub is_shared: bool,
    /// Whether everything below the path is locked, too.
    pub is_deep: bool,
    /// The element `owner` of the request (RFC 4918, section 14.17), as XML that is returned as it is.
    pub about: String,
    /// How long it holds, unless it is refreshed: between [`LOCK_TIME_MIN`](crate::limits::LOCK_TIME_MIN) and
    /// [`LOCK_TIME_MAX`](crate::limits::LOCK_TIME_MAX).
    pub time: Duration,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its id, which its token contains.
    pub id: String,
    /// The number of the account that holds it.
    pub holder: i64,
    /// The name of that account.
    pub holder_name: String,
    /// The path in the home: no `/` at either end; empty is the whole home.
    pub path: Vec<u8>,
    /// Whether others may take a shared lock, too.
    pub is_shared: bool,
    /// Whether everything below the path is locked, too.
    pub is_deep: bool,
    /// The element `owner` of the request (RFC 4918, section 14.17), as XML.
    pub about: String,
    /// When it ends, in whole milliseconds.
    pub expires: SystemTime,
}

impl Lock {
    /// Returns whether the resource at this path is locked by it.
    pub fn covers(&self, path: &[u8]) -> bool {
        lock_covers((&self.path, self.is_deep), path)
    }

    /// Returns whether its own path is this one, or below it.
    pub fn is_within(&self, path: &[u8]) -> bool {
        covers(path, &self.path)
    }

    /// Returns whether it locks the resource at this path, or one below it.
    pub fn is_at_or_below(&self, path: &[u8]) -> bool {
        self.covers(path) || self.is_within(path)
    }
}

/// Returns whether a lock of this path, which is deep or not, covers a resource.
fn lock_covers((of, is_deep): (&[u8], bool), path: &[u8]) -> bool {
    of == path || (is_deep && covers(of, path))
}

impl StoredLock {
    /// Returns the lock, held by the account `holder_name` until then.
    pub(crate) fn lock(&self, holder_name: &str, expires: Millis) -> Lock {
        Lock {
            id: self.id.clone(),
            holder: self.holder,
            holder_name: holder_name.to_owned(),
            path: self.path.clone(),
            is_shared: self.shared,
            is_deep: self.deep,
            about: self.about.clone(),
            expires: time(expires),
        }
    }

    /// Returns whether it has not expired.
    pub(crate) fn holds(&self, now: Millis) -> bool {
        u64::try_from(self.expires).unwrap_or(0) > now
    }

    /// Returns whether the resource at this path is locked by it.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        lock_covers((&self.path, self.deep), path)
    }

    /// Returns whether there may be a resource that both cover.
    pub(crate) fn meets(&self, other: &StoredLock) -> bool {
        self.covers(&other.path) || other.covers(&self.path)
    }

    /// Returns whether both cannot be held in the same home at once.
    pub(crate) fn conflicts(&self, other: &StoredLock) -> bool {
        !(self.shared && other.shared) && self.meets(other)
    }
}

/// Draws the id of a new lock: a UUID of version 4 (RFC 9562).
pub(crate) fn draw_id(io: &Io) -> String {
    let mut drawn = [0; 16];
    io.entropy(&mut drawn);
    drawn[6] = drawn[6] & 0x0f | 0x40;
    drawn[8] = drawn[8] & 0x3f | 0x80;
    let digits = hex::encode(&drawn);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(path: &str, shared: bool, deep: bool) -> StoredLock {
        StoredLock {
            id: String::new(),
            owner: 1,
            holder: 1,
            path: path.as_bytes().to_vec(),
            shared,
            deep,
            about: String::new(),
            created: 0,
            expires: 1,
        }
    }

    #[test]
    fn locks_conflict_where_they_meet_unless_both_are_shared() {
        let cases = [
            (("a", false), ("a", false), true),
            (("a", false), ("b", false), false),
            (("a", false), ("a/b", false), false),
            (("a", true), ("a/b", false), true),
            (("a", false), ("a/b", true), false),
            (("a", true), ("ab", true), false),
            (("", true), ("a", false), true),
            (("", false), ("a", true), false),
        ];
        for ((one, one_deep), (other, other_deep), is_conflict) in cases {
            for (one_shared, other_shared) in [(false, false), (true, false), (false, true), (true, true)] {
                let one = stored(one, one_shared, one_deep);
                let other = stored(other, other_shared, other_deep);
                let expected = is_conflict && !(one_shared && other_shared);
                assert_eq!(one.conflicts(&other), expected, "{one:?} {other:?}");
                assert_eq!(other.conflicts(&one), expected, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_deep_lock_covers_what_is_below_its_path() {
        let (deep, flat) = (stored("a", false, true).lock("x", 1), stored("a", false, false).lock("x", 1));
        assert!(deep.covers(b"a") && deep.covers(b"a/b") && !deep.covers(b"ab") && !deep.covers(b""));
        assert!(flat.covers(b"a") && !flat.covers(b"a/b") && flat.is_at_or_below(b""));
        assert!(!flat.is_at_or_below(b"a/b") && deep.is_at_or_below(b"a/b"));
    }
}
