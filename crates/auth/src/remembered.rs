//! Tokens and passwords that were verified a short while ago, so that the next request costs no question.
//!
//! It is not the truth, the directory is. What must hold: what has changed in this process is not believed
//! for one request more; no password is kept, only its hash under a key that ends with the process.

use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_io::Io;

use crate::attempts::Source;
use crate::changes::{Changes, Stamp, Topic};
use crate::limits::CLOCK_SKEW_MAX;
use crate::secret::Secret;
use crate::sessions::{Identity, SessionId};
use crate::table::{Key, Table};
use crate::time::{Millis, millis};

/// When an identity was verified, and for how long it can hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verified {
    /// Taken before the directory was asked.
    pub(crate) stamp: Stamp,
    /// When it was verified.
    pub(crate) since: Millis,
    /// When the session ends.
    pub(crate) until: Millis,
}

/// What bytes that were shown are known by when they are shown again, to whoever may not keep them.
/// To compare two takes the same time whatever they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

/// What is known of something that is shown.
pub(crate) enum Recall {
    /// It holds.
    Holds(Identity),
    /// It did hold, and nothing that would end it was noted since; ask again.
    Held(Identity),
    /// Nothing.
    Nothing,
}

/// What is known of an identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Holds,
    /// It did hold, and nothing that would end it was noted since.
    Held,
    Nothing,
}

/// What was verified, for all threads.
pub(crate) struct Remembered {
    key: OnceLock<[u8; 32]>,
    table: Table<Identity>,
}

impl Remembered {
    pub(crate) fn new() -> Remembered {
        Remembered { key: OnceLock::new(), table: Table::new() }
    }

    /// What `bytes` are known by, in this process.
    pub(crate) fn fingerprint(&self, io: &Io, bytes: &[u8]) -> Fingerprint {
        Fingerprint(blake3::keyed_hash(self.key(io), bytes))
    }

    fn key(&self, io: &Io) -> &[u8; 32] {
        self.key.get_or_init(|| draw_key(io))
    }

    /// Where a session is found. Its number is a hash already, of what nobody chooses.
    pub(crate) fn session_key(session: SessionId) -> Key {
        session.0
    }

    /// Where a name with a password is found. The place that it comes from is part of it: a guesser
    /// elsewhere must not learn from quick answers what the owner has shown here.
    pub(crate) fn password_key(&self, io: &Io, name: &str, password: &Secret, from: Source) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(self.key(io));
        let place = from.place();
        let length = u8::try_from(place.len()).unwrap_or(u8::MAX);
        // A name has no zero byte, and the place says its length: nothing else gives the same bytes.
        hasher.update(name.as_bytes()).update(&[0, length]).update(&place).update(password.bytes());
        *hasher.finalize().as_bytes()
    }

    /// What is known of `key`. `life` is how long something is believed.
    pub(crate) fn recall(&self, key: &Key, changes: &Changes, now: Millis, life: Duration) -> Recall {
        let recalled = self.table.get(key, |identity| identity.recall(changes, now, life));
        recalled.unwrap_or(Recall::Nothing)
    }

    /// Keeps what was verified. If it changed meanwhile, it will not be believed.
    pub(crate) fn remember(&self, key: Key, identity: Identity) {
        self.table.put(key, identity, |identity| identity.verified.since);
    }
}

impl Identity {
    /// What is known of it now. `life` is how long it is believed.
    pub(crate) fn recall(&self, changes: &Changes, now: Millis, life: Duration) -> Recall {
        match self.standing(changes, now, life) {
            Standing::Holds => Recall::Holds(self.clone()),
            Standing::Held => Recall::Held(self.clone()),
            Standing::Nothing => Recall::Nothing,
        }
    }

    /// As [`Identity::recall`].
    pub(crate) fn standing(&self, changes: &Changes, now: Millis, life: Duration) -> Standing {
        let Verified { since, until, .. } = self.verified;
        if !self.is_current(changes) {
            return Standing::Nothing;
        }
        // A clock that was set back makes what is remembered come from the future: then it is asked again.
        let is_young = since <= now + millis(CLOCK_SKEW_MAX) && now < since.saturating_add(millis(life));
        if is_young && now < until { Standing::Holds } else { Standing::Held }
    }

    /// Whether nothing that would end it was noted since it was verified.
    pub(crate) fn is_current(&self, changes: &Changes) -> bool {
        let topics = [Some(Topic::Account(self.account.id)), self.session().map(Topic::Session)];
        topics.into_iter().flatten().all(|topic| changes.is_current(topic, self.verified.stamp))
    }
}

/// A key that nobody else has, for as long as the process lives.
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
        Identity { account: Arc::new(account), credential, verified }
    }

    #[test]
    fn it_is_believed_from_when_it_was_verified_until_its_life_or_its_session_ends() {
        let changes = Changes::new();
        let shown = identity(Verified { stamp: changes.stamp(), since: 100_000, until: 300_000 });
        let holds =
            |now, life| matches!(shown.recall(&changes, now, Duration::from_millis(life)), Recall::Holds(_));
        assert!(holds(100_000, 50_000) && holds(149_999, 50_000) && !holds(150_000, 50_000));
        assert!(holds(299_999, 500_000) && !holds(300_000, 500_000));
        // A clock that was set back by more than two threads' clocks differ.
        assert!(holds(99_000, 50_000) && !holds(98_999, 50_000));
    }

    #[test]
    fn what_changed_is_not_even_known_any_more() {
        for topic in [Topic::Account(1), Topic::Session(SessionId([1; 32]))] {
            let changes = Changes::new();
            let shown = identity(Verified { stamp: changes.stamp(), since: 0, until: 9 });
            changes.note(topic);
            assert!(matches!(shown.recall(&changes, 1, Duration::from_millis(9)), Recall::Nothing));
        }
    }
}
