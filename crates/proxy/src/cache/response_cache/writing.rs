//! The cache's writes to its disk: room for bodies that are being received, and their files.
//!
//! It receives nothing, and indexes nothing itself. Invariants: bodies in progress have room for their bytes
//! before these are written; after an error of the disk, nothing is written for some time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_io::{Fs, Instant, Io, NotDone, Work};

use super::ResponseCache;
use crate::cache::limits::{DISK_RETRY_TIME, MEMORY_OBJECT_BYTES_MAX, RECORDING_SHARE};
use crate::cache::policy::{NotStored, StoredHead};
use crate::cache::store::{Content, ObjectWriter};

/// Room on disk for a body that is being received. Dropping it releases the room.
pub struct Reservation {
    cache: Arc<ResponseCache>,
    bytes: u64,
}

impl Reservation {
    /// Reserves room for so many bytes on disk in all. Returns false if there is none.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_reserved = more == 0 || self.cache.add_reserved(more);
        self.bytes += if is_reserved { more } else { 0 };
        is_reserved
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.cache.reserved_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ResponseCache {
    /// Reserves room for a body of this length. A body that is recorded in memory needs no room, and one of
    /// unknown length none at first.
    ///
    /// # Errors
    /// The reason why it must not be recorded now.
    pub fn reserve(self: &Arc<Self>, length: Option<u64>, now: Instant) -> Result<Reservation, NotStored> {
        let rests_until = Duration::from_nanos(self.disk_rests_until.load(Ordering::Relaxed));
        let fits_memory = length.is_some_and(|length| length <= MEMORY_OBJECT_BYTES_MAX as u64);
        let bytes = if fits_memory { 0 } else { length.unwrap_or(0) };
        if !fits_memory {
            if bytes > self.object_bytes_max() {
                return Err(NotStored::TooLarge);
            }
            if now.since_start() < rests_until {
                return Err(NotStored::DiskFailed);
            }
            if !self.add_reserved(bytes) {
                return Err(NotStored::NoRoom);
            }
        }
        Ok(Reservation { cache: Arc::clone(self), bytes })
    }

    /// Adds to the reserved bytes, in one step with the check of their bound.
    fn add_reserved(&self, bytes: u64) -> bool {
        let bytes_max = self.sizes.disk_bytes_max / RECORDING_SHARE;
        let add = |reserved: u64| reserved.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        self.reserved_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Creates the file of an object that is recorded.
    pub(in crate::cache) async fn create_file(self: &Arc<Self>, io: &Io) -> io::Result<ObjectWriter> {
        let cache = Arc::clone(self);
        let created = io.offload(Work::Writes, move |fs| cache.create_on(fs));
        self.checked(io.now(), created.await)
    }

    /// As [`ResponseCache::create_file`], on a thread that may block.
    pub(in crate::cache) fn create_on(&self, fs: &dyn Fs) -> io::Result<ObjectWriter> {
        // Where objects are written, others have been evicted.
        self.remove_discarded(fs)?;
        match self.disk.create(fs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.reopen(fs)?;
                self.disk.create(fs)
            }
            created => created,
        }
    }

    /// Makes the folder again after it was removed, and forgets the objects in it.
    fn reopen(&self, fs: &dyn Fs) -> io::Result<()> {
        if self.disk.reopen(fs)? {
            self.index.remove_files();
            self.open_files.clear();
        }
        Ok(())
    }

    /// Appends to the file of an object.
    pub(in crate::cache) async fn append(
        &self,
        io: &Io,
        mut writer: ObjectWriter,
        bytes: Vec<u8>,
    ) -> io::Result<ObjectWriter> {
        let appended = io.offload(Work::Writes, move |fs| writer.append(fs, &bytes).map(|()| writer));
        self.checked(io.now(), appended.await)
    }

    /// Completes the file of an object, and stores the object, on a thread that may block. Returns false if
    /// it is not wanted.
    pub(in crate::cache) fn commit_on(
        &self,
        fs: &dyn Fs,
        now: Instant,
        writer: ObjectWriter,
        head: &StoredHead,
        is_wanted: impl Fn() -> bool,
    ) -> io::Result<bool> {
        let committed = self.disk.commit(fs, writer, head, &is_wanted, |file| {
            self.insert(head.clone(), Content::File(Arc::new(file)), &is_wanted);
        });
        let committed = match committed {
            // The folder was removed since the file was created. The next object finds it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.reopen(fs).and(Err(error)),
            committed => committed,
        };
        // Files of objects that were evicted for this one.
        let removed = self.remove_discarded(fs);
        self.checked(now, Ok(committed.and_then(|is_stored| removed.map(|()| is_stored))))
    }

    /// Counts an error of the disk. After one, nothing is written for some time: a full disk would cost
    /// each fetch an attempt.
    pub(super) fn checked<T>(&self, now: Instant, done: Result<io::Result<T>, NotDone>) -> io::Result<T> {
        let done = done.map_err(io::Error::from).and_then(|done| done);
        if let Err(error) = &done {
            tracing::warn!(%error, "the cache cannot write an object");
            self.counts.disk_errors.fetch_add(1, Ordering::Relaxed);
            let until = (now + DISK_RETRY_TIME).since_start().as_nanos();
            self.disk_rests_until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        done
    }
}
