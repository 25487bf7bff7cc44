//! The index of all objects, in memory.
//!
//! It opens no file. The objects of a URI are found in a table of weak references; two caches hold the
//! strong ones, and evict: one bounds the memory of objects in memory, the other the bytes on disk. Their
//! policy (quick_cache's, close to S3-FIFO) admits a new object to a small queue first, so that a scan of
//! objects that are used once evicts no object that is used again.
//!
//! Invariants: both budgets hold; an object that was evicted, replaced or purged is not found, and its file
//! is queued for removal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::object::{Content, Object};
use super::slices::{PartialHead, SliceSets};
use crate::cache::limits::{FILES_MAX, INDEX_SHARDS, OBJECT_BYTES, VARIANTS_MAX};
use crate::cache::policy::{CacheRequest, Digest, Slice, StoredHead};

type Evictor = Cache<u64, IndexEntry, Weight>;
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
    memory: Evictor,
    disk: Evictor,
    memory_bytes_max: u64,
    disk_bytes_max: u64,
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

/// Sizes of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct IndexFigures {
    /// Objects in memory.
    pub memory_objects: u64,
    /// Their bytes.
    pub memory_bytes: u64,
    /// The budget of memory, in bytes.
    pub memory_bytes_max: u64,
    /// Objects on disk.
    pub disk_objects: u64,
    /// Their bytes; a small file counts for its share of the index.
    pub disk_bytes: u64,
    /// The budget on disk, in bytes.
    pub disk_bytes_max: u64,
}

/// An object in the index. Its last drop queues the object's file for removal.
struct IndexEntry(Arc<Object>);

impl IndexEntry {
    fn new(object: Arc<Object>) -> IndexEntry {
        if let Content::File(file) = &object.content {
            file.hold();
        }
        IndexEntry(object)
    }
}

impl Clone for IndexEntry {
    fn clone(&self) -> IndexEntry {
        IndexEntry::new(Arc::clone(&self.0))
    }
}

impl Drop for IndexEntry {
    fn drop(&mut self) {
        if let Content::File(file) = &self.0.content {
            file.release();
        }
    }
}

/// The weight of an object in its budget.
#[derive(Clone, Debug)]
struct Weight {
    file_bytes_min: u64,
}

impl Weighter<u64, IndexEntry> for Weight {
    fn weight(&self, _: &u64, entry: &IndexEntry) -> u64 {
        match &entry.0.content {
            Content::Memory(_) => entry.0.memory_bytes(),
            Content::File(file) => file.file_bytes().max(self.file_bytes_min),
        }
    }
}

impl Index {
    /// Creates an empty index with its two budgets.
    #[must_use]
    pub fn new(memory_bytes_max: u64, disk_bytes_max: u64) -> Index {
        // A file is charged for its share of the index at least, so that the budget on disk bounds the
        // number of files too.
        let file_bytes_min = disk_bytes_max / FILES_MAX as u64;
        Index {
            shards: (0..INDEX_SHARDS).map(|_| Mutex::default()).collect(),
            memory: evictor(memory_bytes_max, 2 * OBJECT_BYTES, Weight { file_bytes_min: 0 }),
            disk: evictor(disk_bytes_max, file_bytes_min.max(64 << 10), Weight { file_bytes_min }),
            memory_bytes_max,
            disk_bytes_max,
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
        self.evictor_of(object).get(&object.number()).is_some()
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
        variants.retain(|variant| {
            let Some(old) = variant.upgrade() else { return false };
            // A slice is stored only if no whole object is, or if that has changed.
            let stays = !object.replaces(&old);
            if !stays {
                dropped.push(old);
            }
            stays
        });
        if object.head.slice.is_none() {
            variants.insert(0, Arc::downgrade(&object));
        }
        dropped.extend(variants.drain(VARIANTS_MAX.min(variants.len())..).filter_map(|old| old.upgrade()));
        self.evictor_of(&object).insert(object.number(), IndexEntry::new(object));
        self.forget_dead(&mut shard);
        drop(shard);
        self.discard(&dropped);
        true
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
        if self.evictor_of(old).contains_key(&old.number()) {
            self.insert(new, is_wanted);
            self.discard(std::slice::from_ref(old));
        }
    }

    /// Removes one object.
    pub fn remove(&self, object: &Arc<Object>) {
        self.discard(std::slice::from_ref(object));
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
        IndexFigures {
            memory_objects: self.memory.len() as u64,
            memory_bytes: self.memory.weight(),
            memory_bytes_max: self.memory_bytes_max,
            disk_objects: self.disk.len() as u64,
            disk_bytes: self.disk.weight(),
            disk_bytes_max: self.disk_bytes_max,
        }
    }

    /// Returns the number of URIs in the table.
    #[must_use]
    pub fn uris(&self) -> usize {
        let uris = |shard: &Shard| shard.variants.len() + shard.slices.len();
        self.shards.iter().map(|shard| uris(&lock(shard))).sum()
    }

    fn discard(&self, objects: &[Arc<Object>]) {
        for object in objects {
            self.evictor_of(object).remove(&object.number());
        }
    }

    /// Forgets the URIs of evicted objects, when the table has grown to twice the number of objects. The
    /// cost is amortised: as many objects were inserted since the last time.
    fn forget_dead(&self, shard: &mut Shard) {
        let objects = (self.memory.len() + self.disk.len()) / INDEX_SHARDS;
        if shard.variants.len() > 2 * objects + VARIANTS_MAX {
            let is_live = |variant: &Weak<Object>| variant.strong_count() > 0;
            shard.variants.retain(|_, variants| variants.iter().any(is_live));
        }
        if shard.slices.len() > 2 * objects + VARIANTS_MAX {
            shard.slices.forget_dead();
        }
    }

    fn evictor_of(&self, object: &Object) -> &Evictor {
        match object.content {
            Content::Memory(_) => &self.memory,
            Content::File(_) => &self.disk,
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

/// Creates an evictor of one shard: with several, each has a part of the budget, and an object that is
/// larger than a part would be refused.
fn evictor(bytes_max: u64, bytes_usual: u64, weight: Weight) -> Evictor {
    let items = usize::try_from(bytes_max / bytes_usual.max(1)).unwrap_or(usize::MAX).clamp(64, FILES_MAX);
    let mut options = OptionsBuilder::new();
    options.shards(1).estimated_items_capacity(items).weight_capacity(bytes_max);
    match options.build() {
        Ok(options) => {
            Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
        }
        // Capacities are set above, which is all that can be missing.
        Err(_) => Cache::with_weighter(items, bytes_max, weight),
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
