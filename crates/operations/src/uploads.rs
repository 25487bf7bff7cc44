//! Uploads: bytes that come to a place, at once or in parts.
//!
//! How they are written is the store's. To announce a kept upload, to look at it and to discard it are no
//! operations: each part of it is one. What must hold: an upload that is broken off has its line, with the
//! bytes that came.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Detached, Pipe};
use plimsoll_store::{
    Algorithm, Begin, Committed, Completed, Condition, Error as StoreError, Expected, Filling, KeptUpload,
    NewUpload, Path, TakeBack, Terms, Upload, UploadId,
};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::limits::COMMIT_CHECKS_MAX;
use crate::operation::Operation;
use crate::permit::{Permitted, Right};
use crate::place::Place;
use crate::record::Transfer;
use crate::sharing::is_free;

/// An upload under way, with its record.
pub struct Arriving {
    upload: Upload,
    transfer: Transfer,
    /// Whether it is a part of a file, which is not committed by itself.
    is_part: bool,
}

/// A condition that outlives the request that it came with.
pub struct Kept {
    /// The condition.
    pub condition: Condition,
    /// The same in the protocol's own words.
    pub words: String,
}

/// Where a part of a kept upload has led.
#[derive(Clone, Copy, Debug)]
pub enum Landed {
    /// More is to come, from this offset.
    Paused(u64),
    /// It is complete and in its place.
    Complete(Committed),
}

impl Operations {
    /// Begins an upload.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload`].
    pub async fn upload(
        &self,
        caller: &Caller,
        place: &Place,
        condition: Condition,
        expected: Expected,
    ) -> Result<Arriving, Error> {
        let mut transfer = self.begin_at(caller, Operation::Upload, place);
        let begun = self.begin_upload(caller, place, condition, expected, &mut transfer).await;
        Arriving::new(transfer, begun)
    }

    async fn begin_upload(
        &self,
        caller: &Caller,
        place: &Place,
        condition: Condition,
        expected: Expected,
        transfer: &mut Transfer,
    ) -> Result<Upload, Error> {
        let at = self.permit(caller, place, &[Right::Write]).await?;
        transfer.keep(at.keep(self, caller, place, Right::Write));
        let terms = terms(caller, &at, condition);
        Ok(at.home.upload(caller.io(), terms, expected).await?)
    }

    /// Begins an upload of unknown length at `from`. One into the caller's own home is kept when it is broken
    /// off. Who may not delete may go on with a kept upload, and not with a file that is there.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload_from`].
    pub async fn upload_from(&self, caller: &Caller, place: &Place, from: Begin) -> Result<Arriving, Error> {
        let mut transfer = self.begin_at(caller, Operation::Upload, place);
        let begun = self.begin_upload_from(caller, place, from, &mut transfer).await;
        Arriving::new(transfer, begun)
    }

    async fn begin_upload_from(
        &self,
        caller: &Caller,
        place: &Place,
        from: Begin,
        transfer: &mut Transfer,
    ) -> Result<Upload, Error> {
        let at = self.permit(caller, place, &[Right::Write]).await?;
        transfer.keep(at.keep(self, caller, place, Right::Write));
        if !caller.identity.account.permissions.delete {
            // To be told why: under the home's lock, the terms say it again.
            is_free(caller.io(), &at).await?;
        }
        let keep = place.is_own(&caller.identity.account.name);
        let terms = terms(caller, &at, Condition::none());
        Ok(at.home.upload_from(caller.io(), terms, from, keep).await?)
    }

    /// How many bytes were received of the caller's unfinished upload to a place, which
    /// [`Operations::upload_from`] resumes if no file is there; none of several, of which it resumes none.
    /// The caller checks for the file.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::pending_at`].
    pub async fn pending_size(&self, caller: &Caller, place: &Place) -> Result<Option<u64>, Error> {
        if !place.is_own(&caller.identity.account.name) {
            return Ok(None);
        }
        let at = self.permit(caller, place, &[Right::Write]).await?;
        match at.home.pending_at(caller.io(), &at.path).await?.as_slice() {
            [kept] => Ok(Some(kept.offset)),
            _ => Ok(None),
        }
    }

    /// Discards the caller's unfinished uploads that a place identifies. Returns whether there were any.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::discard`].
    pub async fn discard_pending(&self, caller: &Caller, place: &Place) -> Result<bool, Error> {
        if !place.is_own(&caller.identity.account.name) {
            return Ok(false);
        }
        let at = self.permit(caller, place, &[Right::Write]).await?;
        let pending = at.home.pending_at(caller.io(), &at.path).await?;
        for kept in &pending {
            at.home.discard(caller.io(), kept.id).await?;
        }
        Ok(!pending.is_empty())
    }

    /// Begins an upload that is kept when it is broken off. It is the caller's own: kept uploads go to one's
    /// own home.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::keep`].
    pub async fn keep_upload(
        &self,
        caller: &Caller,
        path: Path,
        condition: Kept,
        bytes: Option<u64>,
    ) -> Result<KeptUpload, Error> {
        let at = self.permit(caller, &Place::own(path), &[Right::Write]).await?;
        let terms = terms(caller, &at, condition.condition);
        Ok(at.home.keep(caller.io(), NewUpload { terms, bytes, condition: condition.words }).await?)
    }

    /// The caller's kept uploads.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::all_kept`].
    pub async fn kept_uploads(&self, caller: &Caller) -> Result<Vec<KeptUpload>, Error> {
        let at = self.permit(caller, &Place::own(Path::root()), &[Right::Write]).await?;
        Ok(at.home.all_kept(caller.io()).await?)
    }

    /// One of the caller's kept uploads.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::kept`].
    pub async fn kept_upload(&self, caller: &Caller, id: UploadId) -> Result<KeptUpload, Error> {
        let at = self.permit(caller, &Place::own(Path::root()), &[Right::Write]).await?;
        Ok(at.home.kept(caller.io(), id).await?)
    }

    /// One of the caller's kept uploads that came into its place a while ago.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::completed`].
    pub async fn completed_upload(&self, caller: &Caller, id: UploadId) -> Result<Completed, Error> {
        let at = self.permit(caller, &Place::own(Path::root()), &[Right::Write]).await?;
        Ok(at.home.completed(caller.io(), id).await?)
    }

    /// Throws one of the caller's kept uploads away.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::discard`].
    pub async fn discard_upload(&self, caller: &Caller, id: UploadId) -> Result<(), Error> {
        let at = self.permit(caller, &Place::own(Path::root()), &[Right::Write]).await?;
        Ok(at.home.discard(caller.io(), id).await?)
    }

    /// Goes on with one of the caller's kept uploads. `again` makes of the words that it was kept with the
    /// condition for its commit.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::go_on`].
    pub async fn go_on(
        &self,
        caller: &Caller,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        again: fn(&str) -> Condition,
    ) -> Result<Arriving, Error> {
        let kept = self.kept_upload(caller, id).await?;
        let is_part = kept.is_part();
        let place = Place::own(kept.to);
        let mut transfer = self.begin_at(caller, Operation::Upload, &place);
        let permitted = self.permit(caller, &place, &[Right::Write]).await;
        let begun = async {
            let at = permitted?;
            transfer.keep(at.keep(self, caller, &place, Right::Write));
            let terms = |to, words: &str| Terms { to, ..terms(caller, &at, again(words)) };
            Ok(at.home.go_on(caller.io(), id, offset, digests, terms).await?)
        };
        let begun = begun.await;
        Ok(Arriving { is_part, ..Arriving::new(transfer, begun)? })
    }

    /// Puts complete parts of the caller's together to a file, in this order, and throws them away. The file
    /// must have the digests `whole`, and gets the time of modification `modified`, since 1970.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload_of_parts`] and [`Upload::commit`], and why the right has ended.
    pub async fn join_parts(
        &self,
        caller: &Caller,
        path: Path,
        condition: Condition,
        parts: Vec<KeptUpload>,
        (whole, modified): (Vec<(Algorithm, Vec<u8>)>, Option<Duration>),
    ) -> Result<Committed, Error> {
        let place = Place::own(path);
        let mut transfer = self.begin_at(caller, Operation::Upload, &place);
        let permitted = self.permit(caller, &place, &[Right::Write]).await;
        let ids: Vec<UploadId> = parts.iter().map(|part| part.id).collect();
        let begun = async {
            let at = permitted?;
            transfer.keep(at.keep(self, caller, &place, Right::Write));
            let bytes = parts.iter().filter_map(|part| part.bytes).sum();
            let terms = terms(caller, &at, condition);
            let upload = at.home.upload_of_parts(caller.io(), terms, ids.clone(), bytes).await?;
            Ok::<_, Error>((upload, at.home))
        };
        let (upload, home) = match begun.await {
            Ok(begun) => begun,
            Err(error) => return transfer.end(Err(error)),
        };
        let mut arriving = Arriving { upload, transfer, is_part: false };
        modified.into_iter().for_each(|modified| arriving.set_modified(modified));
        let committed = arriving.commit_permitted(whole).await;
        let committed = arriving.transfer.end(committed)?;
        for id in ids {
            if let Err(error) = home.discard(caller.io(), id).await {
                // It expires by itself.
                tracing::debug!(upload = %id, %error, "a part of a complete file was not discarded");
            }
        }
        Ok(committed)
    }
}

/// Who may not delete may add, and not replace.
fn terms(caller: &Caller, at: &Permitted, condition: Condition) -> Terms {
    let may_replace = caller.identity.account.permissions.delete;
    let condition = if may_replace { condition } else { condition.and_new() };
    Terms { to: at.path.clone(), condition, quota: at.quota }
}

impl Arriving {
    fn new(transfer: Transfer, begun: Result<Upload, Error>) -> Result<Arriving, Error> {
        match begun {
            Ok(upload) => Ok(Arriving { upload, transfer, is_part: false }),
            Err(error) => transfer.end(Err(error)),
        }
    }

    /// The offset that it began at: how many bytes it had before the first that came this time.
    pub fn begun_at(&self) -> u64 {
        self.upload.begun_at()
    }

    /// Whether it is a part of a file, which has no digest of the whole.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// As [`Transfer::in_ascii`].
    pub fn in_ascii(&mut self) {
        self.transfer.in_ascii();
    }

    /// Bytes that came so far, with those of earlier times.
    pub fn bytes(&self) -> u64 {
        self.upload.bytes()
    }

    /// The path that it is to have, in the home that it goes to.
    pub fn to(&self) -> &Path {
        self.upload.to()
    }

    /// As [`Upload::set_modified`].
    pub fn set_modified(&mut self, modified: Duration) {
        self.upload.set_modified(modified);
    }

    /// As [`Upload::start_running_digest`].
    pub fn start_running_digest(&self) {
        self.upload.start_running_digest();
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// As [`Upload::write`]; end it then with [`Arriving::fail`].
    pub async fn write(&mut self, piece: Detached) -> Result<(), Error> {
        self.write_all([piece]).await
    }

    /// As [`Arriving::write`], for several pieces at once.
    ///
    /// # Errors
    /// As [`Arriving::write`].
    pub async fn write_all(&mut self, pieces: impl IntoIterator<Item = Detached>) -> Result<(), Error> {
        let written = self.upload.write_all(pieces).await;
        self.transfer.moved(self.upload.bytes() - self.upload.begun_at());
        Ok(written?)
    }

    /// As [`Upload::filling`].
    pub fn filling(&self) -> Option<Filling> {
        self.upload.filling()
    }

    /// As [`Upload::write_piped`].
    ///
    /// # Errors
    /// As [`Upload::write`]; end it then with [`Arriving::fail`].
    pub async fn write_piped(&mut self, pipe: Arc<Pipe>, bytes: u64) -> Result<(), Error> {
        let written = self.upload.write_piped(pipe, bytes).await;
        self.transfer.moved(self.upload.bytes() - self.upload.begun_at());
        Ok(written?)
    }

    /// As [`Upload::meanwhile`]; ends when the right to upload does, however long `next` takes.
    ///
    /// # Errors
    /// As [`Upload::write`], and why the right has ended; end it then with [`Arriving::fail`].
    pub async fn meanwhile<F: Future>(&mut self, next: Pin<&mut F>) -> Result<F::Output, Error> {
        let Arriving { upload, transfer, .. } = self;
        let Some(permit) = transfer.permit() else { return Ok(upload.meanwhile(next).await?) };
        // Also where there is always more to be received.
        permit.check_if_due().await?;
        Ok(permit.during(upload.meanwhile(next)).await??)
    }

    /// As [`Upload::take_back`].
    pub fn take_back(&mut self) -> TakeBack {
        self.upload.take_back()
    }

    /// As [`Upload::is_synced`].
    pub fn is_synced(&self) -> bool {
        self.upload.is_synced()
    }

    /// As [`Upload::prepare`].
    ///
    /// # Errors
    /// As [`Upload::prepare`]; end it then with [`Arriving::fail`].
    pub async fn prepare(&mut self) -> Result<(), Error> {
        Ok(self.upload.prepare().await?)
    }

    /// Ends the record of an upload that cannot go on, and passes the error on.
    pub fn fail(self, error: Error) -> Error {
        match self.transfer.end::<(), _>(Err(error)) {
            Err(error) => error,
            Ok(()) => Error::NOT_FOUND,
        }
    }

    /// Ends an upload that is broken off, and waits until what is kept of it is.
    pub async fn break_off(self) {
        let Arriving { upload, transfer, .. } = self;
        upload.give_up().await;
        drop(transfer);
    }

    /// Commits the complete upload, if the right to it still holds.
    ///
    /// # Errors
    /// As [`Upload::commit`], and why the right has ended.
    pub async fn commit(mut self) -> Result<Committed, Error> {
        let committed = self.commit_permitted(Vec::new()).await;
        self.transfer.end(committed)
    }

    /// The part has come: puts the upload in its place if it was the last part, whose digests of the
    /// whole are `whole`; else leaves it for later.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`] and [`Upload::pause`], and why the right to upload has ended.
    pub async fn end_part(mut self, whole: Vec<(Algorithm, Vec<u8>)>) -> Result<Landed, Error> {
        if !self.is_part && self.upload.announced() == Some(self.upload.bytes()) {
            let committed = self.commit_permitted(whole).await.map(Landed::Complete);
            return self.transfer.end(committed);
        }
        let Arriving { upload, transfer, .. } = self;
        transfer.end(upload.pause().await.map(Landed::Paused))
    }

    /// Checks the right and commits; starts over if rights change between the two. The right is also checked
    /// while the commit waits for the disk. That check notes changes by other processes, and the guard sees
    /// them.
    async fn commit_permitted(&mut self, whole: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed, Error> {
        let Arriving { upload, transfer, .. } = self;
        let Some(permit) = transfer.permit() else {
            return Ok(upload.try_commit(whole, None).await?.ok_or(StoreError::Busy)?);
        };
        for _ in 0..COMMIT_CHECKS_MAX {
            permit.check().await?;
            let guard = permit.guard();
            let mut committing = pin!(upload.try_commit(whole.clone(), Some(guard)));
            let committed = match permit.during(committing.as_mut()).await {
                Ok(committed) => committed?,
                // The commit completes or its guard refuses it. The next check reports the reason.
                Err(_) => committing.await?,
            };
            if let Some(committed) = committed {
                return Ok(committed);
            }
        }
        Err(StoreError::Busy.into())
    }
}
