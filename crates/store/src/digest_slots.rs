//! Slots for digests of whole files, which take as long as reading them.
//!
//! It reads nothing. Invariants: no owner has more digests in progress than its limit, and all together not
//! more than theirs. Dropping a slot anywhere releases it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::JobOwner;

use crate::limits::{DIGESTS_MAX, DIGESTS_PER_ACCOUNT_MAX};

/// Counts the digests that each owner has in progress. Clones share the counts.
#[derive(Clone, Default)]
pub(crate) struct DigestSlots(Arc<Mutex<HashMap<JobOwner, usize>>>);

/// The right to have a digest in progress. Dropping it releases the slot.
pub(crate) struct DigestSlot {
    slots: DigestSlots,
    owner: JobOwner,
}

impl DigestSlots {
    fn counts(&self) -> MutexGuard<'_, HashMap<JobOwner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for an owner; `None` if the owner, or all together, have as many as allowed.
    #[must_use]
    pub(crate) fn take(&self, owner: JobOwner) -> Option<DigestSlot> {
        let mut counts = self.counts();
        if counts.values().sum::<usize>() >= DIGESTS_MAX {
            return None;
        }
        let count = counts.entry(owner).or_default();
        (*count < DIGESTS_PER_ACCOUNT_MAX).then(|| {
            *count += 1;
            DigestSlot { slots: self.clone(), owner }
        })
    }
}

impl Drop for DigestSlot {
    fn drop(&mut self) {
        let mut counts = self.slots.counts();
        if let Some(count) = counts.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_so_many_slots_and_dropped_slots_are_free_again() {
        let slots = DigestSlots::default();
        let [one, other] = [1, 2].map(JobOwner::account);
        let taken: Vec<_> = (0..DIGESTS_PER_ACCOUNT_MAX).map(|_| slots.take(one).unwrap()).collect();
        assert!(slots.take(one).is_none());
        assert!(slots.take(other).is_some());
        drop(taken);
        assert!(slots.take(one).is_some());
        assert!(slots.counts().is_empty());
    }

    #[test]
    fn all_accounts_together_have_so_many_slots() {
        let slots = DigestSlots::default();
        let taken: Vec<_> = (1..).map_while(|account| slots.take(JobOwner::account(account))).collect();
        assert_eq!(taken.len(), DIGESTS_MAX);
    }
}
