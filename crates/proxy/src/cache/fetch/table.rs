//! The table of fetches in progress, and the marks of responses that are not cacheable.
//!
//! Invariants: a key has at most one fetch that can be joined; a fetch leaves the table when it ends; the
//! marks are bounded in number and expire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use plimsoll_io::Instant;
use quick_cache::sync::Cache;

use super::follower::Follower;
use super::lead::Lead;
use super::spool::Spool;
use crate::cache::limits::{HIT_FOR_MISS_MARKS_MAX, HIT_FOR_MISS_TIME};
use crate::cache::policy::{Digest, ResourceKey, StoredHead};
use crate::cache::store::{Object, PurgeTarget};

/// The key of a fetch: the resource, and the request fields that select among its known variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchKey {
    /// The resource.
    pub resource: ResourceKey,
    /// Their digest.
    pub digest: Digest,
    /// The digest by which it is marked that responses are not cacheable: one for all slices.
    mark: Digest,
}

impl FetchKey {
    /// Creates the key for a request whose selecting fields have the digest `selection`, if the resource
    /// is known to have variants.
    #[must_use]
    pub fn new(resource: &ResourceKey, selection: Option<Digest>) -> FetchKey {
        let digest = match selection {
            Some(selection) => Digest::of([&resource.digest().as_bytes()[..], &selection.as_bytes()[..]]),
            None => resource.digest(),
        };
        FetchKey { resource: resource.clone(), digest, mark: digest }
    }

    /// Returns the key for a slice of the resource.
    #[must_use]
    pub fn of_slice(self, number: u64) -> FetchKey {
        let mark = Digest::of([&self.digest.as_bytes()[..], b"slices"]);
        let digest = Digest::of([&mark.as_bytes()[..], &number.to_le_bytes()]);
        FetchKey { digest, mark, ..self }
    }
}

/// The part of a request for an absent object in its fetch.
#[derive(Debug)]
pub enum Joined {
    /// It fetches the object, for itself and others.
    Lead(Lead),
    /// It waits for the fetch of another.
    Follow(Follower),
    /// It is forwarded alone: a response to this key was not cacheable shortly before. It may be stored.
    /// `None` if a body of this key could not be recorded shortly before.
    Alone(Option<Lead>),
}

/// Counters of the fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FetchFigures {
    /// Fetches in progress.
    pub in_progress: u64,
    /// Requests that joined the fetch of another.
    pub joined: u64,
}

/// The numbers of fetches that a purge has voided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Voided {
    /// All of them.
    pub all: u64,
    /// Those whose response is not in the index yet: the others are found and counted there.
    pub not_stored: u64,
}

/// The fetches in progress, shared by all threads.
pub struct Fetches {
    table: Mutex<HashMap<FetchId, Arc<Fetch>>>,
    marks: Cache<Digest, Mark>,
    joined: AtomicU64,
    alone: AtomicU64,
}

/// The reason why requests for a key do not wait for each other, and until when.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// A response was not cacheable.
    Uncacheable(Instant),
    /// A body could not be recorded.
    Unrecordable(Instant),
}

/// The place of a fetch in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FetchId {
    /// Requests with this key join it.
    Shared(Digest),
    /// No request joins it. It is in the table for purges.
    Alone(u64),
}

/// One fetch.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) key: FetchKey,
    pub(super) id: FetchId,
    pub(super) state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) spool: Spool,
    /// The length of the body, if it was announced.
    pub(super) length: Option<u64>,
    pub(super) is_void: bool,
    /// Whether the response has been stored, or is being stored.
    pub(super) is_stored: bool,
    pub(super) wakers: Vec<Waker>,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// The head is not received.
    Waiting,
    /// The body is being received.
    Open(Arc<StoredHead>),
    /// All of the body is received.
    Complete(Arc<StoredHead>),
    /// The body is a file that the origin has passed.
    Passed(Arc<Object>),
    /// The response is not cacheable.
    Uncacheable,
    /// The fetch ended before the body did.
    Failed,
}

impl Default for Fetches {
    fn default() -> Fetches {
        Fetches {
            table: Mutex::default(),
            marks: Cache::new(HIT_FOR_MISS_MARKS_MAX),
            joined: AtomicU64::new(0),
            alone: AtomicU64::new(0),
        }
    }
}

impl Fetches {
    /// Joins the fetch of a key, or starts one.
    #[must_use]
    pub fn join(self: &Arc<Fetches>, key: &FetchKey, now: Instant) -> Joined {
        match self.marks.get(&key.mark) {
            Some(Mark::Uncacheable(until)) if now < until => {
                return Joined::Alone(Some(self.lead_alone(key)));
            }
            Some(Mark::Unrecordable(until)) if now < until => return Joined::Alone(None),
            _ => {}
        }
        let mut table = self.table();
        if let Some(fetch) = table.get(&FetchId::Shared(key.digest)) {
            self.joined.fetch_add(1, Ordering::Relaxed);
            return Joined::Follow(Follower::new(Arc::clone(fetch)));
        }
        Joined::Lead(self.start(&mut table, key, FetchId::Shared(key.digest)))
    }

    /// Starts a fetch that no other request joins, after the fetch that the request waited for turned out not
    /// to be stored. Returns `None` if a body of this key could not be recorded shortly before.
    #[must_use]
    pub fn join_none(self: &Arc<Fetches>, key: &FetchKey, now: Instant) -> Option<Lead> {
        match self.marks.get(&key.mark) {
            Some(Mark::Unrecordable(until)) if now < until => None,
            _ => Some(self.lead_alone(key)),
        }
    }

    /// Returns the fetch of a key whose body is complete, and which is being stored.
    #[must_use]
    pub fn completed(&self, key: &FetchKey) -> Option<Follower> {
        let table = self.table();
        let fetch = table.get(&FetchId::Shared(key.digest))?;
        let is_complete = matches!(fetch.lock().phase, Phase::Complete(_));
        is_complete.then(|| Follower::new(Arc::clone(fetch)))
    }

    /// Starts a fetch that no other request joins: for a request with Authorization, which must not wait
    /// for another's and on which no other may wait.
    #[must_use]
    pub fn lead_alone(self: &Arc<Fetches>, key: &FetchKey) -> Lead {
        let id = FetchId::Alone(self.alone.fetch_add(1, Ordering::Relaxed));
        self.start(&mut self.table(), key, id)
    }

    fn start(
        self: &Arc<Fetches>,
        table: &mut HashMap<FetchId, Arc<Fetch>>,
        key: &FetchKey,
        id: FetchId,
    ) -> Lead {
        let state = State {
            phase: Phase::Waiting,
            spool: Spool::default(),
            length: None,
            is_void: false,
            is_stored: false,
            wakers: Vec::new(),
        };
        let fetch = Arc::new(Fetch { key: key.clone(), id, state: Mutex::new(state) });
        table.insert(id, Arc::clone(&fetch));
        Lead::new(fetch, Arc::clone(self))
    }

    /// Voids fetches that a purge includes: they serve the requests that joined before, and are not stored.
    /// A fetch without a head may have any tag.
    pub fn void(&self, target: &PurgeTarget) -> Voided {
        let mut voided = Voided::default();
        self.table().retain(|_, fetch| {
            let mut state = fetch.lock();
            let is_included = match (target, &state.phase) {
                (PurgeTarget::Uri(digest), _) => fetch.key.resource.digest() == *digest,
                (PurgeTarget::Prefix(prefix), _) => fetch.key.resource.uri().starts_with(prefix),
                (PurgeTarget::Tag(tag), Phase::Open(head) | Phase::Complete(head)) => head.has_tag(tag),
                (PurgeTarget::Tag(_) | PurgeTarget::All, _) => true,
            };
            state.is_void |= is_included;
            voided.all += u64::from(is_included);
            voided.not_stored += u64::from(is_included && !state.is_stored);
            !is_included
        });
        voided
    }

    /// Returns the counters.
    #[must_use]
    pub fn figures(&self) -> FetchFigures {
        FetchFigures { in_progress: self.table().len() as u64, joined: self.joined.load(Ordering::Relaxed) }
    }

    /// Removes a fetch that has ended.
    pub(super) fn forget(&self, fetch: &Arc<Fetch>) {
        let mut table = self.table();
        if table.get(&fetch.id).is_some_and(|other| Arc::ptr_eq(other, fetch)) {
            table.remove(&fetch.id);
        }
    }

    /// Notes that responses to a key are not cacheable, so that requests for it do not wait for each other.
    /// One that was alone proves nothing: it may have had credentials.
    pub(super) fn mark_uncacheable(&self, fetch: &Fetch, now: Instant) {
        if let FetchId::Shared(_) = fetch.id {
            self.marks.insert(fetch.key.mark, Mark::Uncacheable(now + HIT_FOR_MISS_TIME));
        }
    }

    /// Notes that bodies of a key cannot be recorded until an instant.
    pub(super) fn mark_unrecordable(&self, fetch: &Fetch, until: Instant) {
        if let FetchId::Shared(_) = fetch.id {
            self.marks.insert(fetch.key.mark, Mark::Unrecordable(until));
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<FetchId, Arc<Fetch>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the followers.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
