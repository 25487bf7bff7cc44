//! The hot set: files that are kept ready to be sent, small ones as bytes and larger ones as descriptors.
//!
//! It opens nothing and decides nothing about who may read; whoever asks it has found that they may. One
//! set serves all threads, under every engine: a set for each loop would hold every hot file once for each
//! core, and a thread for each connection could keep none. Its locks are held for the length of a look into
//! a table, never while the disk is waited for.
//!
//! What must hold: memory and descriptors are bounded by the settings; what is given out was right within
//! the set's time, and no change of a home that was confirmed is missed ([`Edition`]); files that nobody
//! asks for are closed, so that one that was removed gives its space back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_io::{File, Fs, Instant, Io, Stat};
use plimsoll_store::Edition;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::Manner;
use super::encoding::Encodings;
use super::lookup::{FoundFile, Source};
use super::said::Said;
use crate::http::limits::{HOT_CLOSING_FILES_MAX, HOT_ENTRY_BYTES, HOT_ENTRY_BYTES_USUAL};

/// What an operator sets of the hot set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSettings {
    /// Memory that all of it may take, in bytes; none without.
    pub bytes_max: u64,
    /// Larger files that may be kept open. Each counts for its share of the bytes, so that both bounds are
    /// one.
    pub files_max: u64,
    /// How long a name is taken for what it was when it was last looked up. This is how long a change that
    /// another program makes may go unseen.
    pub time: Duration,
}

/// Files that are kept ready.
pub struct HotSet {
    cache: Option<Cache<Key, Arc<Entry>, Weight>>,
    settings: HotSettings,
    hits: AtomicU64,
    misses: AtomicU64,
    closing: SyncSender<File>,
    closed: Mutex<Option<Receiver<File>>>,
}

/// What the hot set has done and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HotFigures {
    /// Files that were sent without the file system's being asked for their name.
    pub hits: u64,
    /// Files that were looked up.
    pub misses: u64,
    /// Files that are kept ready.
    pub entries: u64,
    /// What they take of the budget, in bytes; an open file takes its share.
    pub bytes: u64,
    /// The budget, in bytes.
    pub bytes_max: u64,
}

/// What is asked for: a name in a folder, and what of the request decides which file that is.
#[derive(Clone, Copy, Hash)]
pub(super) struct Wanted<'a> {
    folder: u64,
    variant: u8,
    name: &'a [u8],
}

#[derive(Hash, PartialEq, Eq)]
struct Key {
    folder: u64,
    variant: u8,
    name: Box<[u8]>,
}

/// What a lookup found, and what it is good for.
pub(super) struct Entry {
    stat: Stat,
    media: &'static str,
    said: Arc<Said>,
    body: Held,
    /// The last change of the folder before the lookup.
    change: u64,
    /// When the lookup began.
    checked: Instant,
    /// Whether anybody has asked for it since [`HotSet::sweep`].
    is_asked_for: AtomicBool,
    /// Where its file goes in the end.
    closing: SyncSender<File>,
}

enum Held {
    Bytes(Arc<[u8]>),
    File(File),
    /// Nothing any more.
    Let,
}

/// The moment before a lookup.
pub(super) struct Before {
    change: u64,
    now: Instant,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(edition: Edition, name: &'a [u8], manner: Manner, encodings: Encodings) -> Wanted<'a> {
        let variant = encodings.code() * 2 + u8::from(manner.is_site());
        Wanted { folder: edition.folder, variant, name }
    }
}

impl Equivalent<Key> for Wanted<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        (self.folder, self.variant, self.name) == (key.folder, key.variant, &*key.name)
    }
}

impl Before {
    pub(super) fn new(edition: Edition, io: &Io) -> Before {
        Before::at(edition, io.now())
    }

    pub(super) fn at(edition: Edition, now: Instant) -> Before {
        Before { change: edition.change, now }
    }
}

/// What an entry counts for.
#[derive(Clone)]
struct Weight {
    of_file: u64,
}

impl Weighter<Key, Arc<Entry>> for Weight {
    fn weight(&self, key: &Key, entry: &Arc<Entry>) -> u64 {
        let of_body = match &entry.body {
            Held::Bytes(bytes) => bytes.len() as u64,
            Held::File(_) | Held::Let => self.of_file,
        };
        HOT_ENTRY_BYTES + key.name.len() as u64 + of_body
    }
}

impl HotSet {
    /// An empty set.
    pub fn new(settings: HotSettings) -> Arc<HotSet> {
        let HotSettings { bytes_max, files_max, .. } = settings;
        let cache = (bytes_max > 0).then(|| {
            let items = usize::try_from(bytes_max / HOT_ENTRY_BYTES_USUAL).unwrap_or(usize::MAX);
            let of_file = bytes_max / files_max.clamp(1, bytes_max);
            // Without files, one weighs more than there is room for.
            let of_file = if files_max == 0 { bytes_max + 1 } else { of_file };
            Cache::with_weighter(items.max(1), bytes_max, Weight { of_file })
        });
        let (closing, closed) = sync_channel(HOT_CLOSING_FILES_MAX);
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(HotSet { cache, settings, hits, misses, closing, closed: Mutex::new(Some(closed)) })
    }

    /// A set that keeps nothing.
    pub fn off() -> Arc<HotSet> {
        HotSet::new(HotSettings { bytes_max: 0, files_max: 0, time: Duration::ZERO })
    }

    /// Whether it keeps anything.
    pub(super) fn is_on(&self) -> bool {
        self.cache.is_some()
    }

    /// Its budget, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.settings.bytes_max
    }

    /// Whether a file of so many bytes can be kept and nothing has to go for it. Not to the last byte: the
    /// set is in parts, and they fill unevenly.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let room = self.settings.bytes_max - self.settings.bytes_max / 8;
        self.cache.as_ref().is_some_and(|cache| cache.weight() + HOT_ENTRY_BYTES + bytes <= room)
    }

    /// What it has done and holds.
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

    /// Files that are to be closed by whoever takes this, on a thread that may wait for a disk: a file that
    /// was removed meanwhile is cleared away when it is closed, and a large one takes a second. Once it is
    /// taken, [`HotSet::sweep`] closes none. Too many at once are closed where they are let go.
    pub fn take_closing(&self) -> Option<Receiver<File>> {
        self.closed.lock().ok()?.take()
    }

    /// Lets go of the files that nobody has asked for since the last time, and closes them; what is kept as
    /// bytes stays as long as there is room. It may wait for a disk.
    pub fn sweep(&self) {
        let Some(cache) = &self.cache else { return };
        // Let go when no lock is held.
        let let_go = Mutex::new(Vec::new());
        cache.retain(|_, entry| {
            let is_asked_for = entry.is_asked_for.swap(false, Ordering::Relaxed);
            let stays = is_asked_for || matches!(entry.body, Held::Bytes(_));
            if !stays && let Ok(mut let_go) = let_go.lock() {
                let_go.push(Arc::clone(entry));
            }
            stays
        });
        drop(let_go);
        if let Ok(closed) = self.closed.lock() {
            closed.iter().flat_map(Receiver::try_iter).for_each(drop);
        }
    }

    /// Evicts the open files that have changed since they were looked up, or have been removed: as long as
    /// they are open, the file system cannot free their blocks. It may wait for a disk.
    pub fn evict_changed(&self, fs: &dyn Fs) {
        let Some(cache) = &self.cache else { return };
        // Collected first: no file is asked for its status under the lock of the table.
        let open = Mutex::new(Vec::new());
        cache.retain(|_, entry| {
            if matches!(entry.body, Held::File(_))
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

    /// What is kept of it, if that can be sent as it is.
    pub(super) fn good(&self, wanted: &Wanted<'_>, edition: Edition, io: &Io) -> Option<FoundFile> {
        let entry = self.cache.as_ref()?.get(wanted)?;
        if !entry.is_fresh(edition, io.now(), self.settings.time) || !entry.is_as_it_was(io) {
            return None;
        }
        let found = entry.found()?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Whether anything is kept of what is to be looked up now, however old; counts the lookup.
    pub(super) fn misses(&self, wanted: &Wanted<'_>) -> bool {
        self.misses.fetch_add(1, Ordering::Relaxed);
        self.cache.as_ref().is_some_and(|cache| cache.contains_key(wanted))
    }

    /// Keeps what a lookup that began at `before` has found.
    pub(super) fn keep(&self, wanted: &Wanted<'_>, before: &Before, found: &FoundFile) {
        let Some(cache) = &self.cache else { return };
        let key = Key { folder: wanted.folder, variant: wanted.variant, name: wanted.name.into() };
        cache.insert(key, Arc::new(Entry::new(before, found, self.closing.clone())));
    }

    /// Forgets what is not there any more.
    pub(super) fn forget(&self, wanted: &Wanted<'_>) {
        if let Some(cache) = &self.cache {
            cache.remove(wanted);
        }
    }
}

impl Entry {
    fn new(before: &Before, found: &FoundFile, closing: SyncSender<File>) -> Entry {
        Entry {
            stat: found.stat,
            media: found.media,
            said: Arc::clone(&found.said),
            body: match &found.source {
                Source::Bytes { contents, .. } => Held::Bytes(Arc::clone(contents)),
                Source::File(file) => Held::File(file.clone()),
            },
            change: before.change,
            checked: before.now,
            is_asked_for: AtomicBool::new(true),
            closing,
        }
    }

    fn is_fresh(&self, edition: Edition, now: Instant, time: Duration) -> bool {
        self.change == edition.change && now - self.checked < time
    }

    /// Whether an open file is what it was: it may have been written to, and its length and its tag go with
    /// its bytes. (It is asked of the descriptor: that waits for nothing.)
    fn is_as_it_was(&self, io: &Io) -> bool {
        let Held::File(file) = &self.body else { return true };
        matches!(io.files_at_hand(|fs| fs.stat(file)), Some(Ok(stat)) if stat == self.stat)
    }

    fn has_changed(&self, fs: &dyn Fs) -> bool {
        let Held::File(file) = &self.body else { return false };
        // Removing or replacing a name changes the file's ctime.
        !fs.stat(file).is_ok_and(|stat| stat == self.stat)
    }

    /// The file, to be sent.
    pub(super) fn found(&self) -> Option<FoundFile> {
        if !self.is_asked_for.load(Ordering::Relaxed) {
            self.is_asked_for.store(true, Ordering::Relaxed);
        }
        let source = match &self.body {
            Held::Bytes(bytes) => Source::Bytes { contents: Arc::clone(bytes), file: None },
            Held::File(file) => Source::File(file.clone()),
            Held::Let => return None,
        };
        Some(FoundFile { stat: self.stat, media: self.media, said: Arc::clone(&self.said), source })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Held::File(file) = std::mem::replace(&mut self.body, Held::Let) {
            // Where too many wait already, it is closed here.
            let _ = self.closing.try_send(file);
        }
    }
}
