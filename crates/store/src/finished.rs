//! Uploads that were completed a while ago, for whoever asks once more because the answer was lost.
//!
//! It is a memory and no record: who restarts the store, or has completed many since, is told that there is
//! none. What must hold: it is bounded, in all and for each home; an upload is there for its own home alone.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::limits::{FINISHED_PER_HOME_MAX, FINISHED_TIME, FINISHED_UPLOADS_MAX};
use crate::owner::Whose;
use crate::path::Path;
use crate::write::{Algorithm, UploadId};

/// A kept upload that is in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// The path that it got.
    pub to: Path,
    /// How many bytes it has.
    pub bytes: u64,
    /// Digests of the whole that it was checked against.
    pub whole: Vec<(Algorithm, Vec<u8>)>,
}

struct Known {
    whose: Whose,
    id: UploadId,
    at: SystemTime,
    completed: Completed,
}

/// Those that are remembered, the oldest first.
#[derive(Default)]
pub(crate) struct Finished(Mutex<VecDeque<Known>>);

impl Finished {
    /// Remembers one. The oldest of its home makes room, or of all.
    pub(crate) fn note(&self, whose: &Whose, id: UploadId, at: SystemTime, completed: Completed) {
        let mut known = self.known();
        let mut own = (0..known.len()).filter(|index| known[*index].whose == *whose);
        let (first, count) = (own.next(), own.count() + 1);
        if let Some(first) = first.filter(|_| count >= FINISHED_PER_HOME_MAX) {
            known.remove(first);
        } else if known.len() >= FINISHED_UPLOADS_MAX {
            known.pop_front();
        }
        known.push_back(Known { whose: whose.clone(), id, at, completed });
    }

    /// One of a home's own.
    pub(crate) fn of(&self, whose: &Whose, id: UploadId, now: SystemTime) -> Option<Completed> {
        let known = self.known();
        let found = known.iter().find(|known| known.id == id && known.whose == *whose)?;
        // After a clock that was set back it is as good as new.
        let is_kept = now.duration_since(found.at).map_or(true, |age| age < FINISHED_TIME);
        is_kept.then(|| found.completed.clone())
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
