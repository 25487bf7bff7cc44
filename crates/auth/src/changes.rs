//! The change counters: they show whether a cached entry is out of date.
//!
//! It does not contain the changed values. Invariants: an entry that was read from the directory before a
//! change was noted is out of date, whenever it is cached. Invalidation costs one store.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_rpc::ChangeFeed;
use serde::{Deserialize, Serialize};

use crate::limits::CHANGE_PLACES;
use crate::sessions::SessionId;

/// A position in the order of changes. Take it before the directory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

/// The subject of a change. Topics of a kind that share a counter are invalidated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Anything may have changed.
    Everything,
    /// The account of this number, and all its credentials.
    Account(i64),
    /// A session.
    Session(SessionId),
    /// The shares that the account of this number gives.
    Shares(i64),
    /// A lock was added in the home of the account of this number. An upload that was checked before repeats
    /// its check before the commit.
    Locks(i64),
    /// Refreshed and ended locks in that home, which exclude nothing that was permitted before.
    LockEnds(i64),
}

impl Topic {
    fn place(self) -> usize {
        let number = match self {
            Topic::Everything => 0,
            Topic::Account(id) | Topic::Shares(id) | Topic::Locks(id) | Topic::LockEnds(id) => {
                id.unsigned_abs()
            }
            Topic::Session(SessionId(hash)) => {
                u64::from(u32::from_le_bytes([hash[4], hash[5], hash[6], hash[7]]))
            }
        };
        usize::try_from(number % CHANGE_PLACES as u64).unwrap_or(0)
    }
}

/// The latest change of each topic.
pub(crate) struct Changes {
    count: AtomicU64,
    everything: AtomicU64,
    accounts: Box<[AtomicU64]>,
    sessions: Box<[AtomicU64]>,
    shares: Box<[AtomicU64]>,
    locks: Box<[AtomicU64]>,
    lock_ends: Box<[AtomicU64]>,
    feed: ChangeFeed<Topic>,
}

impl Changes {
    pub(crate) fn new() -> Changes {
        let places = || (0..CHANGE_PLACES).map(|_| AtomicU64::new(0)).collect();
        Changes {
            count: AtomicU64::new(0),
            everything: AtomicU64::new(0),
            accounts: places(),
            sessions: places(),
            shares: places(),
            locks: places(),
            lock_ends: places(),
            feed: ChangeFeed::new(Topic::Everything),
        }
    }

    /// Returns the present position.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp(self.count.load(Ordering::SeqCst))
    }

    /// Returns the change feed for remote fronts.
    pub(crate) fn feed(&self) -> &ChangeFeed<Topic> {
        &self.feed
    }

    /// Notes a change, after it was made and before it is confirmed to the caller.
    pub(crate) fn note(&self, topic: Topic) {
        self.latest(topic).fetch_max(self.next(), Ordering::SeqCst);
        self.feed.publish(topic);
    }

    /// Returns whether no change of `topic` was noted since `stamp`.
    pub(crate) fn is_current(&self, topic: Topic, stamp: Stamp) -> bool {
        let latest = self.latest(topic).load(Ordering::SeqCst);
        latest.max(self.everything.load(Ordering::SeqCst)) <= stamp.0
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn latest(&self, topic: Topic) -> &AtomicU64 {
        match topic {
            Topic::Everything => &self.everything,
            Topic::Account(_) => &self.accounts[topic.place()],
            Topic::Session(_) => &self.sessions[topic.place()],
            Topic::Shares(_) => &self.shares[topic.place()],
            Topic::Locks(_) => &self.locks[topic.place()],
            Topic::LockEnds(_) => &self.lock_ends[topic.place()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_read_before_a_change_is_out_of_date_and_one_read_after_is_current() {
        let changes = Changes::new();
        let before = changes.stamp();
        changes.note(Topic::Account(7));
        assert!(!changes.is_current(Topic::Account(7), before));
        assert!(changes.is_current(Topic::Account(7), changes.stamp()));
        assert!(changes.is_current(Topic::Account(8), before));
        assert!(changes.is_current(Topic::Session(SessionId([7; 32])), before));
        assert!(changes.is_current(Topic::Shares(7), before));
        changes.note(Topic::Shares(7));
        assert!(!changes.is_current(Topic::Shares(7), before));
        assert!(changes.is_current(Topic::Locks(7), before));
        changes.note(Topic::Locks(7));
        assert!(!changes.is_current(Topic::Locks(7), before));
        assert!(changes.is_current(Topic::LockEnds(7), before));
        changes.note(Topic::LockEnds(7));
        assert!(!changes.is_current(Topic::LockEnds(7), before));
    }

    #[test]
    fn a_change_of_everything_is_one_of_each() {
        let changes = Changes::new();
        let before = changes.stamp();
        changes.note(Topic::Everything);
        assert!(!changes.is_current(Topic::Account(1), before));
        assert!(!changes.is_current(Topic::Session(SessionId([1; 32])), before));
    }
}
