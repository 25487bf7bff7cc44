//! Opens the cache when the first request needs it.
//!
//! Reading the heads of many stored objects takes seconds. Invariants: the folder is opened once; requests
//! wait for it a short time only, and are forwarded without the cache meanwhile; a folder that cannot be
//! opened is tried again, but not by each request.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::{Elapsed, Fs, Instant, Io, Work};

use super::limits::{DISK_RETRY_TIME, OPENING_TIME_MAX};
use super::response_cache::{CacheSizes, ResponseCache};

/// A cache that opens itself.
pub struct CacheOpener {
    path: PathBuf,
    sizes: CacheSizes,
    opened: OnceLock<Arc<ResponseCache>>,
    progress: Mutex<Progress>,
}

enum Progress {
    /// The folder may be opened from this time on.
    Closed(Instant),
    /// A worker opens it. Holds the requests that wait.
    Opening(Vec<Waker>),
    Open,
}

impl CacheOpener {
    /// Creates a cache in a folder. It does not open the folder.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, sizes: CacheSizes) -> Arc<CacheOpener> {
        let progress = Mutex::new(Progress::Closed(Instant::default()));
        Arc::new(CacheOpener { path: path.into(), sizes, opened: OnceLock::new(), progress })
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
        let (opener, now) = (Arc::clone(self), io.now());
        if io.hand_off(Work::Chores, move |fs| opener.open_on(fs, now)).is_err() {
            self.end(Progress::Closed(now));
        }
    }

    fn open_on(&self, fs: &dyn Fs, now: Instant) {
        let opened: io::Result<Arc<ResponseCache>> = ResponseCache::open(fs, &self.path, self.sizes);
        match opened {
            Ok(cache) => {
                let _: &Arc<ResponseCache> = self.opened.get_or_init(|| cache);
                self.end(Progress::Open);
            }
            Err(error) => {
                tracing::error!(folder = %self.path.display(), %error, "cannot open the cache");
                self.end(Progress::Closed(now + DISK_RETRY_TIME));
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
