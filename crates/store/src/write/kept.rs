//! Uploads that are kept: begun now, gone on with later, listed for their owner, thrown away or expired.
//!
//! Writing to them is [`super::upload`]'s. What must hold: one is told of only after its file and its record
//! are synced; an expired one is gone for everybody at once.

use serde::{Deserialize, Serialize};
use std::sync::{PoisonError, Weak};
use std::time::SystemTime;

use plimsoll_io::{Fs, Instant, Io, Work};

use super::claim::Claim;
use super::commit::Terms;
use super::id::UploadId;
use super::record::{About, Record, Told, expires, has_expired, read};
use super::written::Written;
use crate::error::{Error, Result};
use crate::home::{Home, Upcoming};
use crate::limits::TAKEN_OVER_TIME;
use crate::path::Path;

/// An upload to be kept.
#[derive(Clone)]
pub struct NewUpload {
    /// Where it goes.
    pub terms: Terms,
    /// How many bytes it will have, if that is known.
    pub bytes: Option<u64>,
    /// The condition of its terms in the protocol's own words, to be asked again with the commit.
    pub condition: String,
}

/// A kept upload, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptUpload {
    /// Its name.
    pub id: UploadId,
    /// The path that it will have; the root of a part, which has none.
    pub to: Path,
    /// How many bytes it will have, if that was said.
    pub bytes: Option<u64>,
    /// How many bytes are received and synced: fewer than `bytes` until the commit, except of a partial
    /// upload.
    pub offset: u64,
    /// When it was begun.
    pub created: SystemTime,
    /// Until when it is kept, if nothing more comes.
    pub expires: SystemTime,
}

impl KeptUpload {
    /// Whether it is a partial upload, which is joined with others to a file and has no path.
    pub fn is_part(&self) -> bool {
        self.to.is_root()
    }

    /// Whether all of its bytes are received.
    pub fn is_complete(&self) -> bool {
        self.bytes == Some(self.offset)
    }
}

impl Home {
    /// Begins an upload that is kept.
    ///
    /// # Errors
    /// As [`Home::upload`].
    pub(crate) async fn keep(&self, io: &Io, new: NewUpload) -> Result<KeptUpload> {
        self.usage(io).await?;
        let (home, id, now) = (self.clone(), UploadId::draw(io), io.wall());
        io.offload(Work::Writes, move |fs| home.keep_now(fs, id, new, now)).await?
    }

    fn keep_now(&self, fs: &dyn Fs, id: UploadId, new: NewUpload, now: SystemTime) -> Result<KeptUpload> {
        self.remove_expired(fs, now)?;
        let bytes = new.bytes.unwrap_or(0);
        let mut claim = if new.terms.to.is_root() {
            self.clear_abandoned(fs);
            Claim::room(self, &mut self.lock(), id, new.terms.quota, bytes)?
        } else {
            Claim::new(fs, self, id, &new.terms, bytes)?
        };
        let about = About::new(new.terms.to, new.bytes, new.condition, now);
        match self.write_kept(fs, id, &about) {
            Ok(expires) => {
                claim.keep();
                claim.show(&mut self.lock(), Weak::new(), about.by_path());
                let About { to, bytes, created, .. } = about;
                Ok(KeptUpload { id, to, bytes, offset: 0, created, expires })
            }
            Err(error) => {
                self.remove_upload(fs, id);
                Err(error)
            }
        }
    }

    fn write_kept(&self, fs: &dyn Fs, id: UploadId, about: &About) -> Result<SystemTime> {
        let data = fs.create(self.pending(), &id.data_name())?;
        let record = Record::create(fs, self, id, about)?;
        self.sync(fs, &[&data, record.file(), self.pending()])?;
        Ok(expires(fs.stat(record.file())?.modified, self))
    }

    /// A kept upload, with what has come of a part that goes on.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for one that has expired.
    pub(crate) async fn kept(&self, io: &Io, id: UploadId) -> Result<KeptUpload> {
        let (home, now) = (self.clone(), io.wall());
        io.offload(Work::Writes, move |fs| home.look_so_far(fs, id, now)).await?
    }

    /// The unfinished uploads that `path` identifies, the newest first, as far as anything has been received
    /// of them.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub(crate) async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<KeptUpload>> {
        let (home, path, now) = (self.clone(), path.clone(), io.wall());
        io.offload(Work::Writes, move |fs| home.kept_at(fs, &path, now)).await?
    }

    /// The kept uploads that are found by `path`, the newest first.
    pub(super) fn kept_at(&self, fs: &dyn Fs, path: &Path, now: SystemTime) -> Result<Vec<KeptUpload>> {
        let is_there = |upcoming: &Upcoming| upcoming.by_path.as_ref().is_some_and(|found| found.to == *path);
        let ids: Vec<UploadId> = {
            let state = self.lock();
            state.uploads.iter().filter(|(_, upcoming)| is_there(upcoming)).map(|(id, _)| *id).collect()
        };
        let looked = ids.into_iter().map(|id| self.look_so_far(fs, id, now));
        // One of which nothing has come has no record; one that has ended meanwhile is no error.
        let mut kept: Vec<_> =
            looked.filter(|kept| !matches!(kept, Err(Error::NotFound))).collect::<Result<_>>()?;
        kept.sort_by_key(|kept| std::cmp::Reverse((kept.created, kept.id)));
        Ok(kept)
    }

    /// Throws away the kept uploads that are found by `path` and that nobody is writing to. One that comes
    /// back with the power is as harmless as one that was never thrown away.
    pub(super) fn discard_idle_at(&self, fs: &dyn Fs, path: &Path) {
        let mut state = self.lock();
        let is_idle = |upcoming: &Upcoming| {
            !upcoming.in_use && upcoming.by_path.as_ref().is_some_and(|found| found.to == *path)
        };
        let idle: Vec<_> = state.uploads.extract_if(|_, upcoming| is_idle(upcoming)).collect();
        idle.into_iter().for_each(|(id, _)| self.remove_upload(fs, id));
    }

    /// A kept upload, after what has come of it is recorded.
    fn look_so_far(&self, fs: &dyn Fs, id: UploadId, now: SystemTime) -> Result<KeptUpload> {
        self.with_file(id, |slot| {
            let Some(written) = slot else { return Ok(()) };
            let recorded = written.write_kept(fs);
            if recorded.is_err() {
                // Whoever sends it is told with what comes next.
                slot.take().into_iter().for_each(|written| written.settle(fs));
                return recorded;
            }
            written.record_so_far(fs)
        })?;
        self.look_at(fs, id, now)
    }

    /// Whether an upload can be gone on with at `offset`.
    pub(super) fn check_offset(&self, fs: &dyn Fs, id: UploadId, offset: u64, now: SystemTime) -> Result<()> {
        let kept = self.look_so_far(fs, id, now)?;
        if offset == kept.offset || Some(offset) == kept.bytes {
            Ok(())
        } else {
            Err(Error::Offset(kept.offset))
        }
    }

    /// Settles what somebody is writing to, who can then write no more. Whatever has come since the upload
    /// was last looked at has not been told to anybody.
    pub(super) fn take_over(&self, fs: &dyn Fs, id: UploadId) {
        self.with_file(id, |slot| slot.take().into_iter().for_each(|written| written.settle(fs)));
    }

    /// Whether a connection is sending the upload: bytes of it were received within the last
    /// [`TAKEN_OVER_TIME`]. A silent connection may have broken without notice.
    pub(super) fn is_sent(&self, id: UploadId, now: Instant) -> bool {
        let last = self.with_file(id, |slot| slot.as_ref().and_then(Written::received_at));
        last.is_some_and(|last| now < last + TAKEN_OVER_TIME)
    }

    /// Works on the file of an upload that somebody is writing to, when no closure of theirs does.
    fn with_file<T>(&self, id: UploadId, work: impl FnOnce(&mut Option<Written>) -> T) -> T {
        let slot = self.lock().uploads.get(&id).and_then(|upcoming| upcoming.slot.upgrade());
        match slot {
            Some(slot) => work(&mut slot.lock().unwrap_or_else(PoisonError::into_inner)),
            None => work(&mut None),
        }
    }

    /// All kept uploads, the oldest first.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub(crate) async fn all_kept(&self, io: &Io) -> Result<Vec<KeptUpload>> {
        let (home, now) = (self.clone(), io.wall());
        let listed = io.offload(Work::Listings, move |fs| {
            let ids: Vec<UploadId> = home.lock().uploads.keys().copied().collect();
            let looked = ids.into_iter().map(|id| home.look_at(fs, id, now));
            // One that passes is not kept; one that has ended meanwhile is no error.
            let mut kept: Vec<_> =
                looked.filter(|kept| !matches!(kept, Err(Error::NotFound))).collect::<Result<_>>()?;
            kept.sort_by_key(|kept| (kept.created, kept.id));
            Ok(kept)
        });
        listed.await?
    }

    /// Throws a kept upload away.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::InUse`].
    pub(crate) async fn discard(&self, io: &Io, id: UploadId) -> Result<()> {
        let (home, now) = (self.clone(), io.wall());
        let discarded = io.offload(Work::Writes, move |fs| {
            home.look_at(fs, id, now)?;
            home.take_over(fs, id);
            let mut claim = Claim::again(&home, id)?;
            claim.forget();
            home.remove_upload(fs, id);
            // What was confirmed to be gone must not come back with the power.
            home.sync(fs, &[home.pending()])
        });
        discarded.await?
    }

    fn look_at(&self, fs: &dyn Fs, id: UploadId, now: SystemTime) -> Result<KeptUpload> {
        if !self.lock().uploads.contains_key(&id) {
            return Err(Error::NotFound);
        }
        let file = fs.open_beneath(self.pending(), &id.record_name())?;
        let modified = fs.stat(&file)?.modified;
        if has_expired(modified, self, now) {
            return Err(Error::NotFound);
        }
        let Told { about, offset, .. } = read(fs, &file, id)?.ok_or(Error::NotFound)?;
        let offset = about.told(offset);
        let About { to, bytes, created, .. } = about;
        Ok(KeptUpload { id, to, bytes, offset, created, expires: expires(modified, self) })
    }

    /// Removes the files of an upload, as far as they are there.
    pub(crate) fn remove_upload(&self, fs: &dyn Fs, id: UploadId) {
        // The record first: bytes without one are cleared away at the next start, a record without bytes too.
        for name in [id.record_name(), id.data_name()] {
            match fs.remove_file(self.pending(), &name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(upload = %id, %error, "a pending upload could not be removed");
                }
                _ => {}
            }
        }
    }
}
