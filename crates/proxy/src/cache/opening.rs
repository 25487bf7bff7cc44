//! Opens the cache when the first request needs it.
//!
//! Reading the heads of many stored objects takes seconds. Invariants: the folder is opened once; requests
//! wait for it a short time only, and are forwarded without the cache meanwhile; a folder that cannot be
//! opened is tried again, but not by each request; resources that requests invalidate meanwhile are removed
//! before the cache is used.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::{Elapsed, Fs, Instant, Io, Work};

use super::limits::{DISK_RETRY_TIME, MISSED_INVALIDATIONS_MAX, OPENING_TIME_MAX};
use super::policy::{Digest, ResourceKey, Timestamp};
use super::response_cache::{CacheSizes, ResponseCache};
use super::store::{CacheFolder, PurgeTarget};

/// A cache that opens itself.
pub struct CacheOpener {
    folder: Arc<CacheFolder>,
    sizes: CacheSizes,
    opened: OnceLock<Arc<ResponseCache>>,
    progress: Mutex<Progress>,
    missed: Mutex<Missed>,
}

/// The resources that were invalidated before the cache is open.
#[derive(Default)]
struct Missed {
    digests: Vec<Digest>,
    /// Whether there were more than the limit.
    is_over: bool,
}

impl Missed {
    fn add(&mut self, digest: Digest) {
        if self.digests.len() < MISSED_INVALIDATIONS_MAX {
            self.digests.push(digest);
        } else {
            self.is_over = true;
        }
    }

    fn take(&mut self) -> Vec<PurgeTarget> {
        let Missed { digests, is_over } = std::mem::take(self);
        if is_over {
            return vec![PurgeTarget::All];
        }
        digests.into_iter().map(PurgeTarget::Uri).collect()
    }
}

enum Progress {
    /// The folder may be opened from this time on.
    Closed(Instant),
    /// A worker opens it. Holds the requests that wait.
    Opening(Vec<Waker>),
    Open,
}

impl CacheOpener {
    /// Creates a cache in a folder that no other process uses. It does not open the folder.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, sizes: CacheSizes) -> Arc<CacheOpener> {
        CacheOpener::of(CacheFolder::new(path), sizes)
    }

    /// Creates a cache in a folder. It does not open the folder.
    #[must_use]
    pub fn of(folder: Arc<CacheFolder>, sizes: CacheSizes) -> Arc<CacheOpener> {
        let progress = Mutex::new(Progress::Closed(Instant::default()));
        let (opened, missed) = (OnceLock::new(), Mutex::default());
        Arc::new(CacheOpener { folder, sizes, opened, progress, missed })
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &CacheFolder {
        &self.folder
    }

    /// Removes the objects of these resources: now if the cache is open, otherwise before it is used. Until
    /// then, they are remembered in memory only.
    pub async fn invalidate(&self, io: &Io, keys: &[ResourceKey]) {
        let Some(cache) = self.open_or_remember(keys) else { return };
        for key in keys {
            if let Err(error) = cache.invalidate(io, PurgeTarget::Uri(key.digest())).await {
                tracing::warn!(%error, "the cache cannot remove an object");
            }
        }
    }

    fn open_or_remember(&self, keys: &[ResourceKey]) -> Option<Arc<ResponseCache>> {
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened.get().map(Arc::clone);
        if opened.is_none() {
            keys.iter().for_each(|key| missed.add(key.digest()));
        }
        opened
    }

    /// Returns the cache, if it is open.
    #[must_use]
    pub fn get(&self) -> Option<&Arc<ResponseCache>> {
        self.opened.get()
    }

    /// Returns the cache. Opens it if it is not open, and waits for that a short time.
    pub async fn open(self: &Arc<Self>, io: &Io) -> Option<Arc<ResponseCache>> {
        if let Some(cache) = self.opened.get() {
            return Some(Arc::clone(cache));
        }
        self.start(io);
        let deadline = io.deadline();
        deadline.after(OPENING_TIME_MAX);
        let waited: Result<(), Elapsed> = deadline.within(self.wait()).await;
        waited.ok().and_then(|()| self.opened.get().map(Arc::clone))
    }

    /// Starts to open the folder, unless that is in progress or has failed shortly before.
    fn start(self: &Arc<Self>, io: &Io) {
        let mut progress = self.lock();
        if !matches!(*progress, Progress::Closed(from) if io.now() >= from) {
            return;
        }
        *progress = Progress::Opening(Vec::new());
        drop(progress);
        let (opener, now) = (Arc::clone(self), Timestamp::now(io));
        if io.hand_off(Work::Chores, move |fs| opener.open_on(fs, now)).is_err() {
            self.end(Progress::Closed(now.steady));
        }
    }

    fn open_on(&self, fs: &dyn Fs, now: Timestamp) {
        match ResponseCache::open(fs, &self.folder, self.sizes, now) {
            Ok(cache) => {
                self.publish(fs, cache);
                self.end(Progress::Open);
            }
            Err(error) => {
                tracing::error!(folder = %self.folder.path().display(), %error, "cannot open the cache");
                self.end(Progress::Closed(now.steady + DISK_RETRY_TIME));
            }
        }
    }

    /// Removes the resources that were invalidated meanwhile, and makes the cache available.
    fn publish(&self, fs: &dyn Fs, cache: Arc<ResponseCache>) {
        loop {
            let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
            let targets = missed.take();
            if targets.is_empty() {
                // Under the lock: a request that finds the cache closed has added its resources before this.
                let _: &Arc<ResponseCache> = self.opened.get_or_init(|| cache);
                return;
            }
            drop(missed);
            if let Err(error) = cache.purge_all_on(fs, &targets) {
                tracing::warn!(%error, "the cache cannot remove an object");
            }
        }
    }

    fn end(&self, progress: Progress) {
        let before = std::mem::replace(&mut *self.lock(), progress);
        if let Progress::Opening(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until the folder is not being opened.
    async fn wait(&self) {
        poll_fn(|cx| match &mut *self.lock() {
            Progress::Opening(wakers) => {
                if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
            Progress::Closed(_) | Progress::Open => Poll::Ready(()),
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_io::sim::{Faults, Host, Sim};
    use plimsoll_wire::http::head::Method;

    use super::*;
    use crate::cache::policy::{CacheRequest, FieldLines, stored_for_tests as stored};
    use crate::cache::store::{Content, Lookup};

    const ROOT: &str = "/cache";
    const SIZES: CacheSizes =
        CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 1 << 20, passed_files_max: 0 };

    fn key(path: &str) -> ResourceKey {
        ResourceKey::new("http", b"a", path.as_bytes())
    }

    fn is_stored(cache: &ResponseCache, path: &str) -> bool {
        let request = CacheRequest::new(Method::Get, key(path), FieldLines::default(), false);
        matches!(cache.lookup(&request), Lookup::Found(_))
    }

    /// Stores two objects in files, and returns a host with their disk.
    fn filled() -> (Sim, Host) {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("one");
        let now = Timestamp::now(&host.io());
        let cache = ResponseCache::open(&**host.disk(), &CacheFolder::new(ROOT), SIZES, now).unwrap();
        for path in ["/x", "/y"] {
            let mut writer = cache.create_on(&**host.disk()).unwrap();
            writer.append(&**host.disk(), b"content").unwrap();
            let head = stored(&format!("http://a{path}"), "", "Cache-Control: max-age=9\r\n");
            assert!(cache.commit_on(&**host.disk(), Instant::default(), writer, &head, || true).unwrap());
        }
        std::mem::forget(cache);
        (sim, host)
    }

    #[test]
    fn resources_that_were_invalidated_before_the_cache_is_open_are_not_found_in_it() {
        let (sim, host) = filled();
        let (opener, io) = (CacheOpener::new(ROOT, SIZES), host.io());
        sim.run(&host, async move {
            opener.invalidate(&io, &[key("/x")]).await;
            assert!(opener.get().is_none(), "that does not open it");
            let cache = opener.open(&io).await.unwrap();
            assert!(!is_stored(&cache, "/x") && is_stored(&cache, "/y"));
            opener.invalidate(&io, &[key("/y")]).await;
            assert!(!is_stored(&cache, "/y"), "the open cache removes at once");
        });
    }

    #[test]
    fn more_resources_than_the_limit_empty_the_cache() {
        for (count, stays) in [(MISSED_INVALIDATIONS_MAX, true), (MISSED_INVALIDATIONS_MAX + 1, false)] {
            let (sim, host) = filled();
            let (opener, io) = (CacheOpener::new(ROOT, SIZES), host.io());
            sim.run(&host, async move {
                let keys: Vec<_> = (0..count).map(|number| key(&format!("/other/{number}"))).collect();
                opener.invalidate(&io, &keys).await;
                let cache = opener.open(&io).await.unwrap();
                assert_eq!(is_stored(&cache, "/x"), stays, "{count}");
            });
        }
    }

    #[test]
    fn content_in_memory_is_invalidated_too() {
        let (sim, host) = filled();
        let (opener, io) = (CacheOpener::new(ROOT, SIZES), host.io());
        sim.run(&host, async move {
            let cache = opener.open(&io).await.unwrap();
            let head = stored("http://a/z", "", "Cache-Control: max-age=9\r\n");
            assert!(cache.insert(head, Content::Memory(b"z"[..].into()), || true));
            opener.invalidate(&io, &[key("/z")]).await;
            assert!(!is_stored(&cache, "/z"));
        });
    }

    #[test]
    fn after_a_restart_with_the_clock_set_back_a_response_is_validated() {
        let (_sim, host) = filled();
        for (set_back, is_usable) in [(Duration::ZERO, true), (Duration::from_secs(3600), false)] {
            let now = Timestamp::now(&host.io());
            let started = Timestamp { wall: now.wall - set_back, ..now };
            let cache = ResponseCache::open(&**host.disk(), &CacheFolder::new(ROOT), SIZES, started).unwrap();
            let request = CacheRequest::new(Method::Get, key("/x"), FieldLines::default(), false);
            let Lookup::Found(object) = cache.lookup(&request) else { panic!("it is stored") };
            let freshness = &object.head.freshness;
            assert_eq!(freshness.is_usable_now(&request.directives, now.steady), is_usable);
            std::mem::forget((cache, object));
        }
    }
}
