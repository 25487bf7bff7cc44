//! Uploads that were completed a while ago, for whoever asks once more because the answer was lost.
//!
//! It is a memory and no record: who restarts the server, or has completed many since, is told 404. What must
//! hold: it is bounded, in all and for each account; an upload is there for its owner alone.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use plimsoll_operations::Caller;
use plimsoll_store::{Algorithm, Path, UploadId};

use crate::limits::{FINISHED_PER_ACCOUNT_MAX, FINISHED_TIME, FINISHED_UPLOADS_MAX};

/// An upload that is in its place.
#[derive(Clone)]
pub(crate) struct Complete {
    pub(super) id: UploadId,
    pub(super) to: Path,
    pub(super) bytes: u64,
    /// Digests of the whole that it was checked against.
    pub(super) whole: Vec<(Algorithm, Vec<u8>)>,
}

struct Known {
    account: i64,
    at: SystemTime,
    complete: Complete,
}

/// Those that are remembered, the oldest first.
#[derive(Default)]
pub(crate) struct Finished(Mutex<VecDeque<Known>>);

impl Finished {
    /// Remembers one. The oldest of its account makes room, or of all.
    pub(super) fn note(&self, caller: &Caller, complete: Complete) {
        let (account, at) = (caller.identity.account.id, caller.visitor.io.wall());
        let mut known = self.known();
        let mut own = (0..known.len()).filter(|index| known[*index].account == account);
        let (first, count) = (own.next(), own.count() + 1);
        if let Some(first) = first.filter(|_| count >= FINISHED_PER_ACCOUNT_MAX) {
            known.remove(first);
        } else if known.len() >= FINISHED_UPLOADS_MAX {
            known.pop_front();
        }
        known.push_back(Known { account, at, complete });
    }

    /// One of the caller's own.
    pub(super) fn of(&self, caller: &Caller, id: UploadId) -> Option<Complete> {
        let (account, now) = (caller.identity.account.id, caller.visitor.io.wall());
        let known = self.known();
        let found = known.iter().find(|known| known.account == account && known.complete.id == id)?;
        // After a clock that was set back it is as good as new.
        let is_kept = now.duration_since(found.at).map_or(true, |age| age < FINISHED_TIME);
        is_kept.then(|| found.complete.clone())
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
