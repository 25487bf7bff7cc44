//! The objects that are stored, by the kind of their content, and their eviction.
//!
//! It finds no object ([`super::Index`] does). Three caches hold the strong references: one bounds the memory
//! of objects in memory, one the bytes on disk, and one the number and the bytes of files that the origin has
//! passed. Their policy (quick_cache's, close to S3-FIFO) admits a new object to a small queue first, so that
//! a scan of objects that are used once evicts no object that is used again.
//!
//! Invariant: each of the budgets holds.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::object::{Content, Object};
use crate::cache::limits::{FILES_MAX, HOT_SHARE, OBJECT_BYTES};

pub(super) type Evictor = Cache<u64, IndexEntry, Weight>;

/// The budgets of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Bytes on disk, and, counted separately, of files that the origin has passed.
    pub disk_bytes_max: u64,
    /// Bytes of memory for small objects.
    pub memory_bytes_max: u64,
    /// Files that the origin has passed and that stay open.
    pub passed_files_max: u64,
}

/// The evictors.
pub(super) struct Evictors {
    memory: Evictor,
    disk: Evictor,
    passed: Evictor,
    sizes: CacheSizes,
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
    /// Objects in files that the origin has passed.
    pub passed_objects: u64,
    /// The largest number of such files.
    pub passed_objects_max: u64,
    /// Their bytes; a small file counts for its share of the number.
    pub passed_bytes: u64,
    /// The budget of these, in bytes.
    pub passed_bytes_max: u64,
}

/// An object in the index. Its last drop queues the object's file for removal.
pub(super) struct IndexEntry(Arc<Object>);

impl IndexEntry {
    pub(super) fn new(object: Arc<Object>) -> IndexEntry {
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

impl Evictors {
    pub(super) fn new(sizes: CacheSizes) -> Evictors {
        let CacheSizes { memory_bytes_max, disk_bytes_max, passed_files_max } = sizes;
        // A file is charged for its share of the index at least, so that a budget in bytes bounds the number
        // of files too.
        let file_bytes_min = disk_bytes_max / FILES_MAX as u64;
        let passed_bytes_min = match passed_files_max {
            // A file of more than the whole budget is not admitted.
            0 => disk_bytes_max.saturating_add(1),
            // Rounded up, so that there is no room for one file more.
            files_max => disk_bytes_max.div_ceil(files_max),
        };
        Evictors {
            memory: evictor(memory_bytes_max, 2 * OBJECT_BYTES, Weight { file_bytes_min: 0 }),
            disk: evictor(disk_bytes_max, file_bytes_min.max(64 << 10), Weight { file_bytes_min }),
            passed: evictor(disk_bytes_max, passed_bytes_min, Weight { file_bytes_min: passed_bytes_min }),
            sizes,
        }
    }

    /// Returns the evictor of an object.
    pub(super) fn of(&self, object: &Object) -> &Evictor {
        match object.content {
            Content::Memory(_) => &self.memory,
            Content::File(_) => &self.disk,
            Content::Passed(_) => &self.passed,
        }
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.memory.len() + self.disk.len() + self.passed.len()
    }

    /// Returns the number of objects in files that the origin has passed.
    pub(super) fn passed_count(&self) -> usize {
        self.passed.len()
    }

    /// Returns these objects.
    pub(super) fn passed_objects(&self) -> Vec<Arc<Object>> {
        self.passed.iter().map(|(_, entry)| Arc::clone(&entry.0)).collect()
    }

    /// Returns the objects in files of the cache.
    pub(super) fn file_objects(&self) -> Vec<Arc<Object>> {
        self.disk.iter().map(|(_, entry)| Arc::clone(&entry.0)).collect()
    }

    /// Returns the sizes.
    pub(super) fn figures(&self) -> IndexFigures {
        IndexFigures {
            memory_objects: self.memory.len() as u64,
            memory_bytes: self.memory.weight(),
            memory_bytes_max: self.sizes.memory_bytes_max,
            disk_objects: self.disk.len() as u64,
            disk_bytes: self.disk.weight(),
            disk_bytes_max: self.sizes.disk_bytes_max,
            passed_objects: self.passed.len() as u64,
            passed_objects_max: self.sizes.passed_files_max,
            passed_bytes: self.passed.weight(),
            passed_bytes_max: self.sizes.disk_bytes_max,
        }
    }
}

/// The weight of an object in its budget.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    file_bytes_min: u64,
}

impl Weighter<u64, IndexEntry> for Weight {
    fn weight(&self, _: &u64, entry: &IndexEntry) -> u64 {
        match &entry.0.content {
            Content::Memory(_) => entry.0.memory_bytes(),
            Content::File(file) => file.file_bytes().max(self.file_bytes_min),
            Content::Passed(file) => file.content_bytes().max(self.file_bytes_min),
        }
    }
}

/// Creates an evictor of one shard: with several, each has a part of the budget, and an object that is
/// larger than a part would be refused.
fn evictor(bytes_max: u64, bytes_usual: u64, weight: Weight) -> Evictor {
    let items = usize::try_from(bytes_max / bytes_usual.max(1)).unwrap_or(usize::MAX).clamp(64, FILES_MAX);
    let mut options = OptionsBuilder::new();
    options.shards(1).estimated_items_capacity(items).weight_capacity(bytes_max).hot_allocation(HOT_SHARE);
    match options.build() {
        Ok(options) => {
            Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
        }
        // Capacities are set above, which is all that can be missing.
        Err(_) => Cache::with_weighter(items, bytes_max, weight),
    }
}
