//! The cache as a whole: index, files, fetches and counters, shared by all threads.
//!
//! It sends and receives nothing. Invariants: an object is served no more once its purge is confirmed; an
//! error of the disk costs stored objects and never a response.

mod figures;
mod passed;
mod reading;
mod writing;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_io::{File, Fs, Io, Work};
use quick_cache::sync::Cache;

pub use self::figures::{CacheCounts, CacheFigures};
pub use self::reading::{OpenBody, first_part};
pub use self::writing::Reservation;
use super::fetch::{FetchKey, Fetches};
use super::limits::{OBJECT_SHARE, OPEN_FILES_MAX, REFRESHES_MAX};
use super::policy::{CacheRequest, StoredHead, Timestamp};
pub use super::store::CacheSizes;
use super::store::{
    CacheFolder, Checksums, Content, Disk, FoundObject, Index, Lookup, Object, PartialHead, PurgeTarget,
};

/// The cache.
pub struct ResponseCache {
    disk: Arc<Disk>,
    index: Index,
    fetches: Arc<Fetches>,
    /// The open files of objects that were sent lately, by their numbers.
    open_files: Cache<u64, File>,
    sizes: CacheSizes,
    checksums: Checksums,
    counts: CacheCounts,
    /// Bytes on disk that recordings in progress have reserved.
    reserved_bytes: AtomicU64,
    /// Held once by each validation that no client waits for.
    refreshes: Arc<()>,
    /// Nanoseconds since the engine's start until which nothing is written after an error of the disk.
    disk_rests_until: AtomicU64,
    /// Nanoseconds since the engine's start from which passed files are checked again.
    next_check: AtomicU64,
    /// Whether a check is in progress.
    is_checking: AtomicBool,
}

impl ResponseCache {
    /// Opens the cache's folder, and indexes the objects in it. Their ages count from `now`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(
        fs: &dyn Fs,
        folder: &Arc<CacheFolder>,
        sizes: CacheSizes,
        now: Timestamp,
    ) -> io::Result<Arc<ResponseCache>> {
        let (disk, found) = Disk::open(fs, folder)?;
        let cache = ResponseCache {
            disk: Arc::new(disk),
            index: Index::new(sizes),
            fetches: Arc::default(),
            open_files: Cache::new(OPEN_FILES_MAX),
            sizes,
            checksums: folder.checksums(),
            counts: CacheCounts::default(),
            reserved_bytes: AtomicU64::new(0),
            refreshes: Arc::default(),
            disk_rests_until: AtomicU64::new(0),
            next_check: AtomicU64::new(0),
            is_checking: AtomicBool::new(false),
        };
        let latest = found.iter().map(|object| object.head.freshness.received_at()).max();
        for FoundObject { mut head, file } in found {
            head.freshness.resume(now, latest.unwrap_or(now.wall));
            cache.index.insert(Object::new(head, Content::File(Arc::new(file))), || true);
        }
        // Objects for which there is no room any more.
        cache.remove_discarded(fs)?;
        Ok(Arc::new(cache))
    }

    /// Looks up the object for a request.
    #[must_use]
    pub fn lookup(&self, request: &CacheRequest<'_>) -> Lookup {
        self.index.lookup(request)
    }

    /// Returns the fetches in progress.
    #[must_use]
    pub fn fetches(&self) -> &Arc<Fetches> {
        &self.fetches
    }

    /// Looks up the partial object for a request.
    #[must_use]
    pub fn lookup_partial(&self, request: &CacheRequest<'_>) -> Option<PartialHead> {
        self.index.lookup_partial(request).0
    }

    /// Looks up a slice of a partial object.
    #[must_use]
    pub fn lookup_slice(&self, of: &PartialHead, number: u64) -> Option<Arc<Object>> {
        self.index.lookup_slice(of, number)
    }

    /// Replaces the head of a partial object after a validation, unless `is_wanted` returns false.
    pub fn refresh_partial(&self, of: &PartialHead, head: StoredHead, is_wanted: impl FnOnce() -> bool) {
        self.index.refresh_partial(of, head, is_wanted);
    }

    /// Removes a partial object of which there is a newer version. Its files are removed later.
    pub fn forget_partial(&self, of: &PartialHead) {
        self.index.remove_partial(of);
    }

    /// Removes a partial object that must not be served again.
    ///
    /// # Errors
    /// As [`ResponseCache::remove`].
    pub async fn remove_partial(self: &Arc<Self>, io: &Io, of: &PartialHead) -> io::Result<()> {
        self.index.remove_partial(of);
        let cache = Arc::clone(self);
        io.offload(Work::Writes, move |fs| cache.purge_on(fs, || {})).await?
    }

    /// Returns the key under which an absent slice is fetched.
    #[must_use]
    pub fn slice_key(&self, request: &CacheRequest<'_>, number: u64) -> FetchKey {
        let (found, other) = self.index.lookup_partial(request);
        let vary = found.or(other).map(|partial| partial.head.vary.clone()).filter(|vary| !vary.is_empty());
        FetchKey::new(&request.key, vary.map(|vary| vary.select(request.fields))).of_slice(number)
    }

    /// Returns the key under which an absent object is fetched.
    #[must_use]
    pub fn fetch_key(&self, request: &CacheRequest<'_>, lookup: &Lookup) -> FetchKey {
        let selection = match lookup {
            Lookup::Found(object) | Lookup::OtherVariants(object) => selection_of(object, request),
            Lookup::Absent => None,
        };
        FetchKey::new(&request.key, selection)
    }

    /// Returns a permit for a validation that no client waits for, unless too many are in progress.
    #[must_use]
    pub fn begin_refresh(&self) -> Option<Arc<()>> {
        let permit = Arc::clone(&self.refreshes);
        // One reference is that of the cache.
        (Arc::strong_count(&permit) <= REFRESHES_MAX + 1).then_some(permit)
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> &CacheCounts {
        &self.counts
    }

    /// Returns the size of the largest object that is stored, in bytes.
    #[must_use]
    pub fn object_bytes_max(&self) -> u64 {
        self.sizes.disk_bytes_max / OBJECT_SHARE
    }

    /// Stores an object, unless `is_wanted` returns false. Returns whether it did.
    pub fn insert(&self, head: StoredHead, content: Content, is_wanted: impl FnOnce() -> bool) -> bool {
        let is_stored = self.index.insert(Object::new(head, content), is_wanted);
        self.counts.stored.fetch_add(u64::from(is_stored), Ordering::Relaxed);
        is_stored
    }

    /// Replaces the head of a stored object after a validation, unless `is_wanted` returns false. Returns the
    /// object with the new head.
    pub fn refresh(
        &self,
        old: &Arc<Object>,
        head: StoredHead,
        is_wanted: impl FnOnce() -> bool,
    ) -> Arc<Object> {
        let new = Object::new(head, old.content.clone());
        self.index.refresh(old, Arc::clone(&new), is_wanted);
        new
    }

    /// Removes an object that must not be served again.
    ///
    /// # Errors
    /// The operating system's error: the object may come back after a restart.
    pub async fn remove(self: &Arc<Self>, io: &Io, object: &Arc<Object>) -> io::Result<()> {
        self.index.remove(object);
        if object.file_number().is_none() {
            return Ok(());
        }
        let cache = Arc::clone(self);
        io.offload(Work::Writes, move |fs| cache.purge_on(fs, || {})).await?
    }

    /// Removes all objects that the targets include, and voids their fetches. Returns the number of both.
    ///
    /// # Errors
    /// The operating system's error: objects may come back after a restart.
    pub async fn purge(self: &Arc<Self>, io: &Io, targets: impl Into<Vec<PurgeTarget>>) -> io::Result<u64> {
        let (cache, targets) = (Arc::clone(self), targets.into());
        io.offload(Work::Writes, move |fs| cache.purge_all_on(fs, &targets)).await?
    }

    /// Removes the objects of one URI. Only if one of them has a file, or if files of replaced objects wait
    /// for their removal, does this wait for the disk.
    ///
    /// # Errors
    /// As [`ResponseCache::purge`].
    pub async fn invalidate(self: &Arc<Self>, io: &Io, target: PurgeTarget) -> io::Result<()> {
        let has_files = self.index.has_files(&target) || self.disk.has_removals();
        // A fetch in progress may be committing a file: the lock of a purge waits for that.
        if has_files || self.fetches.void(&target).all > 0 {
            return self.purge(io, [target]).await.map(drop);
        }
        self.purge_index(&target);
        Ok(())
    }

    /// Returns the number of purged objects and fetches.
    fn purge_index(&self, target: &PurgeTarget) -> u64 {
        // Fetches first: one that ends in between finds itself void, or its object is purged below.
        let purged = self.fetches.void(target).not_stored + self.index.purge(target);
        self.counts.purged.fetch_add(purged, Ordering::Relaxed);
        purged
    }

    /// As [`ResponseCache::purge`], on a thread that may block.
    pub(super) fn purge_all_on(&self, fs: &dyn Fs, targets: &[PurgeTarget]) -> io::Result<u64> {
        let mut count = 0;
        self.purge_on(fs, || count = targets.iter().map(|target| self.purge_index(target)).sum())?;
        Ok(count)
    }

    fn purge_on(&self, fs: &dyn Fs, purge: impl FnOnce()) -> io::Result<()> {
        for number in self.disk.purge(fs, purge)? {
            self.open_files.remove(&number);
        }
        Ok(())
    }

    pub(super) fn has_files_to_remove(&self) -> bool {
        self.disk.has_queued()
    }

    /// Removes the files of objects that have left the index, without waiting for that.
    pub fn remove_later(self: &Arc<Self>, io: &Io) {
        if !self.has_files_to_remove() {
            return;
        }
        let (cache, now) = (Arc::clone(self), io.now());
        let handed_off = io.hand_off(Work::Writes, move |fs| {
            let _: io::Result<()> = cache.checked(now, Ok(cache.remove_discarded(fs)));
        });
        if handed_off.is_err() {
            tracing::debug!("too much waits for the disk: files are removed later");
        }
    }

    /// Removes the files of evicted objects.
    fn remove_discarded(&self, fs: &dyn Fs) -> io::Result<()> {
        for number in self.disk.remove_discarded(fs)? {
            self.open_files.remove(&number);
        }
        Ok(())
    }
}

fn selection_of(object: &Object, request: &CacheRequest<'_>) -> Option<super::policy::Digest> {
    let vary = &object.head.vary;
    (!vary.is_empty()).then(|| vary.select(request.fields))
}
