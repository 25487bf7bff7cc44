//! Objects in files that the origin has passed: they are dropped when their file has changed.
//!
//! It stores no byte. Invariants: no request is answered from a file that has changed before its lookup; a
//! file that was changed, replaced or removed is closed once that is noticed, by a thread that may block
//! unless too much waits for the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::{Fs, Io, Work};

use super::ResponseCache;
use crate::cache::limits::PASSED_CHECK_TIME;
use crate::cache::policy::{CacheRequest, StoredHead};
use crate::cache::store::{Content, Lookup, Object, PassedFile};

impl ResponseCache {
    /// Looks up the object for a request. Drops objects whose file has changed.
    pub async fn lookup_unchanged(&self, io: &Io, request: &CacheRequest<'_>) -> Lookup {
        loop {
            match self.lookup(request) {
                Lookup::Found(object) if has_changed(io, &object).await => self.drop_changed(io, object),
                lookup => return lookup,
            }
        }
    }

    /// Drops an object if its content is a file of the origin that has changed. Returns whether it did.
    pub async fn drop_if_changed(&self, io: &Io, object: &Arc<Object>) -> bool {
        let has_changed = has_changed(io, object).await;
        if has_changed {
            self.drop_changed(io, Arc::clone(object));
        }
        has_changed
    }

    /// Stores an object whose content is a file that the origin has passed, unless `is_wanted` returns false
    /// or later changes of the file might not be noticed. It replaces older objects either way, if it is
    /// wanted. Returns the object, and whether it is stored.
    pub fn keep(
        &self,
        head: StoredHead,
        file: PassedFile,
        is_wanted: impl FnOnce() -> bool,
    ) -> (Arc<Object>, bool) {
        let may_be_kept = file.may_be_kept();
        let object = Object::new(head, Content::Passed(Arc::new(file)));
        if !may_be_kept {
            self.index.remove_replaced(&object, is_wanted);
            return (object, false);
        }
        let is_stored = self.index.insert(Arc::clone(&object), is_wanted);
        self.counts.stored.fetch_add(u64::from(is_stored), Ordering::Relaxed);
        (object, is_stored)
    }

    /// Whether files that origins pass are kept.
    #[must_use]
    pub fn keeps_files(&self) -> bool {
        self.sizes.passed_files_max > 0
    }

    /// Starts a check of all files that origins have passed, if it is time for one.
    pub fn check_files(self: &Arc<Self>, io: &Io) {
        let now = u64::try_from(io.now().since_start().as_nanos()).unwrap_or(u64::MAX);
        let time = u64::try_from(PASSED_CHECK_TIME.as_nanos()).unwrap_or(u64::MAX);
        // One of the threads does it, and not before the last check has ended: a file system may hang.
        if self.index.passed_count() == 0
            || now < self.next_check.load(Ordering::Relaxed)
            || self.is_checking.swap(true, Ordering::Acquire)
        {
            return;
        }
        self.next_check.store(now.saturating_add(time), Ordering::Relaxed);
        let cache = Arc::clone(self);
        let check = move |fs: &dyn Fs| {
            cache.check_files_on(fs);
            cache.is_checking.store(false, Ordering::Release);
        };
        // If too much waits for the disk, the next check does it.
        if io.hand_off(Work::Chores, check).is_err() {
            self.is_checking.store(false, Ordering::Release);
        }
    }

    /// As [`ResponseCache::check_files`], on a thread that may block.
    pub fn check_files_on(&self, fs: &dyn Fs) {
        for object in self.index.passed_objects() {
            if matches!(&object.content, Content::Passed(file) if file.has_changed_on(fs)) {
                self.discard_changed(&object);
            }
        }
    }

    fn drop_changed(&self, io: &Io, object: Arc<Object>) {
        self.discard_changed(&object);
        // The last reference to a removed file frees its blocks. If too much waits for the disk, it is
        // dropped here.
        let _ = io.hand_off(Work::Chores, move |_| drop(object));
    }

    fn discard_changed(&self, object: &Arc<Object>) {
        if self.index.contains(object) {
            self.index.remove(object);
            self.counts.changed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn has_changed(io: &Io, object: &Object) -> bool {
    matches!(&object.content, Content::Passed(file) if file.has_changed(io).await)
}
