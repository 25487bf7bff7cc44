//! The hot cache: small files as bytes, larger ones as open descriptors.
//!
//! It opens nothing and checks no permission: its callers do. One cache serves all threads, under every
//! engine: a cache for each loop would store every hot file once per core, and a thread for each connection
//! could cache nothing. Its locks are held for the length of a table lookup, never during a disk access.
//!
//! Invariants: memory and descriptors are bounded by the settings. A hit was valid within the settings'
//! time, and every confirmed change of a home is respected ([`Generation`]). Unused files are closed, so
//! that a removed file releases its space.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_io::{File, Fs, Instant, Io, Stat};
use plimsoll_store::Generation;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::encoding::Encodings;
use crate::limits::{HOT_CLOSING_FILES_MAX, HOT_ENTRY_BYTES, HOT_ENTRY_BYTES_USUAL};
use crate::lookup::{LocalSource, Representation};
use crate::{FileFields, Visibility};

/// The settings of the hot cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSettings {
    /// Memory for all of it, in bytes; 0 disables the cache.
    pub bytes_max: u64,
    /// Larger files that may be open. Each is charged `bytes_max / files_max` bytes, so one budget enforces
    /// both limits.
    pub files_max: u64,
    /// Time that the result of a lookup is valid. A change by another program is visible after this time.
    pub time: Duration,
}

/// A cache of files, shared by all threads.
pub struct HotCache {
    cache: Option<Cache<StoredKey, Arc<Entry>, Weight>>,
    settings: HotSettings,
    hits: AtomicU64,
    misses: AtomicU64,
    closing: SyncSender<File>,
    closed: Mutex<Option<Receiver<File>>>,
}

/// Counters and sizes of the hot cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HotFigures {
    /// Files that were sent without a lookup in the file system.
    pub hits: u64,
    /// Files that were looked up in the file system.
    pub misses: u64,
    /// Cached files.
    pub entries: u64,
    /// Their size in the budget, in bytes; an open file counts for its share.
    pub bytes: u64,
    /// The budget, in bytes.
    pub bytes_max: u64,
}

/// The key of an entry: a name in a folder, and the variant that the request selects.
#[derive(Clone, Copy, Hash)]
pub(crate) struct CacheKey<'a> {
    folder: u64,
    variant: u8,
    name: &'a [u8],
}

#[derive(Hash, PartialEq, Eq)]
struct StoredKey {
    folder: u64,
    variant: u8,
    name: Box<[u8]>,
}

/// The result of a lookup, and its validity.
struct Entry {
    stat: Stat,
    media: &'static str,
    fields: Arc<FileFields>,
    body: CachedBody,
    /// The last change of the folder before the lookup.
    change: u64,
    /// The time when the lookup started.
    checked: Instant,
    /// Whether a request has used it since the last [`HotCache::evict_idle`].
    is_used: AtomicBool,
    /// The queue in which its file is closed.
    closing: SyncSender<File>,
}

enum CachedBody {
    Bytes(Arc<[u8]>),
    File(File),
    /// Moved out, to be closed.
    Taken,
}

/// The state of the folder and the time, before a lookup.
pub(crate) struct LookupStart {
    change: u64,
    now: Instant,
}

impl<'a> CacheKey<'a> {
    pub(crate) fn new(
        generation: Generation,
        name: &'a [u8],
        visibility: Visibility,
        encodings: Encodings,
    ) -> CacheKey<'a> {
        let variant = encodings.code() * 3 + visibility.code();
        CacheKey { folder: generation.folder, variant, name }
    }
}

impl Equivalent<StoredKey> for CacheKey<'_> {
    fn equivalent(&self, key: &StoredKey) -> bool {
        (self.folder, self.variant, self.name) == (key.folder, key.variant, &*key.name)
    }
}

impl LookupStart {
    pub(crate) fn new(generation: Generation, io: &Io) -> LookupStart {
        LookupStart::at(generation, io.now())
    }

    pub(crate) fn at(generation: Generation, now: Instant) -> LookupStart {
        LookupStart { change: generation.change, now }
    }
}

/// The weight of an entry in the budget.
#[derive(Clone)]
struct Weight {
    of_file: u64,
}

impl Weighter<StoredKey, Arc<Entry>> for Weight {
    fn weight(&self, key: &StoredKey, entry: &Arc<Entry>) -> u64 {
        let of_body = match &entry.body {
            CachedBody::Bytes(bytes) => bytes.len() as u64,
            CachedBody::File(_) | CachedBody::Taken => self.of_file,
        };
        HOT_ENTRY_BYTES + key.name.len() as u64 + of_body
    }
}

impl HotCache {
    /// Creates an empty cache.
    pub fn new(settings: HotSettings) -> Arc<HotCache> {
        let HotSettings { bytes_max, files_max, .. } = settings;
        let cache = (bytes_max > 0).then(|| {
            let items = usize::try_from(bytes_max / HOT_ENTRY_BYTES_USUAL).unwrap_or(usize::MAX);
            let of_file = bytes_max / files_max.clamp(1, bytes_max);
            // If no files may be open, one weighs more than the whole budget.
            let of_file = if files_max == 0 { bytes_max + 1 } else { of_file };
            Cache::with_weighter(items.max(1), bytes_max, Weight { of_file })
        });
        let (closing, closed) = sync_channel(HOT_CLOSING_FILES_MAX);
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(HotCache { cache, settings, hits, misses, closing, closed: Mutex::new(Some(closed)) })
    }

    /// Creates a cache that stores nothing.
    pub fn off() -> Arc<HotCache> {
        HotCache::new(HotSettings { bytes_max: 0, files_max: 0, time: Duration::ZERO })
    }

    /// Whether it is enabled.
    pub(crate) fn is_on(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns the budget, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.settings.bytes_max
    }

    /// Whether a file of so many bytes fits without an eviction. Leaves a reserve, because the cache is
    /// split into shards that fill unevenly.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let room = self.settings.bytes_max - self.settings.bytes_max / 8;
        self.cache.as_ref().is_some_and(|cache| cache.weight() + HOT_ENTRY_BYTES + bytes <= room)
    }

    /// Returns its counters and sizes.
    pub fn figures(&self) -> HotFigures {
        let (entries, bytes) = self.cache.as_ref().map_or((0, 0), |cache| (cache.len(), cache.weight()));
        HotFigures {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: entries as u64,
            bytes,
            bytes_max: self.settings.bytes_max,
        }
    }

    /// Returns the queue of evicted files, once. The caller closes them on a thread that may block on a
    /// disk: closing a removed file frees its blocks, which takes a second for a large one. After that,
    /// [`HotCache::evict_idle`] closes none. When the queue is full, a file is closed where it is evicted.
    pub fn take_closing(&self) -> Option<Receiver<File>> {
        self.closed.lock().ok()?.take()
    }

    /// Evicts the open files that no request has used since the last call, and closes them. Bytes stay
    /// cached as long as the budget allows. It may block on a disk.
    pub fn evict_idle(&self) {
        let Some(cache) = &self.cache else { return };
        // Dropped after the lock is released.
        let evicted = Mutex::new(Vec::new());
        cache.retain(|_, entry| {
            let is_used = entry.is_used.swap(false, Ordering::Relaxed);
            let stays = is_used || matches!(entry.body, CachedBody::Bytes(_));
            if !stays && let Ok(mut evicted) = evicted.lock() {
                evicted.push(Arc::clone(entry));
            }
            stays
        });
        drop(evicted);
        if let Ok(closed) = self.closed.lock() {
            closed.iter().flat_map(Receiver::try_iter).for_each(drop);
        }
    }

    /// Evicts the open files that have changed since they were looked up, or have been removed: as long as
    /// they are open, the file system cannot free their blocks. It may block on a disk.
    pub fn evict_changed(&self, fs: &dyn Fs) {
        let Some(cache) = &self.cache else { return };
        // Collected first, so that no fstat(2) runs under the lock of the table.
        let open = Mutex::new(Vec::new());
        cache.retain(|_, entry| {
            if matches!(entry.body, CachedBody::File(_))
                && let Ok(mut open) = open.lock()
            {
                open.push(Arc::clone(entry));
            }
            true
        });
        let mut open = open.into_inner().unwrap_or_default();
        open.retain(|entry| entry.has_changed(fs));
        if !open.is_empty() {
            cache.retain(|_, entry| !open.iter().any(|changed| Arc::ptr_eq(changed, entry)));
        }
    }

    /// Returns the cached file, if it is still valid.
    pub(crate) fn get(
        &self,
        key: &CacheKey<'_>,
        generation: Generation,
        io: &Io,
    ) -> Option<Representation<LocalSource>> {
        let entry = self.cache.as_ref()?.get(key)?;
        if !entry.is_fresh(generation, io.now(), self.settings.time) || !entry.is_unchanged(io) {
            return None;
        }
        let found = entry.representation()?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Counts a lookup in the file system. Returns whether the key has an entry, however old.
    pub(crate) fn miss(&self, key: &CacheKey<'_>) -> bool {
        self.misses.fetch_add(1, Ordering::Relaxed);
        self.cache.as_ref().is_some_and(|cache| cache.contains_key(key))
    }

    /// Stores the result of a lookup that started at `before`.
    pub(crate) fn insert(
        &self,
        key: &CacheKey<'_>,
        before: &LookupStart,
        found: &Representation<LocalSource>,
    ) {
        let Some(cache) = &self.cache else { return };
        let stored = StoredKey { folder: key.folder, variant: key.variant, name: key.name.into() };
        cache.insert(stored, Arc::new(Entry::new(before, found, self.closing.clone())));
    }

    /// Removes the entry of a file that no longer exists.
    pub(crate) fn remove(&self, key: &CacheKey<'_>) {
        if let Some(cache) = &self.cache {
            cache.remove(key);
        }
    }
}

impl Entry {
    fn new(before: &LookupStart, found: &Representation<LocalSource>, closing: SyncSender<File>) -> Entry {
        Entry {
            stat: found.stat,
            media: found.media,
            fields: Arc::clone(&found.fields),
            body: match &found.source {
                LocalSource::Bytes { contents, .. } => CachedBody::Bytes(Arc::clone(contents)),
                LocalSource::File(file) => CachedBody::File(file.clone()),
            },
            change: before.change,
            checked: before.now,
            is_used: AtomicBool::new(true),
            closing,
        }
    }

    fn is_fresh(&self, generation: Generation, now: Instant, time: Duration) -> bool {
        self.change == generation.change && now - self.checked < time
    }

    /// Whether an open file is unchanged: its length and tag must belong to the bytes that are sent. An
    /// fstat(2) of an open descriptor does not block.
    fn is_unchanged(&self, io: &Io) -> bool {
        let CachedBody::File(file) = &self.body else { return true };
        matches!(io.try_files(|fs| fs.stat(file)), Some(Ok(stat)) if stat == self.stat)
    }

    fn has_changed(&self, fs: &dyn Fs) -> bool {
        let CachedBody::File(file) = &self.body else { return false };
        // Removing or replacing a name changes the file's ctime.
        !fs.stat(file).is_ok_and(|stat| stat == self.stat)
    }

    /// Returns the file, to be sent.
    fn representation(&self) -> Option<Representation<LocalSource>> {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        let source = match &self.body {
            CachedBody::Bytes(bytes) => LocalSource::Bytes { contents: Arc::clone(bytes), file: None },
            CachedBody::File(file) => LocalSource::File(file.clone()),
            CachedBody::Taken => return None,
        };
        Some(Representation { stat: self.stat, media: self.media, fields: Arc::clone(&self.fields), source })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let CachedBody::File(file) = std::mem::replace(&mut self.body, CachedBody::Taken) {
            // If the queue is full, the file is closed here.
            let _ = self.closing.try_send(file);
        }
    }
}
