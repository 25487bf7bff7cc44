//! Periodic recording of a resumable upload's offset, so that a killed server loses little of the upload.
//!
//! A recording syncs the upload's file, then writes and syncs its record. A sync may take long, so a
//! recording holds the upload's lock only to read and update state, never during a sync. The connection
//! writes on meanwhile, and a fast upload is not slowed.
//!
//! Invariants: an offset is written to the record after the bytes before it are synced. One thread at a
//! time writes to a record. An upload that was committed, settled or taken over is not recorded.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_io::{File, Fs, Instant, Io, Work};

use super::record::Record;
use super::upload::Slot;
use crate::error::Result;
use crate::home::Home;
use crate::limits::{RECORDED_EVERY, RECORDINGS_MAX};

/// The schedule of an upload's recordings.
pub(super) struct RecordingSchedule {
    /// The upload's home; none if the upload is not resumable.
    home: Option<Home>,
    /// When the first byte arrived that no recording covers.
    since: Cell<Option<Instant>>,
    is_recording: Arc<AtomicBool>,
}

/// Counts the recordings of a store in progress.
#[derive(Default)]
pub(crate) struct Recordings(AtomicUsize);

/// A permit to record one upload. Dropping it ends the recording.
struct RecordingPermit(Home, Arc<AtomicBool>);

impl Drop for RecordingPermit {
    fn drop(&mut self) {
        self.0.recordings().0.fetch_sub(1, Ordering::Relaxed);
        self.1.store(false, Ordering::Release);
    }
}

impl RecordingSchedule {
    /// The schedule of an upload that is not resumable: no recording is ever due.
    pub(super) fn none() -> RecordingSchedule {
        RecordingSchedule { home: None, since: Cell::new(None), is_recording: Arc::default() }
    }

    /// The schedule of a resumable upload.
    pub(super) fn of(home: &Home) -> RecordingSchedule {
        RecordingSchedule { home: Some(home.clone()), ..RecordingSchedule::none() }
    }

    /// Notes that bytes arrived.
    pub(super) fn received(&self, now: Instant) {
        if self.home.is_some() && self.since.get().is_none() {
            self.since.set(Some(now));
        }
    }

    /// Returns the time until a recording is due; none if no new bytes have arrived.
    pub(super) fn due_in(&self, now: Instant) -> Option<Duration> {
        let at = self.since.get()? + RECORDED_EVERY;
        Some(if now < at { at - now } else { Duration::ZERO })
    }

    /// Starts a recording on a thread that may wait for the disk, if one is due. If too many are in
    /// progress, or this upload's last one still is, the next is due a whole interval later.
    pub(super) fn record_if_due(&self, io: &Io, slot: &Slot) {
        let now = io.now();
        if self.due_in(now) != Some(Duration::ZERO) {
            return;
        }
        self.since.set(Some(now));
        let Some(permit) = self.permit() else { return };
        let slot = Arc::clone(slot);
        let handed = io.hand_off(Work::Writes, move |fs| {
            record(fs, &slot);
            drop(permit);
        });
        if handed.is_ok() {
            self.since.set(None);
        }
    }

    fn permit(&self) -> Option<RecordingPermit> {
        let home = self.home.as_ref()?;
        if self.is_recording.swap(true, Ordering::Acquire) {
            return None;
        }
        let before = home.recordings().0.fetch_add(1, Ordering::Relaxed);
        let permit = RecordingPermit(home.clone(), Arc::clone(&self.is_recording));
        (before < RECORDINGS_MAX).then_some(permit)
    }
}

/// The state that a recording needs while it does not hold the upload's lock.
pub(super) struct Recording {
    pub(super) home: Home,
    pub(super) file: File,
    /// Whether the names of the file and of the record are synced already.
    pub(super) is_named: bool,
    /// The offset to record: all bytes before it are written.
    pub(super) at: u64,
    pub(super) record: Arc<Mutex<Record>>,
}

impl Recording {
    /// Syncs the bytes, and the names if they are new.
    fn sync(&self, fs: &dyn Fs) -> Result<()> {
        let names = [self.home.pending()];
        self.home.sync(fs, if self.is_named { &[] } else { &names })?;
        self.home.sync(fs, &[&self.file])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the offset that the upload has reached, unless the upload ends meanwhile.
fn record(fs: &dyn Fs, slot: &Slot) {
    let Some(recording) = begin(fs, slot) else { return };
    let synced = recording.sync(fs);
    let mut held = lock(slot);
    let Some(written) = held.as_mut() else { return };
    if synced.is_err() || written.synced() >= recording.at {
        return written.end_recording(recording.at, synced);
    }
    // Lock order: the upload, then its record, as everywhere. The upload's lock is released during the sync.
    let mut record = lock(&recording.record);
    let told = record.write_offset(fs, recording.at);
    drop(held);
    let told = told.and_then(|()| recording.home.sync(fs, &[record.file()]));
    drop(record);
    if let Some(written) = lock(slot).as_mut() {
        written.end_recording(recording.at, told);
    }
}

/// Writes buffered bytes and returns what is to be synced and recorded; none if there are no new bytes.
fn begin(fs: &dyn Fs, slot: &Slot) -> Option<Recording> {
    let mut slot = lock(slot);
    let written = slot.as_mut()?;
    if let Err(error) = written.write_kept(fs) {
        // The buffered bytes are lost, so the upload fails; its sender gets the error with its next bytes.
        written.fail(error);
        slot.take()?.settle(fs);
        return None;
    }
    match written.recording(fs) {
        Ok(recording) => recording,
        Err(error) => {
            // No bytes are lost by this, and the next recording tries again.
            tracing::warn!(%error, "a resumable upload could not be recorded");
            None
        }
    }
}
