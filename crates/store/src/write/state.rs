//! The state machine of an upload.
//!
//! Each state is a type, and each transition consumes the state that it leaves. Only a [`Prepared`] upload
//! can be committed: all its bytes are written and synced. An upload that has ended takes no more bytes.
//! [`UploadState`] is the current state; its methods are the events. A `-` marks an event that changes
//! nothing in a state. A test of this module makes every transition of the table, and tries all others.
//!
//! | event | Receiving | Prepared | Paused | Committed | Aborted |
//! | --- | --- | --- | --- | --- | --- |
//! | write | Receiving | Receiving | - | - | - |
//! | append | Receiving | Receiving | - | - | - |
//! | prepare | Prepared | Prepared | - | - | - |
//! | prepare, sync fails | Paused | Prepared | - | - | - |
//! | record | Receiving | Prepared | - | - | - |
//! | commit | Committed | Committed | - | - | - |
//! | commit, with a modification time | Committed | Committed | - | - | - |
//! | commit, sync fails | Paused | Paused | - | - | - |
//! | commit, sync fails, resumable by path, not recorded | Aborted | Aborted | - | - | - |
//! | commit, guard refuses | Prepared | Prepared | - | - | - |
//! | commit, digest of the whole file differs | Aborted | Aborted | - | - | - |
//! | pause | Paused | Paused | - | - | - |
//! | error, resumable | Paused | Paused | - | - | - |
//! | error, not resumable | Aborted | Aborted | - | - | - |
//! | refused, resumable by path | Aborted | Aborted | - | - | - |
//! | abort, resumable | Paused | Paused | - | - | - |
//! | abort, not resumable | Aborted | Aborted | - | - | - |
//! | take over, resumable | Paused | Paused | - | - | - |
//! | resume | - | - | Receiving | - | - |
//! | discard | - | - | Aborted | - | - |
//!
//! `docs/design/uploads.md` says for each state which bytes are on disk, which reply the client has
//! received, and what a crash leaves.

use std::time::SystemTime;

use plimsoll_io::Fs;

use super::buffer::Buffer;
use super::claim::Claim;
use super::commit::{CommitRequest, Committed};
use super::digest::Algorithm;
use super::id::UploadId;
use super::record::UploadDescription;
use super::staging::{Offset, StagingFile};
use crate::error::{Error, Result};
use crate::home::LocalHome;

/// The state of an upload. [`SharedUpload`](super::upload::SharedUpload) has the lock for it.
pub(super) enum UploadState {
    Receiving(Receiving),
    Prepared(Prepared),
    Committed,
    /// A resumable upload that no connection is sending: see [`Paused`].
    Paused,
    /// The upload's files are removed, or the next change of the home removes them.
    Aborted,
}

/// Bytes are received and written. Some of them are in the buffer, and those in the file may be unsynced.
pub(super) struct Receiving(StagingFile);

/// All bytes that were received before the preparation are in the file, and synced.
pub(super) struct Prepared(StagingFile);

/// A resumable upload that no connection is sending. Its record has an offset; all bytes before it are
/// synced.
pub(super) struct Paused {
    home: LocalHome,
    id: UploadId,
}

/// The state of an upload that ended without a commit.
#[derive(Clone, Copy)]
pub(super) enum Ended {
    Paused,
    Aborted,
}

/// The result of a transition: the next state; or an error, and the state in which the upload is after it.
type Transition<S> = std::result::Result<S, (Ended, Error)>;

/// The outcome of a commit.
enum CommitOutcome {
    Committed(Committed),
    /// The guard refused.
    Refused(Box<Prepared>),
}

impl Receiving {
    /// Starts to receive an upload.
    pub(super) fn new(staging: StagingFile) -> Receiving {
        Receiving(staging)
    }

    /// The file, to set up the upload before its first byte.
    pub(super) fn staging(&self) -> &StagingFile {
        &self.0
    }

    fn write(mut self, fs: &dyn Fs, buffer: &Buffer) -> Transition<Receiving> {
        match self.0.write(fs, &buffer.take()) {
            Ok(()) => Ok(self),
            Err(error) => Err(self.0.end_after(fs, error)),
        }
    }

    fn prepare(mut self, fs: &dyn Fs) -> Transition<Prepared> {
        match self.0.sync(fs) {
            Ok(()) => Ok(Prepared(self.0)),
            Err(error) => Err(self.0.end_after(fs, error)),
        }
    }
}

impl Prepared {
    /// Returns to receiving, for more bytes.
    fn receive_more(self) -> Receiving {
        Receiving(self.0)
    }

    fn commit(
        mut self,
        fs: &dyn Fs,
        received: Option<[u8; 32]>,
        request: &CommitRequest,
    ) -> Transition<CommitOutcome> {
        match self.0.commit(fs, received, request) {
            Ok(Some(committed)) => Ok(CommitOutcome::Committed(committed)),
            Ok(None) => Ok(CommitOutcome::Refused(Box::new(self))),
            // No further bytes could correct it.
            Err(Error::Digest) => Err((self.0.remove(fs), Error::Digest)),
            Err(error) => Err(self.0.end_after(fs, error)),
        }
    }
}

impl Paused {
    /// Returns the paused upload of a home.
    pub(super) fn of(home: &LocalHome, id: UploadId) -> Paused {
        Paused { home: home.clone(), id }
    }

    /// Resumes the upload at `offset`, and returns its description. With `digests` of the part that is now
    /// sent, the part counts only as a whole.
    pub(super) fn resume(
        &self,
        fs: &dyn Fs,
        offset: Offset,
        digests: &[(Algorithm, Vec<u8>)],
        now: SystemTime,
    ) -> Result<(Receiving, UploadDescription)> {
        let (staging, description) = StagingFile::open(fs, (&self.home, self.id), offset, digests, now)?;
        Ok((Receiving(staging), description))
    }

    /// Removes the upload's files.
    pub(super) fn discard(&self, fs: &dyn Fs) -> Result<()> {
        let staging = self.home.staging_of(self.id);
        self.remove(fs)?;
        // After the confirmation, a power cut must not bring it back.
        self.home.sync(fs, &[&staging])
    }

    /// As [`Paused::discard`], without the sync.
    pub(super) fn remove(&self, fs: &dyn Fs) -> Result<()> {
        let mut claim = Claim::resume(&self.home, self.id)?;
        claim.forget();
        self.home.remove_upload(fs, self.id);
        Ok(())
    }
}

impl From<Ended> for UploadState {
    fn from(ended: Ended) -> UploadState {
        match ended {
            Ended::Paused => UploadState::Paused,
            Ended::Aborted => UploadState::Aborted,
        }
    }
}

impl UploadState {
    /// Whether the upload has ended: nothing more can be written to it by this connection.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, UploadState::Committed | UploadState::Paused | UploadState::Aborted)
    }

    /// The file of an upload that has not ended.
    pub(super) fn staging(&mut self) -> Result<&mut StagingFile> {
        match self {
            UploadState::Receiving(Receiving(staging)) | UploadState::Prepared(Prepared(staging)) => {
                Ok(staging)
            }
            _ => Err(Error::InUse),
        }
    }

    /// Takes the file of an upload that is to end. After a panic, the upload is aborted.
    fn take_staging(&mut self) -> Result<StagingFile> {
        match std::mem::replace(self, UploadState::Aborted) {
            UploadState::Receiving(Receiving(staging)) | UploadState::Prepared(Prepared(staging)) => {
                Ok(staging)
            }
            ended => {
                *self = ended;
                Err(Error::InUse)
            }
        }
    }

    fn end_with(&mut self, (ended, error): (Ended, Error)) -> Error {
        *self = ended.into();
        error
    }

    /// Writes the buffer. After an error, the upload has ended.
    pub(super) fn write(&mut self, fs: &dyn Fs, buffer: &Buffer) -> Result<()> {
        if matches!(self, UploadState::Prepared(_)) && buffer.bytes() == 0 {
            return Ok(());
        }
        let receiving = match std::mem::replace(self, UploadState::Aborted) {
            UploadState::Receiving(receiving) => receiving,
            UploadState::Prepared(prepared) => prepared.receive_more(),
            ended => {
                *self = ended;
                return Err(Error::InUse);
            }
        };
        *self = UploadState::Receiving(receiving.write(fs, buffer).map_err(|error| self.end_with(error))?);
        Ok(())
    }

    /// Changes the file by `work`, past the buffer.
    pub(super) fn append<T>(
        &mut self,
        fs: &dyn Fs,
        work: impl FnOnce(&mut StagingFile) -> Result<T>,
    ) -> Result<T> {
        let mut staging = self.take_staging()?;
        match work(&mut staging) {
            Ok(done) => {
                *self = UploadState::Receiving(Receiving(staging));
                Ok(done)
            }
            Err(error) => Err(self.end_with(staging.end_after(fs, error))),
        }
    }

    /// Writes the buffer and syncs the file, so that the commit has little to wait for.
    pub(super) fn prepare(&mut self, fs: &dyn Fs, buffer: &Buffer) -> Result<()> {
        self.write(fs, buffer)?;
        self.take_prepared(fs).map(|prepared| *self = UploadState::Prepared(prepared))
    }

    fn take_prepared(&mut self, fs: &dyn Fs) -> Result<Prepared> {
        match std::mem::replace(self, UploadState::Aborted) {
            UploadState::Prepared(prepared) => Ok(prepared),
            UploadState::Receiving(receiving) => receiving.prepare(fs).map_err(|error| self.end_with(error)),
            ended => {
                *self = ended;
                Err(Error::InUse)
            }
        }
    }

    /// Commits an upload that has received this many bytes, unless it is cancelled: then it ends. None if
    /// the guard refuses: the upload is prepared, and can be committed later.
    pub(super) fn commit(
        &mut self,
        fs: &dyn Fs,
        buffer: &Buffer,
        bytes: u64,
        request: &CommitRequest,
    ) -> Result<Option<Committed>> {
        self.write(fs, buffer)?;
        if let Some(modified) = request.modified {
            // The preparation synced the file with another time: it is synced again.
            self.append(fs, |staging| staging.set_modified(fs, modified))?;
        }
        if request.cancel.is_some() {
            // A thread that would cancel this upload may be waiting for this core, or a local client that is
            // being killed.
            fs.let_others_go();
        }
        let staging = self.staging()?;
        let received = match staging.check_complete(bytes).and_then(|()| staging.check_digests()) {
            Ok(received) => received,
            Err(error) => {
                let staging = self.take_staging()?;
                return Err(self.end_with(staging.end_after(fs, error)));
            }
        };
        let committed = self.take_prepared(fs)?.commit(fs, received, request);
        match committed.map_err(|error| self.end_with(error))? {
            CommitOutcome::Committed(committed) => {
                *self = UploadState::Committed;
                Ok(Some(committed))
            }
            CommitOutcome::Refused(prepared) => {
                *self = UploadState::Prepared(*prepared);
                Ok(None)
            }
        }
    }

    /// Ends a part that has received this many bytes. Returns the upload's offset, which is synced.
    pub(super) fn pause(&mut self, fs: &dyn Fs, buffer: &Buffer, bytes: u64) -> Result<u64> {
        self.write(fs, buffer)?;
        let staging = self.take_staging()?;
        if let Err(error) = staging.check_complete(bytes) {
            return Err(self.end_with(staging.end_after(fs, error)));
        }
        let offset = staging.pause(fs).map_err(|error| self.end_with(error))?;
        *self = UploadState::Paused;
        Ok(offset)
    }

    /// Ends an upload whose client is gone. Does nothing if it has ended.
    pub(super) fn abort(&mut self, fs: &dyn Fs, buffer: &Buffer) {
        if let Err(error) = self.write_kept(fs, buffer)
            && !matches!(error, Error::InUse)
        {
            tracing::info!(%error, "the last bytes of an upload were not written");
        }
        self.take_over(fs);
    }

    /// Ends an upload for another connection, without the buffered bytes. Does nothing if it has ended.
    pub(super) fn take_over(&mut self, fs: &dyn Fs) {
        if let Ok(staging) = self.take_staging() {
            *self = staging.end(fs).into();
        }
    }

    /// Ends an upload where nothing may block. Its files are removed later, if it does not stay.
    pub(super) fn abandon(&mut self) {
        if let Ok(staging) = self.take_staging() {
            *self = staging.abandon().into();
        }
    }

    /// Writes the buffer, if the upload would be kept if it ended now.
    ///
    /// # Errors
    /// The buffered bytes are lost then, and the upload has ended.
    pub(super) fn write_kept(&mut self, fs: &dyn Fs, buffer: &Buffer) -> Result<()> {
        if self.staging()?.keeps_more() && buffer.bytes() > 0 { self.write(fs, buffer) } else { Ok(()) }
    }

    /// Writes the buffer of a resumable upload, and records its offset.
    pub(super) fn record(&mut self, fs: &dyn Fs, buffer: &Buffer) -> Result<()> {
        self.write_kept(fs, buffer)?;
        self.staging()?.record_so_far(fs)
    }
}

#[cfg(test)]
mod tests;
