//! The index of all objects, in memory.
//!
//! It opens no file. The objects of a URI are found in a table of weak references; the evictors
//! (`evictors.rs`) hold the strong ones.
//!
//! Invariants: the budgets hold; an object that was evicted, replaced or purged is not found, and its file
//! is queued for removal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::evictors::{CacheSizes, Evictors, IndexEntry, IndexFigures};
use super::object::{Content, Object};
use super::slices::{PartialHead, SliceSets};
use crate::cache::limits::{INDEX_SHARDS, VARIANTS_MAX};
use crate::cache::policy::{CacheRequest, Digest, Slice, StoredHead};

type Variants = Vec<Weak<Object>>;

/// The objects of a part of the keys.
#[derive(Default)]
struct Shard {
    /// Whole objects.
    variants: HashMap<Digest, Variants>,
    /// Slices of partial objects.
    slices: SliceSets,
}

/// The index.
pub struct Index {
    shards: Box<[Mutex<Shard>]>,
    evictors: Evictors,
}

/// The result of a lookup.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// The object that answers the request, if it is usable.
    Found(Arc<Object>),
    /// Objects are stored for the URI, none for these request fields; this is the newest.
    OtherVariants(Arc<Object>),
    /// Nothing is stored for the URI.
    Absent,
}

/// The objects that a purge removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTarget {
    /// All variants of one URI.
    Uri(Digest),
    /// All URIs with this prefix, which is normalised.
    Prefix(Vec<u8>),
    /// All objects with this tag.
    Tag(Vec<u8>),
    /// All objects.
    All,
}

impl Index {
    /// Creates an empty index with these budgets.
    #[must_use]
    pub fn new(sizes: CacheSizes) -> Index {
        Index {
            shards: (0..INDEX_SHARDS).map(|_| Mutex::default()).collect(),
            evictors: Evictors::new(sizes),
        }
    }

    /// Looks up the object for a request, and counts it as used.
    #[must_use]
    pub fn lookup(&self, request: &CacheRequest<'_>) -> Lookup {
        let shard = self.shard(request.key.digest());
        let Some(variants) = shard.variants.get(&request.key.digest()) else { return Lookup::Absent };
        let live = || variants.iter().filter_map(Weak::upgrade);
        let is_held = |object: &Arc<Object>| self.is_held(object);
        if let Some(found) = live().find(|object| object.head.answers(request) && is_held(object)) {
            return Lookup::Found(found);
        }
        live().find(is_held).map_or(Lookup::Absent, Lookup::OtherVariants)
    }

    /// Whether an object is still stored: an evicted one lives on while a response is sent from it. Counts it
    /// as used.
    fn is_held(&self, object: &Object) -> bool {
        self.evictors.of(object).get(&object.number()).is_some()
    }

    /// Looks up the partial object for a request, and one of another variant.
    #[must_use]
    pub fn lookup_partial(&self, request: &CacheRequest<'_>) -> (Option<PartialHead>, Option<PartialHead>) {
        self.shard(request.key.digest()).slices.find(request)
    }

    /// Looks up a slice of a partial object, and counts it as used.
    #[must_use]
    pub fn lookup_slice(&self, of: &PartialHead, number: u64) -> Option<Arc<Object>> {
        let shard = self.shard(of.head.key.digest());
        shard.slices.slice(of, number).filter(|object| self.is_held(object))
    }

    /// Replaces the head of a partial object by a newer one, unless `is_wanted` returns false.
    pub fn refresh_partial(&self, of: &PartialHead, head: StoredHead, is_wanted: impl FnOnce() -> bool) {
        let mut shard = self.shard(of.head.key.digest());
        if is_wanted() {
            shard.slices.refresh(of, head);
        }
    }

    /// Removes a partial object.
    pub fn remove_partial(&self, of: &PartialHead) {
        let removed = self.shard(of.head.key.digest()).slices.remove(&of.head);
        self.discard(&removed);
    }

    /// Stores an object, unless `is_wanted` returns false. That is called while no purge of the URI can
    /// run. Returns whether it did. The newest object that answers a request is the one found.
    pub fn insert(&self, object: Arc<Object>, is_wanted: impl FnOnce() -> bool) -> bool {
        let digest = object.head.key.digest();
        let mut shard = self.shard(digest);
        if !is_wanted() {
            return false;
        }
        let mut dropped = match object.head.slice {
            Some(slice) if self.has_whole(&shard, &object, slice) => return false,
            Some(_) => match shard.slices.insert(&object) {
                Some(dropped) => dropped,
                None => return false,
            },
            None => shard.slices.remove(&object.head),
        };
        let variants = shard.variants.entry(digest).or_default();
        take_replaced(variants, &object, &mut dropped);
        if object.head.slice.is_none() {
            variants.insert(0, Arc::downgrade(&object));
        }
        dropped.extend(variants.drain(VARIANTS_MAX.min(variants.len())..).filter_map(|old| old.upgrade()));
        self.evictors.of(&object).insert(object.number(), IndexEntry::new(object));
        self.forget_dead(&mut shard);
        drop(shard);
        self.discard(&dropped);
        true
    }

    /// Removes the objects that a whole object replaces, and does not store it, unless `is_wanted` returns
    /// false. That is called as for [`Index::insert`].
    pub fn remove_replaced(&self, object: &Object, is_wanted: impl FnOnce() -> bool) {
        let mut shard = self.shard(object.head.key.digest());
        if !is_wanted() {
            return;
        }
        let mut dropped = shard.slices.remove(&object.head);
        if let Some(variants) = shard.variants.get_mut(&object.head.key.digest()) {
            take_replaced(variants, object, &mut dropped);
        }
        drop(shard);
        self.discard(&dropped);
    }

    /// Whether a whole object is stored that makes a slice superfluous: it is newer, or has the same bytes.
    fn has_whole(&self, shard: &Shard, object: &Object, slice: Slice) -> bool {
        let variants = shard.variants.get(&object.head.key.digest()).into_iter().flatten();
        variants.filter_map(Weak::upgrade).any(|whole| {
            let is_newer = whole.head.freshness.is_newer_than(&object.head.freshness);
            let is_same = whole.head.strong_etag() == object.head.strong_etag();
            object.replaces(&whole)
                && (is_newer || (is_same && whole.content.len() == slice.whole))
                && self.is_held(&whole)
        })
    }

    /// Replaces an object by one with the same content and a newer head, if it is still stored.
    pub fn refresh(&self, old: &Arc<Object>, new: Arc<Object>, is_wanted: impl FnOnce() -> bool) {
        // Another response may replace the object at this moment: its file must not be removed in between.
        let file = match &old.content {
            Content::File(file) if !file.hold_again() => return,
            Content::File(file) => Some(file),
            Content::Memory(_) | Content::Passed(_) => None,
        };
        if self.contains(old) {
            self.insert(new, is_wanted);
            self.discard(std::slice::from_ref(old));
        }
        if let Some(file) = file {
            file.release();
        }
    }

    /// Removes one object.
    pub fn remove(&self, object: &Arc<Object>) {
        self.discard(std::slice::from_ref(object));
    }

    /// Removes all objects in files of the cache.
    pub fn remove_files(&self) {
        self.discard(&self.evictors.file_objects());
    }

    /// Removes objects. Returns their number.
    pub fn purge(&self, target: &PurgeTarget) -> u64 {
        let mut purged = Vec::new();
        match target {
            PurgeTarget::Uri(digest) => {
                let mut shard = self.shard(*digest);
                let variants = shard.variants.remove(digest).unwrap_or_default();
                purged.extend(variants.iter().filter_map(Weak::upgrade));
                purged.extend(shard.slices.purge(target));
            }
            _ => {
                for shard in &self.shards {
                    let mut shard = lock(shard);
                    purged.extend(shard.slices.purge(target));
                    for variants in shard.variants.values_mut() {
                        variants.retain(|variant| {
                            let Some(object) = variant.upgrade() else { return false };
                            let stays = !target.includes(&object.head);
                            if !stays {
                                purged.push(object);
                            }
                            stays
                        });
                    }
                    shard.variants.retain(|_, variants| !variants.is_empty());
                }
            }
        }
        self.discard(&purged);
        for object in &purged {
            if let Content::File(file) = &object.content {
                // A lookup or an eviction at this moment may still hold it: the purge does not wait for that.
                file.queue();
            }
        }
        purged.len() as u64
    }

    /// Whether an object of a URI has a file. For another target, true.
    #[must_use]
    pub fn has_files(&self, target: &PurgeTarget) -> bool {
        let PurgeTarget::Uri(digest) = target else { return true };
        let shard = self.shard(*digest);
        let live = shard.variants.get(digest).into_iter().flatten().filter_map(Weak::upgrade);
        let mut live = live.chain(shard.slices.of_key(*digest));
        live.any(|object| matches!(object.content, Content::File(_)))
    }

    /// Returns its sizes.
    #[must_use]
    pub fn figures(&self) -> IndexFigures {
        self.evictors.figures()
    }

    /// Returns the number of URIs in the table.
    #[must_use]
    pub fn uris(&self) -> usize {
        let uris = |shard: &Shard| shard.variants.len() + shard.slices.len();
        self.shards.iter().map(|shard| uris(&lock(shard))).sum()
    }

    /// Returns the objects in files that the origin has passed.
    #[must_use]
    pub fn passed_objects(&self) -> Vec<Arc<Object>> {
        self.evictors.passed_objects()
    }

    /// Returns the number of these.
    #[must_use]
    pub fn passed_count(&self) -> usize {
        self.evictors.passed_count()
    }

    /// Whether an object is stored. Does not count it as used.
    #[must_use]
    pub fn contains(&self, object: &Object) -> bool {
        self.evictors.of(object).contains_key(&object.number())
    }

    fn discard(&self, objects: &[Arc<Object>]) {
        for object in objects {
            self.evictors.of(object).remove(&object.number());
        }
    }

    /// Forgets the URIs of evicted objects, when the table has grown to twice the number of objects. The
    /// cost is amortised: as many objects were inserted since the last time.
    fn forget_dead(&self, shard: &mut Shard) {
        let objects = self.evictors.len() / INDEX_SHARDS;
        if shard.variants.len() > 2 * objects + VARIANTS_MAX {
            let is_live = |variant: &Weak<Object>| variant.strong_count() > 0;
            shard.variants.retain(|_, variants| variants.iter().any(is_live));
        }
        if shard.slices.len() > 2 * objects + VARIANTS_MAX {
            shard.slices.forget_dead();
        }
    }

    fn shard(&self, digest: Digest) -> MutexGuard<'_, Shard> {
        let at = usize::from(digest.as_bytes()[0]) % INDEX_SHARDS;
        lock(&self.shards[at])
    }
}

impl PurgeTarget {
    /// Whether an object with this head is among the targets.
    #[must_use]
    pub fn includes(&self, head: &StoredHead) -> bool {
        let key = &head.key;
        match self {
            PurgeTarget::Uri(digest) => key.digest() == *digest,
            PurgeTarget::Prefix(prefix) => key.uri().starts_with(prefix),
            PurgeTarget::Tag(tag) => head.has_tag(tag),
            PurgeTarget::All => true,
        }
    }
}

/// Moves the objects that an object replaces from `variants` to `dropped`, and forgets evicted ones.
fn take_replaced(variants: &mut Variants, object: &Object, dropped: &mut Vec<Arc<Object>>) {
    variants.retain(|variant| {
        let Some(old) = variant.upgrade() else { return false };
        // A slice is stored only if no whole object is, or if that has changed.
        let stays = !object.replaces(&old);
        if !stays {
            dropped.push(old);
        }
        stays
    });
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
