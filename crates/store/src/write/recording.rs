//! Periodic recording of a resumable upload's offset, so that a killed server loses little of the upload.
//!
//! A recording syncs the upload's file, then writes and syncs its record. A sync may take long, so a
//! recording locks the upload's state only to read and update it, never during a sync. The connection
//! writes on meanwhile, and a fast upload is not slowed.
//!
//! Invariants: an offset is written to the record after the bytes before it are synced, and after the
//! record's other line is. An upload that has ended is not recorded.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_io::{Fs, Instant, Io, Work};

use super::staging::Recording;
use super::upload::SharedUpload;
use crate::home::LocalHome;
use crate::limits::{RECORDED_EVERY, RECORDINGS_MAX};

/// The schedule of an upload's recordings.
pub(super) struct RecordingSchedule {
    /// The upload's home; none if the upload is not resumable.
    home: Option<LocalHome>,
    /// When the first byte arrived that no recording covers.
    since: Cell<Option<Instant>>,
    is_recording: Arc<AtomicBool>,
}

/// Counts the recordings of a store in progress.
#[derive(Default)]
pub(crate) struct Recordings(AtomicUsize);

/// A permit to record one upload. Dropping it ends the recording.
struct RecordingPermit(LocalHome, Arc<AtomicBool>);

impl Drop for RecordingPermit {
    fn drop(&mut self) {
        self.0.common().recordings.0.fetch_sub(1, Ordering::Relaxed);
        self.1.store(false, Ordering::Release);
    }
}

impl RecordingSchedule {
    /// The schedule of an upload that is not resumable: no recording is ever due.
    pub(super) fn none() -> RecordingSchedule {
        RecordingSchedule { home: None, since: Cell::new(None), is_recording: Arc::default() }
    }

    /// The schedule of a resumable upload.
    pub(super) fn of(home: &LocalHome) -> RecordingSchedule {
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
    pub(super) fn record_if_due(&self, io: &Io, upload: &Arc<SharedUpload>) {
        let now = io.now();
        if self.due_in(now) != Some(Duration::ZERO) {
            return;
        }
        self.since.set(Some(now));
        let Some(permit) = self.permit() else { return };
        let upload = Arc::clone(upload);
        let handed = io.hand_off(Work::Writes, move |fs| {
            record(fs, &upload);
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
        let before = home.common().recordings.0.fetch_add(1, Ordering::Relaxed);
        let permit = RecordingPermit(home.clone(), Arc::clone(&self.is_recording));
        (before < RECORDINGS_MAX).then_some(permit)
    }
}

/// Records the offset that the upload has reached, unless the upload ends meanwhile.
fn record(fs: &dyn Fs, upload: &SharedUpload) {
    let Some(recording) = begin(fs, upload) else { return };
    let synced = recording.sync(fs);
    let mut state = upload.lock();
    // If the upload has ended meanwhile, its own sync came after this one, and failed if this one did.
    let Ok(staging) = state.staging() else { return };
    let written = synced.and_then(|()| staging.write_recorded_offset(fs, &recording));
    // The state is unlocked during the sync.
    drop(state);
    let recorded = match written {
        Ok(None) => Ok(()),
        Ok(Some(record)) => recording.home.sync(fs, &[&record]),
        Err(error) => Err(error),
    };
    if let Ok(staging) = upload.lock().staging() {
        staging.end_recording(recording.offset, recorded);
    }
}

/// Writes buffered bytes and returns the files to be synced, and the offset to be recorded; none if there
/// are no new bytes.
fn begin(fs: &dyn Fs, upload: &SharedUpload) -> Option<Recording> {
    let mut state = upload.lock();
    if state.has_ended() {
        return None;
    }
    if let Err(error) = state.write_kept(fs, &upload.buffer) {
        // The buffered bytes are lost. The sender gets the error with its next bytes.
        upload.buffer.fail(error);
        return None;
    }
    match state.staging().ok()?.begin_recording(fs) {
        Ok(recording) => recording,
        Err(error) => {
            // No bytes are lost by this, and the next recording tries again.
            tracing::warn!(%error, "a resumable upload could not be recorded");
            None
        }
    }
}
