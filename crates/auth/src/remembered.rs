//! The cache of verified tokens and passwords, so that the next request needs no lookup in the directory.
//!
//! The directory is authoritative, not this cache. Invariants: an entry that was changed in this process
//! is not used for another request. No password is stored, only its hash under a key that ends with the
//! process.

use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_io::Io;

use crate::changes::{Changes, Stamp, Topic};
use crate::limits::CLOCK_SKEW_MAX;
use crate::sessions::{Identity, SessionId};
use plimsoll_rpc::Secret;
use plimsoll_rpc::Source;
use plimsoll_rpc::time::{Millis, millis};
use plimsoll_rpc::{Key, Table};

/// When an identity was verified, and until when it can be valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verified {
    /// Taken before the directory was read.
    pub(crate) stamp: Stamp,
    /// When it was verified.
    pub(crate) since: Millis,
    /// When the session ends.
    pub(crate) until: Millis,
}

/// A keyed hash that identifies credentials when they are presented again, for callers that may not store
/// them. Comparison runs in constant time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

/// The result of a cache lookup.
pub(crate) enum Recall {
    /// Valid.
    Fresh(Identity),
    /// Was valid, and no change that would end it was noted since; the directory must be read.
    Stale(Identity),
    /// Not found, or changed.
    Absent,
}

/// The validity of a cached identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// Was valid, and no change that would end it was noted since.
    Stale,
    Absent,
}

/// The cache, shared by all threads.
pub(crate) struct Remembered {
    key: OnceLock<[u8; 32]>,
    table: Table<Identity>,
}

impl Remembered {
    pub(crate) fn new() -> Remembered {
        Remembered { key: OnceLock::new(), table: Table::new() }
    }

    /// Returns the fingerprint of `bytes`, in this process.
    pub(crate) fn fingerprint(&self, io: &Io, bytes: &[u8]) -> Fingerprint {
        Fingerprint(blake3::keyed_hash(self.key(io), bytes))
    }

    fn key(&self, io: &Io) -> &[u8; 32] {
        self.key.get_or_init(|| draw_key(io))
    }

    /// Returns the key of a session. Its number is already a hash, of a random token.
    pub(crate) fn session_key(session: SessionId) -> Key {
        session.0
    }

    /// Returns the key of a public link with the proof of its password. The id is a hash of a random token.
    pub(crate) fn link_key(id: &str, grant: Option<&str>) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key("plimsoll 2026-11-28 cached public link");
        // An id has a fixed length.
        hasher.update(id.as_bytes()).update(grant.unwrap_or_default().as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// Returns the key of a name with a password. The client's network is part of it: a guesser in
    /// another network must not learn from quick responses which password the owner has used.
    pub(crate) fn password_key(&self, io: &Io, name: &str, password: &Secret, from: Source) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(self.key(io));
        let place = from.network();
        let length = u8::try_from(place.len()).unwrap_or(u8::MAX);
        // A name has no zero byte, and the network has a length prefix: no other input gives the same
        // bytes.
        hasher.update(name.as_bytes()).update(&[0, length]).update(&place).update(password.bytes());
        *hasher.finalize().as_bytes()
    }

    /// Looks up `key`. `life` is how long an entry is trusted.
    pub(crate) fn recall(&self, key: &Key, changes: &Changes, now: Millis, life: Duration) -> Recall {
        let recalled = self.table.get(key, |identity| identity.recall(changes, now, life));
        recalled.unwrap_or(Recall::Absent)
    }

    /// Caches a verified identity. If it changed meanwhile, the entry is out of date at once.
    pub(crate) fn remember(&self, key: Key, identity: Identity) {
        self.table.put(key, identity, |identity| identity.verified.since);
    }
}

impl Identity {
    /// Checks it against the changes and the time. `life` is how long it is trusted.
    pub(crate) fn recall(&self, changes: &Changes, now: Millis, life: Duration) -> Recall {
        match self.freshness(changes, now, life) {
            Freshness::Fresh => Recall::Fresh(self.clone()),
            Freshness::Stale => Recall::Stale(self.clone()),
            Freshness::Absent => Recall::Absent,
        }
    }

    /// Like [`Identity::recall`], without a copy.
    pub(crate) fn freshness(&self, changes: &Changes, now: Millis, life: Duration) -> Freshness {
        let Verified { since, until, .. } = self.verified;
        if !self.is_current(changes) {
            return Freshness::Absent;
        }
        // If the clock was set back, the entry seems to come from the future: then it is read from the
        // directory again.
        let is_young = since <= now + millis(CLOCK_SKEW_MAX) && now < since.saturating_add(millis(life));
        if is_young && now < until { Freshness::Fresh } else { Freshness::Stale }
    }

    /// Returns whether no change that would end it was noted since it was verified.
    pub(crate) fn is_current(&self, changes: &Changes) -> bool {
        let link = self.link().map(|_| Topic::Shares(self.account.id));
        let topics = [Some(Topic::Account(self.account.id)), self.session().map(Topic::Session), link];
        topics.into_iter().flatten().all(|topic| changes.is_current(topic, self.verified.stamp))
    }
}

/// Draws a random key, which lives as long as the process.
pub(crate) fn draw_key(io: &Io) -> [u8; 32] {
    let mut key = [0; 32];
    io.entropy(&mut key);
    key
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::account::{Account, Permissions, Quota};
    use crate::sessions::Credential;

    fn identity(verified: Verified) -> Identity {
        let (quota, permissions) = (Quota::default(), Permissions::default());
        let created = std::time::SystemTime::UNIX_EPOCH;
        let account = Account { id: 1, name: "alice".to_owned(), quota, permissions, enabled: true, created };
        let credential = Credential::Session(SessionId([1; 32]));
        Identity { account: Arc::new(account), credential, link: None, verified }
    }

    #[test]
    fn a_cached_login_is_trusted_from_its_check_to_the_end_of_its_lifetime_or_session() {
        let changes = Changes::new();
        let shown = identity(Verified { stamp: changes.stamp(), since: 100_000, until: 300_000 });
        let holds =
            |now, life| matches!(shown.recall(&changes, now, Duration::from_millis(life)), Recall::Fresh(_));
        assert!(holds(100_000, 50_000) && holds(149_999, 50_000) && !holds(150_000, 50_000));
        assert!(holds(299_999, 500_000) && !holds(300_000, 500_000));
        // The clock was set back by more than two threads' clocks may differ.
        assert!(holds(99_000, 50_000) && !holds(98_999, 50_000));
    }

    #[test]
    fn a_changed_account_or_session_is_no_longer_cached() {
        for topic in [Topic::Account(1), Topic::Session(SessionId([1; 32]))] {
            let changes = Changes::new();
            let shown = identity(Verified { stamp: changes.stamp(), since: 0, until: 9 });
            changes.note(topic);
            assert!(matches!(shown.recall(&changes, 1, Duration::from_millis(9)), Recall::Absent));
        }
    }
}
