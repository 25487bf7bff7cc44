//! Recently completed uploads, for clients that repeat a request because the response was lost.
//!
//! It is a cache, not a record: an upload is unknown after a restart, or after many later ones. Invariants:
//! it is bounded, in all and for each home. An upload is found only for its own home.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::limits::{FINISHED_PER_HOME_MAX, FINISHED_TIME, FINISHED_UPLOADS_MAX};
use crate::owner::HomeOwner;
use crate::path::Path;
use crate::write::{Algorithm, UploadId};

/// A resumable upload that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Its path.
    pub to: Path,
    /// Its size in bytes.
    pub bytes: u64,
    /// Digests of the whole file that it was checked against.
    pub whole: Vec<(Algorithm, Vec<u8>)>,
    /// The client's metadata, unless it was long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metadata: String,
}

struct CompletedUpload {
    owner: HomeOwner,
    id: UploadId,
    at: SystemTime,
    completed: Completed,
}

/// The remembered uploads, the oldest first.
#[derive(Default)]
pub(crate) struct Finished(Mutex<VecDeque<CompletedUpload>>);

impl Finished {
    /// Remembers an upload. Evicts the oldest of its home if that has too many, or else the oldest of all
    /// if all are too many.
    pub(crate) fn note(&self, owner: &HomeOwner, id: UploadId, at: SystemTime, completed: Completed) {
        let mut known = self.known();
        let mut own = (0..known.len()).filter(|index| known[*index].owner == *owner);
        let (first, count) = (own.next(), own.count() + 1);
        if let Some(first) = first.filter(|_| count >= FINISHED_PER_HOME_MAX) {
            known.remove(first);
        } else if known.len() >= FINISHED_UPLOADS_MAX {
            known.pop_front();
        }
        known.push_back(CompletedUpload { owner: owner.clone(), id, at, completed });
    }

    /// Returns an upload of this home, if it is remembered.
    pub(crate) fn of(&self, owner: &HomeOwner, id: UploadId, now: SystemTime) -> Option<Completed> {
        let known = self.known();
        let found = known.iter().find(|known| known.id == id && known.owner == *owner)?;
        // If the clock was set back, the entry counts as new.
        let is_kept = now.duration_since(found.at).map_or(true, |age| age < FINISHED_TIME);
        is_kept.then(|| found.completed.clone())
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<CompletedUpload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
