//! Resumable uploads: created, looked up, listed for their owner, discarded or expired.
//!
//! Writing to them is not here, but in [`super::upload`]. Invariants: an upload is reported only after its
//! file and its record are synced. An expired one is gone for all callers at once.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use plimsoll_io::{File, Fs, Instant, Io, Work};

use super::claim::{Claim, ClaimedSize};
use super::commit::Terms;
use super::id::UploadId;
use super::record::{Record, RecordContents, UploadDescription, expires, has_expired, read};
use super::state::Paused;
use super::upload::SharedUpload;
use crate::error::{Error, Result};
use crate::home::{LocalHome, UploadEntry};
use crate::limits::TAKEN_OVER_TIME;
use crate::path::Path;
use crate::usage::Quota;

/// A resumable upload to be created. The text of its condition is recorded, to be checked again at the
/// commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewUpload {
    /// Its path and terms.
    pub terms: Terms,
    /// Its length in bytes, if known.
    pub bytes: Option<u64>,
    /// The client's metadata, in the protocol's own syntax, to be reported as it was sent.
    pub metadata: String,
}

/// A resumable upload, as it is reported to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumableUpload {
    /// Its identifier.
    pub id: UploadId,
    /// The path that it will have; the root for a partial upload, which has none.
    pub to: Path,
    /// Its length in bytes, if it was announced.
    pub bytes: Option<u64>,
    /// Bytes that are received and synced: fewer than `bytes` until the commit, except for a partial
    /// upload.
    pub offset: u64,
    /// When it began.
    pub created: SystemTime,
    /// When it expires, if no more bytes are received.
    pub expires: SystemTime,
    /// The client's metadata; empty in a list of uploads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metadata: String,
}

impl ResumableUpload {
    /// Whether it is a partial upload, which is joined with others to a file and has no path.
    pub fn is_part(&self) -> bool {
        self.to.is_root()
    }

    /// Whether all of its bytes are received.
    pub fn is_complete(&self) -> bool {
        self.bytes == Some(self.offset)
    }
}

impl LocalHome {
    /// As [`crate::Home::create_resumable`].
    pub(crate) async fn create_resumable(&self, io: &Io, new: NewUpload) -> Result<ResumableUpload> {
        self.usage(io).await?;
        let (home, id, now) = (self.clone(), UploadId::draw(io), io.wall());
        io.offload(Work::Writes, move |fs| home.create_now(fs, id, new, now)).await?
    }

    pub(super) fn create_now(
        &self,
        fs: &dyn Fs,
        id: UploadId,
        new: NewUpload,
        now: SystemTime,
    ) -> Result<ResumableUpload> {
        self.remove_expired(fs, now)?;
        let bytes = new.bytes.unwrap_or(0);
        let mut claim = if new.terms.to.is_root() {
            self.clear_abandoned(fs);
            // A part has no path: it is copied when it is joined.
            let staged = (id, self.pending().clone());
            Claim::reserve(self, &mut self.lock(), staged, new.terms.quota, bytes)?
        } else {
            Claim::new(fs, self, id, &new.terms, ClaimedSize::of(bytes))?
        };
        let condition = new.terms.condition.text().words.clone();
        let description = UploadDescription::new(new.terms.to, new.bytes, (condition, new.metadata), now);
        self.note_staged(id, &claim.staging);
        match self.write_kept(fs, (id, &claim.staging), &description) {
            Ok(expires) => {
                claim.keep();
                claim.register(&mut self.lock(), Weak::new(), description.by_path());
                let UploadDescription { to, bytes, created, metadata, .. } = description;
                Ok(ResumableUpload { id, to, bytes, offset: 0, created, expires, metadata })
            }
            Err(error) => {
                self.remove_upload(fs, id);
                Err(error)
            }
        }
    }

    fn write_kept(
        &self,
        fs: &dyn Fs,
        (id, staging): (UploadId, &File),
        description: &UploadDescription,
    ) -> Result<SystemTime> {
        let data = fs.create(staging, &id.data_name())?;
        let record = Record::create(fs, staging, id, description)?;
        self.sync(fs, &[&data, record.file(), staging])?;
        Ok(expires(fs.stat(record.file())?.modified, self))
    }

    /// As [`crate::Home::resumable_upload`].
    pub(crate) async fn resumable_upload(&self, io: &Io, id: UploadId) -> Result<ResumableUpload> {
        let (home, now) = (self.clone(), io.wall());
        io.offload(Work::Writes, move |fs| home.look_so_far(fs, id, now)).await?
    }

    /// As [`crate::Home::pending_at`].
    pub(crate) async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<ResumableUpload>> {
        let (home, path, now) = (self.clone(), path.clone(), io.wall());
        io.offload(Work::Writes, move |fs| home.kept_at(fs, &path, now)).await?
    }

    /// Returns the resumable uploads that `path` identifies, the newest first.
    pub(super) fn kept_at(&self, fs: &dyn Fs, path: &Path, now: SystemTime) -> Result<Vec<ResumableUpload>> {
        let is_there =
            |upcoming: &UploadEntry| upcoming.by_path.as_ref().is_some_and(|found| found.to == *path);
        let ids: Vec<UploadId> = {
            let state = self.lock();
            state.uploads.iter().filter(|(_, upcoming)| is_there(upcoming)).map(|(id, _)| *id).collect()
        };
        let looked = ids.into_iter().map(|id| self.look_so_far(fs, id, now));
        // An upload that received no bytes has no record; one that ended meanwhile is no error.
        let mut kept: Vec<_> =
            looked.filter(|kept| !matches!(kept, Err(Error::NotFound))).collect::<Result<_>>()?;
        kept.sort_by_key(|kept| std::cmp::Reverse((kept.created, kept.id)));
        Ok(kept)
    }

    /// Discards the resumable uploads that `path` identifies and no connection is writing to. Does not
    /// sync: one that reappears after a power cut is as harmless as before.
    pub(super) fn discard_idle_at(&self, fs: &dyn Fs, path: &Path) {
        let mut state = self.lock();
        let is_idle = |upcoming: &UploadEntry| {
            !upcoming.in_use && upcoming.by_path.as_ref().is_some_and(|found| found.to == *path)
        };
        let idle: Vec<_> = state.uploads.extract_if(|_, upcoming| is_idle(upcoming)).collect();
        idle.into_iter().for_each(|(id, _)| self.remove_upload(fs, id));
    }

    /// Returns a resumable upload, after its received bytes are recorded.
    fn look_so_far(&self, fs: &dyn Fs, id: UploadId, now: SystemTime) -> Result<ResumableUpload> {
        if let Some(upload) = self.receiving(id) {
            let mut state = upload.lock();
            if !state.has_ended() {
                // After an error, the sender's next write fails.
                state.record(fs, &upload.buffer)?;
            }
        }
        self.look_at(fs, id, now)
    }

    /// Checks whether an upload can be resumed at `offset`.
    pub(super) fn check_offset(&self, fs: &dyn Fs, id: UploadId, offset: u64, now: SystemTime) -> Result<()> {
        let kept = self.look_so_far(fs, id, now)?;
        if offset == kept.offset || Some(offset) == kept.bytes {
            Ok(())
        } else {
            Err(Error::Offset(kept.offset))
        }
    }

    /// Ends the upload of another connection, which can then write no more. Bytes that it received since
    /// the last lookup were never reported.
    pub(super) fn take_over(&self, fs: &dyn Fs, id: UploadId) {
        if let Some(upload) = self.receiving(id) {
            upload.lock().take_over(fs);
        }
    }

    /// Whether a connection is sending the upload: bytes of it were received within the last
    /// [`TAKEN_OVER_TIME`]. A silent connection may have broken without notice.
    pub(super) fn is_sent(&self, id: UploadId, now: Instant) -> bool {
        let Some(upload) = self.receiving(id) else { return false };
        // A closure in progress, which holds the state, may be ending the upload.
        let has_ended = upload.lock().has_ended();
        !has_ended && upload.buffer.received_at().is_some_and(|last| now < last + TAKEN_OVER_TIME)
    }

    /// Returns the upload that a connection is receiving.
    fn receiving(&self, id: UploadId) -> Option<Arc<SharedUpload>> {
        self.lock().uploads.get(&id).and_then(|entry| entry.shared.upgrade())
    }

    /// As [`crate::Home::resumable_uploads`].
    pub(crate) async fn resumable_uploads(&self, io: &Io) -> Result<Vec<ResumableUpload>> {
        let (home, now) = (self.clone(), io.wall());
        let listed = io.offload(Work::Listings, move |fs| {
            let ids: Vec<UploadId> = home.lock().uploads.keys().copied().collect();
            // Without their metadata, so that the list is as long as the paths in it.
            let brief = |kept| ResumableUpload { metadata: String::new(), ..kept };
            let looked = ids.into_iter().map(|id| home.look_at(fs, id, now).map(brief));
            // An upload without a record is not resumable; one that ended meanwhile is no error.
            let mut kept: Vec<_> =
                looked.filter(|kept| !matches!(kept, Err(Error::NotFound))).collect::<Result<_>>()?;
            kept.sort_by_key(|kept| (kept.created, kept.id));
            Ok(kept)
        });
        listed.await?
    }

    /// As [`crate::Home::set_upload_length`].
    pub(crate) async fn set_upload_length(
        &self,
        io: &Io,
        id: UploadId,
        bytes: u64,
        quota: Quota,
    ) -> Result<()> {
        let (home, now) = (self.clone(), io.wall());
        io.offload(Work::Writes, move |fs| home.set_length_now(fs, id, (bytes, quota), now)).await?
    }

    fn set_length_now(
        &self,
        fs: &dyn Fs,
        id: UploadId,
        (bytes, quota): (u64, Quota),
        now: SystemTime,
    ) -> Result<()> {
        match self.look_so_far(fs, id, now)? {
            kept if kept.bytes == Some(bytes) => return Ok(()),
            kept if kept.bytes.is_some() || kept.offset > bytes => return Err(Error::Length),
            _ => self.take_over(fs, id),
        }
        let claim = Claim::resume(self, id)?;
        let (mut record, description, offset) = Record::open(fs, self, id, now)?;
        if description.is_by_path {
            return Err(Error::Length);
        }
        claim.grow(quota, bytes)?;
        record.write_length(fs, self, bytes).inspect_err(|_| claim.cut(offset))
    }

    /// As [`crate::Home::discard_upload`].
    pub(crate) async fn discard_upload(&self, io: &Io, id: UploadId) -> Result<()> {
        let (home, now) = (self.clone(), io.wall());
        let discarded = io.offload(Work::Writes, move |fs| {
            home.look_at(fs, id, now)?;
            home.take_over(fs, id);
            Paused::of(&home, id).discard(fs)
        });
        discarded.await?
    }

    fn look_at(&self, fs: &dyn Fs, id: UploadId, now: SystemTime) -> Result<ResumableUpload> {
        if !self.lock().uploads.contains_key(&id) {
            return Err(Error::NotFound);
        }
        let file = fs.open_beneath(&self.staging_of(id), &id.record_name())?;
        let modified = fs.stat(&file)?.modified;
        if has_expired(modified, self, now) {
            return Err(Error::NotFound);
        }
        let RecordContents { description, offset, .. } = read(fs, &file, id)?.ok_or(Error::NotFound)?;
        let offset = description.reported_offset(offset);
        let UploadDescription { to, bytes, created, metadata, .. } = description;
        Ok(ResumableUpload { id, to, bytes, offset, created, expires: expires(modified, self), metadata })
    }

    /// Removes the files of an upload, as far as they exist.
    pub(crate) fn remove_upload(&self, fs: &dyn Fs, id: UploadId) {
        // The record first: the next start removes bytes without a record, and a record without bytes too.
        let staging = self.staging_of(id);
        for name in [id.record_name(), id.data_name()] {
            match fs.remove_file(&staging, &name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(upload = %id, %error, "a pending upload could not be removed");
                }
                _ => {}
            }
        }
        self.forget_staged(id);
    }
}
