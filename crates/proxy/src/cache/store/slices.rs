//! The slices of partial objects, in the index.
//!
//! A slice is an object with a part of a representation as its content. Its head names the slice and the
//! whole length. Invariants: the slices of a set have one strong entity tag and one whole length, so that
//! they are parts of the same bytes; a slice with another tag or length drops those before it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use super::index::PurgeTarget;
use super::object::Object;
use crate::cache::limits::VARIANTS_MAX;
use crate::cache::policy::{CacheRequest, Digest, StoredHead};

/// The head of a partial object, of which slices are stored.
#[derive(Clone, Debug)]
pub struct PartialHead {
    /// The head of the newest response with a slice of it.
    pub head: Arc<StoredHead>,
    /// The length of the whole, in bytes.
    pub whole: u64,
}

/// The slices of one representation.
struct SliceSet {
    partial: PartialHead,
    slices: BTreeMap<u64, Weak<Object>>,
}

/// The sets of all keys of a shard.
#[derive(Default)]
pub(super) struct SliceSets(HashMap<Digest, Vec<SliceSet>>);

impl SliceSets {
    /// Returns the head of the partial object that answers a request, or else of another variant.
    pub(super) fn find(&self, request: &CacheRequest<'_>) -> (Option<PartialHead>, Option<PartialHead>) {
        let sets = self.0.get(&request.key.digest()).map_or(&[][..], Vec::as_slice);
        let found = sets.iter().find(|set| set.partial.head.answers(request));
        (found.map(|set| set.partial.clone()), sets.first().map(|set| set.partial.clone()))
    }

    /// Returns a slice of a partial object.
    pub(super) fn slice(&self, of: &PartialHead, number: u64) -> Option<Arc<Object>> {
        let sets = self.0.get(&of.head.key.digest())?;
        sets.iter().find(|set| set.partial.is_same(of))?.slices.get(&number)?.upgrade()
    }

    /// Adds a slice. Returns the objects that it drops, or `None` if it is older than the set.
    pub(super) fn insert(&mut self, object: &Arc<Object>) -> Option<Vec<Arc<Object>>> {
        let slice = object.head.slice?;
        let new = PartialHead { head: Arc::new(object.head.clone()), whole: slice.whole };
        let sets = self.0.entry(object.head.key.digest()).or_default();
        let weak = Arc::downgrade(object);
        let Some(set) = sets.iter_mut().find(|set| set.partial.is_same_variant(&object.head)) else {
            let mut dropped = Vec::new();
            if sets.len() >= VARIANTS_MAX {
                dropped.extend(sets.remove(0).into_objects());
            }
            sets.push(SliceSet { partial: new, slices: BTreeMap::from([(slice.number, weak)]) });
            return Some(dropped);
        };
        let is_newer = !set.partial.head.freshness.is_newer_than(&new.head.freshness);
        if set.partial.is_same(&new) {
            if is_newer {
                set.partial = new;
            }
            let old = set.slices.insert(slice.number, weak).and_then(|old| old.upgrade());
            set.forget_dead();
            return Some(old.into_iter().collect());
        }
        if !is_newer {
            return None;
        }
        let slices = BTreeMap::from([(slice.number, weak)]);
        let old = std::mem::replace(set, SliceSet { partial: new, slices });
        Some(old.into_objects().collect())
    }

    /// Replaces the head of a partial object after a validation, if it is still there.
    pub(super) fn refresh(&mut self, of: &PartialHead, head: StoredHead) {
        let sets = self.0.get_mut(&of.head.key.digest());
        if let Some(set) = sets.into_iter().flatten().find(|set| set.partial.is_same(of)) {
            set.partial.head = Arc::new(head);
        }
    }

    /// Removes the set of the variant that a response is. Returns its objects.
    pub(super) fn remove(&mut self, head: &StoredHead) -> Vec<Arc<Object>> {
        let Some(sets) = self.0.get_mut(&head.key.digest()) else { return Vec::new() };
        let is_removed = |set: &mut SliceSet| set.partial.is_same_variant(head);
        sets.extract_if(.., is_removed).flat_map(SliceSet::into_objects).collect()
    }

    /// Removes the sets that a purge includes. Returns their objects.
    pub(super) fn purge(&mut self, target: &PurgeTarget) -> Vec<Arc<Object>> {
        if let PurgeTarget::Uri(digest) = target {
            let sets = self.0.remove(digest).unwrap_or_default();
            return sets.into_iter().flat_map(SliceSet::into_objects).collect();
        }
        let is_purged = |set: &mut SliceSet| {
            let mut slices = set.slices.values().filter_map(Weak::upgrade);
            // A start finds the heads of the slices, not the newest one.
            target.includes(&set.partial.head) || slices.any(|object| target.includes(&object.head))
        };
        let purged = self.0.values_mut().flat_map(|sets| sets.extract_if(.., is_purged).collect::<Vec<_>>());
        let purged = purged.flat_map(SliceSet::into_objects).collect();
        self.0.retain(|_, sets| !sets.is_empty());
        purged
    }

    /// Iterates over the objects of a key.
    pub(super) fn of_key(&self, digest: Digest) -> impl Iterator<Item = Arc<Object>> {
        let slices = self.0.get(&digest).into_iter().flatten().flat_map(|set| set.slices.values());
        slices.filter_map(Weak::upgrade)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets partial objects of which no slice is left.
    pub(super) fn forget_dead(&mut self) {
        self.0.retain(|_, sets| {
            sets.retain(|set| set.slices.values().any(|slice| slice.strong_count() > 0));
            !sets.is_empty()
        });
    }
}

impl SliceSet {
    fn into_objects(self) -> impl Iterator<Item = Arc<Object>> {
        self.slices.into_values().filter_map(|slice| slice.upgrade())
    }

    /// Forgets evicted slices, each time that the number of slices has doubled.
    fn forget_dead(&mut self) {
        if self.slices.len().is_power_of_two() {
            self.slices.retain(|_, slice| slice.strong_count() > 0);
        }
    }
}

impl PartialHead {
    /// Returns the head of a whole object.
    #[must_use]
    pub fn of_whole(object: &Object) -> PartialHead {
        PartialHead { head: Arc::new(object.head.clone()), whole: object.content.len() }
    }

    /// Whether both are the same bytes.
    #[must_use]
    pub fn is_same(&self, other: &PartialHead) -> bool {
        let etag = self.head.strong_etag();
        self.whole == other.whole
            && etag.is_some()
            && etag == other.head.strong_etag()
            && self.is_same_variant(&other.head)
    }

    fn is_same_variant(&self, head: &StoredHead) -> bool {
        self.head.key == head.key && self.head.vary == head.vary && self.head.selection == head.selection
    }
}
