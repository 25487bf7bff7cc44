//! The staging file of an upload: its written bytes, their digests, and its record.
//!
//! It has no state of its own ([`super::state`] has), and waits for nothing but the disk. Invariant: an
//! offset is recorded only after the bytes before it are synced.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use plimsoll_io::{File, Fs, Pipe, write_all};
use sha2::{Digest as _, Sha256};

use super::buffer::{Batch, Buffer, BufferedBytes};
use super::claim::Claim;
use super::commit::{CommitRequest, Committed, StagedFile};
use super::digest::{Algorithm, Digests, check_whole};
use super::id::UploadId;
use super::record::{Record, UploadDescription};
use super::state::Ended;
use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::known_digests::RunningDigest;
use crate::trash::DiskNeed;

/// The staging file of an upload, as far as it is written.
pub(super) struct StagingFile {
    pub(super) claim: Claim,
    /// None until it is needed.
    file: Option<File>,
    /// The number of its bytes.
    offset: u64,
    /// Digests of the bytes received since the upload began or was resumed.
    digests: Digests,
    /// The offset at which those begin.
    digests_from: u64,
    /// The digest of all bytes so far, if the sender has announced a check of the whole file.
    running: Option<RunningDigest>,
    retention: Retention,
    worst_error: WorstError,
    syncs: FileSyncs,
}

/// The syncs of the staging file: by its upload, and by a recording at the same time. The kernel reports the
/// loss of written bytes to one sync only, so each waits for the one in progress, and fails if that did.
#[derive(Clone, Default)]
struct FileSyncs {
    has_failed: Arc<Mutex<bool>>,
}

impl FileSyncs {
    fn sync(&self, fs: &dyn Fs, home: &LocalHome, file: &File) -> Result<()> {
        let mut has_failed = self.has_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *has_failed {
            return Err(failed_before());
        }
        let synced = home.sync(fs, &[file]);
        *has_failed = synced.is_err();
        synced
    }
}

/// Whether an interrupted upload stays.
pub(super) enum Retention {
    /// It is removed.
    Removed,
    /// It is resumable; while it is new, it has no record.
    Unrecorded(UploadDescription),
    /// It is resumable, as its record states.
    Recorded(RecordState),
}

/// The state of a resumable upload, in addition to its file.
pub(super) struct RecordState {
    record: Record,
    /// The offset that is synced and recorded.
    synced: u64,
    /// Whether the names of the file and of the record are synced.
    is_named: bool,
    /// Whether this part counts only once its digest was checked.
    counts_as_whole: bool,
    /// Whether its path alone identifies it.
    is_by_path: bool,
}

/// The worst error so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WorstError {
    None,
    /// The bytes cannot be taken: no space for them, or no such folder.
    Refused,
    /// The disk failed: bytes written since the last sync may be lost, and another sync proves nothing.
    Disk,
}

/// The offset at which a resumable upload is to continue.
#[derive(Clone, Copy)]
pub(super) enum Offset {
    /// Its present offset, which must be this.
    Exactly(u64),
    /// This one, which it must have reached: bytes beyond are cut off.
    Cut(u64),
}

/// The files and the offset of a recording in progress, which does not hold the upload's state.
pub(super) struct Recording {
    pub(super) home: LocalHome,
    /// The folder that has both files.
    staging: File,
    file: File,
    syncs: FileSyncs,
    /// Whether the names of the file and of the record are synced already.
    is_named: bool,
    /// The offset to record: all bytes before it are written.
    pub(super) offset: u64,
}

impl Recording {
    /// Syncs the bytes, and the names if they are new.
    pub(super) fn sync(&self, fs: &dyn Fs) -> Result<()> {
        let names = [&self.staging];
        self.home.sync(fs, if self.is_named { &[] } else { &names })?;
        self.syncs.sync(fs, &self.home, &self.file)
    }
}

impl StagingFile {
    /// Creates an upload without bytes.
    pub(super) fn new(claim: Claim, digests: &[(Algorithm, Vec<u8>)], retention: Retention) -> StagingFile {
        StagingFile {
            claim,
            file: None,
            offset: 0,
            digests: Digests::new(digests),
            digests_from: 0,
            running: None,
            retention,
            worst_error: WorstError::None,
            syncs: FileSyncs::default(),
        }
    }

    /// Opens the file and record of a resumable upload, to continue at `offset`.
    pub(super) fn open(
        fs: &dyn Fs,
        (home, id): (&LocalHome, UploadId),
        offset: Offset,
        digests: &[(Algorithm, Vec<u8>)],
        now: SystemTime,
    ) -> Result<(StagingFile, UploadDescription)> {
        let mut claim = Claim::resume(home, id)?;
        let (mut record, description, recorded) = Record::open(fs, home, id, now)?;
        let synced = match offset {
            Offset::Exactly(at) if at == recorded || at == description.reported_offset(recorded) => at,
            Offset::Cut(at) if at <= recorded => at,
            _ => return Err(Error::Offset(description.reported_offset(recorded))),
        };
        if synced < recorded
            && let Err(error) = record.cut_to(fs, home, synced)
        {
            // The offset that its record now yields is unknown.
            claim.forget();
            home.remove_upload(fs, id);
            return Err(error);
        }
        let file = fs.open_to_write(&claim.staging, &id.data_name())?;
        // Bytes that were written and not synced may differ from those that were sent.
        fs.set_len(&file, synced)?;
        if description.bytes.is_none() {
            claim.cut(synced);
        }
        let (digests, is_by_path) = (Digests::new(digests), description.by_path().is_some());
        let counts_as_whole = !digests.are_none();
        let state = RecordState { record, synced, is_named: true, counts_as_whole, is_by_path };
        // In any case, so that a digest of other bytes is never found by a later part.
        let running = home.common().running_digests.take(id, synced);
        let staging = StagingFile {
            claim,
            file: Some(file),
            offset: synced,
            digests,
            digests_from: synced,
            running,
            retention: Retention::Recorded(state),
            worst_error: WorstError::None,
            syncs: FileSyncs::default(),
        };
        Ok((staging, description))
    }

    /// Returns an empty buffer for its bytes. Bytes with a digest are received into memory.
    pub(super) fn buffer(&self) -> Buffer {
        Buffer::new(Arc::clone(&self.claim.home.common().held), !self.digests.are_none())
    }

    /// Sets the file's modification time, since 1970. A later write replaces it.
    pub(super) fn set_modified(&mut self, fs: &dyn Fs, modified: Duration) -> Result<()> {
        Ok(fs.set_modified(&self.file(fs)?, modified)?)
    }

    /// Stores the digest of all bytes so far for the next part.
    fn keep_running_digest(&mut self) {
        if let Some(running) = self.running.take().filter(|running| running.at == self.offset) {
            self.claim.home.common().running_digests.put(self.claim.id, running);
        }
    }

    /// Begins with the first `bytes` of another file.
    pub(super) fn copy_start(&mut self, fs: &dyn Fs, source: &File, bytes: u64) -> Result<()> {
        let file = self.file(fs)?;
        self.offset = fs.copy(source, &file, bytes)?;
        // Another program has truncated the file.
        if self.offset == bytes { Ok(()) } else { Err(Error::Precondition) }
    }

    /// Appends bytes of another file, which are in no digest.
    pub(super) fn append(&mut self, fs: &dyn Fs, bytes: &[u8]) -> Result<()> {
        write_all(fs, &self.file(fs)?, bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes buffered bytes.
    pub(super) fn write(&mut self, fs: &dyn Fs, batch: &Batch) -> Result<()> {
        self.check_disk()?;
        self.claim.grow(batch.quota, self.offset + batch.bytes())?;
        let file = self.file(fs)?;
        if batch.is_hashed && self.offset == 0 {
            self.running = Some(RunningDigest { sha256: Sha256::new(), at: 0 });
        }
        for piece in &batch.pieces {
            match piece {
                BufferedBytes::Lease(lease) => {
                    self.with_disk_room(fs, batch, || Ok(write_all(fs, &file, lease, self.offset)?))?;
                    self.digests.update(lease);
                    if let Some(running) = self.running.as_mut().filter(|running| running.at == self.offset) {
                        running.sha256.update(&lease[..]);
                        running.at += lease.len() as u64;
                    }
                }
                BufferedBytes::Piped(pipe, bytes) => {
                    let mut done = 0;
                    self.with_disk_room(fs, batch, || {
                        write_all_from(fs, &file, (pipe, *bytes), self.offset, &mut done)
                    })?;
                }
            }
            self.offset += piece.len();
        }
        Ok(())
    }

    /// Runs a write of a part of `batch`. A full disk gets space from the trash.
    fn with_disk_room(
        &self,
        fs: &dyn Fs,
        batch: &Batch,
        mut write: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        match write() {
            Err(Error::Full) => {}
            written => return written,
        }
        let bytes = batch.bytes();
        let ahead = bytes.max(self.claim.reserved().saturating_sub(self.offset));
        let need =
            DiskNeed { folder: &self.claim.staging, bytes, ahead, keeps_trash: batch.quota.keeps_trash };
        self.claim.home.with_disk_room(fs, need, write)
    }

    /// Returns an error if a sync has failed, also one for a lookup: earlier writes may be lost then.
    fn check_disk(&self) -> Result<()> {
        match self.worst_error {
            WorstError::Disk => Err(failed_before()),
            WorstError::None | WorstError::Refused => Ok(()),
        }
    }

    /// Syncs the file.
    pub(super) fn sync(&mut self, fs: &dyn Fs) -> Result<()> {
        let file = self.file(fs)?;
        self.syncs.sync(fs, &self.claim.home, &file)
    }

    /// Checks that all received `bytes` are in the file, and that no sync of it has failed.
    pub(super) fn check_complete(&self, bytes: u64) -> Result<()> {
        self.check_disk()?;
        if self.offset == bytes {
            return Ok(());
        }
        let written = format!("{} of {bytes} bytes of the upload were written", self.offset);
        Err(Error::Failed(io::Error::other(written)))
    }

    /// Checks the digests of the bytes received since the upload began or was resumed: all of them count
    /// then. Keeps the SHA-256 as that of the whole file, if it is.
    pub(super) fn check_digests(&mut self) -> Result<Option<[u8; 32]>> {
        let digests = std::mem::replace(&mut self.digests, Digests::new(&[]));
        let sha256 = digests.check()?.filter(|_| self.digests_from == 0);
        if let Retention::Recorded(state) = &mut self.retention {
            state.counts_as_whole = false;
        }
        Ok(sha256)
    }

    /// Renames the synced file to its path, by the home's rules. None if the guard refuses.
    pub(super) fn commit(
        &mut self,
        fs: &dyn Fs,
        received: Option<[u8; 32]>,
        request: &CommitRequest,
    ) -> Result<Option<Committed>> {
        let file = self.file(fs)?;
        let running = self.running.as_ref().and_then(|running| running.sha256_at(self.offset));
        let sha256 = check_whole(fs, &file, running, &request.digests)?.or(received);
        let staged =
            StagedFile { id: self.claim.id, staging: &self.claim.staging, file: &file, bytes: self.offset };
        if let Some(parts) = &request.parts {
            parts.record(fs, &self.claim.home, &staged, &request.terms.to)?;
        }
        let committed = self.claim.home.commit(fs, &staged, request);
        if let Some(parts) = &request.parts {
            parts.settle(fs, &self.claim.home, self.claim.id, matches!(committed, Ok(Some(_))));
        }
        let Some(committed) = committed? else { return Ok(None) };
        if let Some(sha256) = sha256 {
            self.claim.home.common().known_digests.note(&committed.stat, sha256);
        }
        self.claim.forget();
        self.remove_record(fs);
        self.claim.home.forget_staged(self.claim.id);
        Ok(Some(committed))
    }

    /// Notes an error, which a later end of the upload takes into account.
    fn note(&mut self, error: &Error) {
        let class = match error {
            Error::Cancelled => WorstError::None,
            Error::Failed(_) => WorstError::Disk,
            _ => WorstError::Refused,
        };
        self.worst_error = self.worst_error.max(class);
    }

    /// Ends the upload after an error, which it returns.
    pub(super) fn end_after(mut self, fs: &dyn Fs, error: Error) -> (Ended, Error) {
        self.note(&error);
        (self.end(fs), error)
    }

    /// Whether buffered bytes are worth writing when the upload ends: those of a resumable upload, unless
    /// its part counts only as a whole.
    pub(super) fn keeps_more(&self) -> bool {
        let is_kept = match &self.retention {
            Retention::Removed => false,
            Retention::Unrecorded(_) => true,
            Retention::Recorded(state) => !state.counts_as_whole,
        };
        is_kept && self.worst_error == WorstError::None
    }

    /// Ends the upload where nothing may block: a resumable one stays as it was last recorded.
    pub(super) fn abandon(self) -> Ended {
        if matches!(self.retention, Retention::Recorded(_)) {
            return Ended::Paused;
        }
        if self.file.is_some() {
            self.claim.home.abandon(self.claim.id);
        }
        Ended::Aborted
    }

    /// Pauses the upload if it may stay, and removes it otherwise.
    pub(super) fn end(mut self, fs: &dyn Fs) -> Ended {
        if self.is_to_be_removed() {
            return self.remove(fs);
        }
        if let (Retention::Recorded(state), Some(file)) = (&self.retention, &self.file)
            && state.counts_as_whole
        {
            // The recorded offset is reported in any case: this only frees the space.
            let _ = fs.set_len(file, state.synced);
        } else if self.worst_error != WorstError::Disk
            && let Err(error) = self.record(fs)
        {
            tracing::warn!(upload = %self.claim.id, %error, "a kept upload could not be synced");
            // Earlier records stay, if there are any.
            self.worst_error = WorstError::Disk;
            if self.is_to_be_removed() {
                return self.remove(fs);
            }
        } else {
            self.keep_running_digest();
        }
        Ended::Paused
    }

    /// Ends a part of a resumable upload, to be continued later. Returns the upload's offset.
    pub(super) fn pause(mut self, fs: &dyn Fs) -> std::result::Result<u64, (Ended, Error)> {
        if let Err(error) = self.check_digests().and_then(|_| self.record(fs)) {
            return Err(self.end_after(fs, error));
        }
        self.keep_running_digest();
        Ok(self.offset)
    }

    /// Whether nothing of it stays. An upload that its path identifies goes too when it was refused: its
    /// owner may know no other way to free its space.
    fn is_to_be_removed(&self) -> bool {
        match &self.retention {
            Retention::Removed => true,
            Retention::Unrecorded(_) => self.offset == 0 || self.worst_error != WorstError::None,
            Retention::Recorded(state) if self.worst_error == WorstError::Disk => {
                state.is_by_path && state.synced == 0
            }
            Retention::Recorded(state) => state.is_by_path && self.worst_error == WorstError::Refused,
        }
    }

    /// Syncs and records the written bytes of a resumable upload, while its part continues.
    pub(super) fn record_so_far(&mut self, fs: &dyn Fs) -> Result<()> {
        if self.is_recordable() { self.record(fs) } else { Ok(()) }
    }

    /// Whether the upload has bytes that may be recorded.
    fn is_recordable(&self) -> bool {
        self.keeps_more() && (self.offset > 0 || matches!(self.retention, Retention::Recorded(_)))
    }

    /// Begins a recording of the written bytes. None if no bytes were written since the last one.
    pub(super) fn begin_recording(&mut self, fs: &dyn Fs) -> Result<Option<Recording>> {
        if !self.is_recordable() || self.recorded_offset() == self.offset {
            return Ok(None);
        }
        let (home, offset, Some(file)) = (self.claim.home.clone(), self.offset, self.file.clone()) else {
            return Ok(None);
        };
        let is_named = self.record_state(fs)?.map(|state| state.is_named);
        let (syncs, staging) = (self.syncs.clone(), self.claim.staging.clone());
        Ok(is_named.map(|is_named| Recording { home, staging, file, syncs, is_named, offset }))
    }

    /// Writes the offset of a recording, after its bytes are synced. Returns the file of the record, to be
    /// synced. None if the offset is recorded already.
    pub(super) fn write_recorded_offset(
        &mut self,
        fs: &dyn Fs,
        recording: &Recording,
    ) -> Result<Option<File>> {
        match &mut self.retention {
            Retention::Recorded(state) if state.synced < recording.offset => {
                state.record.write_offset(fs, &recording.home, recording.offset)?;
                Ok(Some(state.record.file().clone()))
            }
            _ => Ok(None),
        }
    }

    /// The offset that is synced and recorded.
    fn recorded_offset(&self) -> u64 {
        if let Retention::Recorded(state) = &self.retention { state.synced } else { 0 }
    }

    /// Notes the result of a recording: that the offset is recorded and the names of the files are synced,
    /// or the error.
    pub(super) fn end_recording(&mut self, offset: u64, recorded: Result<()>) {
        if let Err(error) = recorded {
            self.note(&error);
            tracing::warn!(upload = %self.claim.id, %error, "a resumable upload could not be synced");
        } else if let Retention::Recorded(state) = &mut self.retention {
            (state.synced, state.is_named) = (state.synced.max(offset), true);
            state.record.note_synced();
        }
    }

    /// Returns the state of the record, and creates the record if it does not exist yet; none if the upload
    /// is not resumable.
    fn record_state(&mut self, fs: &dyn Fs) -> Result<Option<&mut RecordState>> {
        if let Retention::Unrecorded(description) = &self.retention {
            let record = match Record::create(fs, &self.claim.staging, self.claim.id, description) {
                Ok(record) => record,
                Err(error) => {
                    // A partial record would make every later attempt fail.
                    let _ = fs.remove_file(&self.claim.staging, &self.claim.id.record_name());
                    return Err(error);
                }
            };
            let (synced, is_named, counts_as_whole, is_by_path) = (0, false, false, true);
            let state = RecordState { record, synced, is_named, counts_as_whole, is_by_path };
            self.retention = Retention::Recorded(state);
            self.claim.keep();
        }
        Ok(if let Retention::Recorded(state) = &mut self.retention { Some(state) } else { None })
    }

    /// Syncs the written bytes, and then records their offset.
    fn record(&mut self, fs: &dyn Fs) -> Result<()> {
        let recorded = self.record_synced(fs);
        recorded.inspect_err(|error| self.note(error))
    }

    fn record_synced(&mut self, fs: &dyn Fs) -> Result<()> {
        let (home, offset, Some(file)) = (self.claim.home.clone(), self.offset, self.file.clone()) else {
            return Ok(());
        };
        let (syncs, staging) = (self.syncs.clone(), self.claim.staging.clone());
        let Some(state) = self.record_state(fs)? else { return Ok(()) };
        if !state.is_named {
            home.sync(fs, &[&staging])?;
            state.is_named = true;
        }
        if state.synced != offset {
            syncs.sync(fs, &home, &file)?;
            state.record.write_offset(fs, &home, offset)?;
            state.record.sync(fs, &home)?;
            state.synced = offset;
        }
        Ok(())
    }

    fn file(&mut self, fs: &dyn Fs) -> Result<File> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let file = fs.create(&self.claim.staging, &self.claim.id.data_name())?;
        self.claim.home.note_staged(self.claim.id, &self.claim.staging);
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Removes the upload's files.
    pub(super) fn remove(mut self, fs: &dyn Fs) -> Ended {
        self.claim.forget();
        if self.file.is_some() {
            self.claim.home.remove_upload(fs, self.claim.id);
        }
        Ended::Aborted
    }

    fn remove_record(&self, fs: &dyn Fs) {
        if matches!(self.retention, Retention::Recorded(_))
            && let Err(error) = fs.remove_file(&self.claim.staging, &self.claim.id.record_name())
        {
            tracing::warn!(upload = %self.claim.id, %error, "the record of an upload could not be removed");
        }
    }
}

fn failed_before() -> Error {
    Error::Failed(io::Error::other("a sync of the upload has failed before"))
}

/// Writes the bytes of a pipe, after the first `done`, which it updates.
fn write_all_from(
    fs: &dyn Fs,
    file: &File,
    (pipe, bytes): (&Pipe, u64),
    at: u64,
    done: &mut u64,
) -> Result<()> {
    while *done < bytes {
        match fs.write_from(file, pipe, bytes - *done, at + *done)? {
            0 => return Err(Error::Full),
            count => *done += count,
        }
    }
    Ok(())
}
