//! The side of a fetch that receives from the origin.
//!
//! It does no input or output. Invariant: dropping it before the end fails the fetch, so that no follower
//! waits for ever.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{File, Instant};

use super::follower::Follower;
use super::table::{Fetch, Fetches, Phase};
use crate::cache::policy::StoredHead;
use crate::cache::store::Object;

/// The right and duty to fetch an object.
pub struct Lead {
    fetch: Arc<Fetch>,
    fetches: Arc<Fetches>,
}

impl std::fmt::Debug for Lead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lead").field(&self.fetch.key).finish()
    }
}

impl Lead {
    pub(super) fn new(fetch: Arc<Fetch>, fetches: Arc<Fetches>) -> Lead {
        Lead { fetch, fetches }
    }

    /// Publishes the head of a cacheable response, and the length of its body if it is announced.
    pub fn open(&self, head: StoredHead, length: Option<u64>) {
        self.fetch.change(|state| {
            state.phase = Phase::Open(Arc::new(head));
            state.length = length;
        });
    }

    /// Ends the fetch because the response is not cacheable. Followers, and later requests for some time,
    /// proceed in parallel.
    pub fn refuse(self, now: Instant) {
        self.fetches.mark_uncacheable(&self.fetch, now);
        self.end(Phase::Uncacheable);
    }

    /// Ends the fetch because the response is of no use. Followers proceed in parallel; later requests do not
    /// know of it.
    pub fn leave(self) {
        self.end(Phase::Uncacheable);
    }

    /// Ends the fetch because the body cannot be recorded. For `time`, requests for the key go past the
    /// cache: each would fail in the same way, after some of its body was written.
    pub fn abandon(self, now: Instant, time: Duration) {
        self.fetches.mark_unrecordable(&self.fetch, now + time);
        self.end(Phase::Uncacheable);
    }

    /// Ends the fetch because a stored response answers it after all, such as after a validation.
    /// Followers look that up.
    pub fn retire(self) {
        self.end(Phase::Failed);
    }

    /// Ends the fetch with a response whose body is a file that the origin has passed. Followers send it from
    /// there, also if it is not stored.
    pub fn pass(self, object: &Arc<Object>) {
        self.end(Phase::Passed(Arc::clone(object)));
    }

    /// Publishes bytes of the body.
    pub fn publish(&self, bytes: Arc<[u8]>) {
        self.fetch.change(|state| state.spool.push(bytes));
    }

    /// Publishes that a file has the first `written` bytes of the body.
    pub fn publish_file(&self, file: &File, written: u64) {
        self.fetch.change(|state| state.spool.set_file(file, written));
    }

    /// Publishes that the body is complete.
    pub fn complete(&self) {
        self.fetch.change(|state| {
            if let Phase::Open(head) = &state.phase {
                state.phase = Phase::Complete(Arc::clone(head));
            }
        });
    }

    /// Ends the fetch after the object is stored, or was not.
    pub fn finish(self) {}

    /// Whether a purge voided the fetch.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.fetch.lock().is_void
    }

    /// Returns a function that is called when the response is about to be stored. It returns false if a purge
    /// has voided the fetch; else it notes that a later purge finds the response in the index.
    pub fn storing(&self) -> impl Fn() -> bool + Send + 'static {
        let fetch = Arc::clone(&self.fetch);
        move || {
            let mut state = fetch.lock();
            state.is_stored |= !state.is_void;
            !state.is_void
        }
    }

    /// Returns the body, if all that was received is in memory.
    #[must_use]
    pub fn in_memory(&self) -> Option<Vec<u8>> {
        self.fetch.lock().spool.in_memory()
    }

    /// Returns the number of bytes published.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.fetch.lock().spool.received()
    }

    /// Returns a follower of this fetch, for its own client.
    #[must_use]
    pub fn follower(&self) -> Follower {
        Follower::new(Arc::clone(&self.fetch))
    }

    fn end(&self, phase: Phase) {
        // Out of the table first: a woken follower that retries must not join this fetch again.
        self.fetches.forget(&self.fetch);
        self.fetch.change(|state| state.phase = phase);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let is_over = match self.fetch.lock().phase {
            Phase::Waiting | Phase::Open(_) => false,
            Phase::Complete(_) | Phase::Passed(_) | Phase::Uncacheable | Phase::Failed => true,
        };
        if is_over {
            self.fetches.forget(&self.fetch);
        } else {
            self.end(Phase::Failed);
        }
    }
}
