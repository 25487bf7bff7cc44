//! Uploads: bytes for a place, in one request or in parts.
//!
//! The store writes them. Creating, inspecting and discarding a resumable upload are not operations.
//! Invariants: an aborted upload has its log line, with the bytes received; a complete one has one line,
//! also if it was received in parts.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use plimsoll_auth::Error as AuthError;
use plimsoll_io::{EndProbe, Lease};
use plimsoll_store::backend::{ResumeTerms, UploadStart};
use plimsoll_store::{
    Algorithm, Begin, CancelHandle, Committed, Completed, Condition, Error as StoreError, Expected,
    NewUpload, ParseCondition, Path, ReceivePipe, ReceivedBytes, ResumableUpload, Terms, Upload, UploadId,
};

use crate::Operations;
use crate::audit::AuditEntry;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::limits::COMMIT_CHECKS_MAX;
use crate::link_uploads::LinkUpload;
use crate::operation::Operation;
use crate::permit::{AccessRight, Parents, Permitted};
use crate::sharing::is_free;

/// An upload in progress, with its audit entry.
pub struct IncomingUpload {
    upload: Upload,
    audit: AuditEntry,
    /// Whether it is a part of a file, which is not committed by itself.
    is_part: bool,
    /// The creation of a resumable upload with an identifier, whose earlier parts have no line of their own.
    created: Option<SystemTime>,
    /// Its place among those of the public link that its caller visits.
    link: Option<LinkUpload>,
}

/// The outcome of a part of a resumable upload.
#[derive(Clone, Copy, Debug)]
pub enum PartOutcome {
    /// The part is stored. The next part begins at this offset.
    Paused(u64),
    /// The file is complete and committed.
    Complete(Committed),
}

/// The reason why an upload was not received to its end.
#[derive(Debug)]
pub enum ReceiveError<E> {
    /// Its bytes could not be written, or the right to upload has ended.
    Upload(Error),
    /// They could not be received.
    Connection(E),
}

impl Operations {
    /// Starts an upload, into a missing folder as `parents` says.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload`].
    pub async fn upload(
        &self,
        caller: &Caller,
        (place, parents): (&HomePath, Parents),
        condition: Condition,
        expected: Expected,
    ) -> Result<IncomingUpload, Error> {
        let start = |at: &Permitted| UploadStart::Whole(terms(caller, at, condition), expected);
        self.begin_upload(caller, (place, parents), start).await
    }

    /// Starts an upload of unknown length at `from`. An upload into the caller's own home is resumable
    /// after an interruption. A caller without the permission to delete may resume an upload, but may not
    /// append to an existing file. Missing folders are created as the caller's account is permitted.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload_from`].
    pub async fn upload_from(
        &self,
        caller: &Caller,
        place: &HomePath,
        from: Begin,
    ) -> Result<IncomingUpload, Error> {
        let start = |at: &Permitted| {
            let keep = place.is_own(&caller.identity.account.name);
            UploadStart::From { terms: terms(caller, at, Condition::none()), begin: from, keep, at: None }
        };
        self.begin_upload(caller, (place, Parents::AsPermitted), start).await
    }

    /// Returns the number of bytes received of the caller's unfinished upload to a place. If there is no
    /// file at the place, [`Operations::upload_from`] resumes that upload. Returns `None` if there is no
    /// upload, or if there are several, of which it resumes none. This function does not check for the file.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::pending_at`].
    pub async fn pending_size(&self, caller: &Caller, place: &HomePath) -> Result<Option<u64>, Error> {
        if !place.is_own(&caller.identity.account.name) {
            return Ok(None);
        }
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        match at.home.pending_at(caller.io(), &at.path).await?.as_slice() {
            [kept] => Ok(Some(kept.offset)),
            _ => Ok(None),
        }
    }

    /// Discards the caller's unfinished uploads to a place. Returns whether there were any.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::discard_upload`].
    pub async fn discard_pending(&self, caller: &Caller, place: &HomePath) -> Result<bool, Error> {
        if !place.is_own(&caller.identity.account.name) {
            return Ok(false);
        }
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        let pending = at.home.pending_at(caller.io(), &at.path).await?;
        for kept in &pending {
            at.home.discard_upload(caller.io(), kept.id).await?;
        }
        Ok(!pending.is_empty())
    }

    /// Creates a resumable upload of `bytes`, if that is known, with the client's `metadata`. It goes to the
    /// caller's own home, as all resumable uploads do. The text of its condition outlives the request.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::create_resumable`].
    pub async fn create_resumable(
        &self,
        caller: &Caller,
        path: Path,
        condition: Condition,
        (bytes, metadata): (Option<u64>, String),
    ) -> Result<ResumableUpload, Error> {
        let at = self.permit(caller, &HomePath::own(path), &[AccessRight::Write]).await?;
        let new = NewUpload { terms: terms(caller, &at, condition), bytes, metadata };
        Ok(at.home.create_resumable(caller.io(), new).await?)
    }

    /// Sets the length of one of the caller's resumable uploads that was created without one.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::set_upload_length`].
    pub async fn set_upload_length(&self, caller: &Caller, id: UploadId, bytes: u64) -> Result<(), Error> {
        let at = self.permit(caller, &HomePath::own(Path::root()), &[AccessRight::Write]).await?;
        Ok(at.home.set_upload_length(caller.io(), id, bytes, at.quota).await?)
    }

    /// Returns the caller's resumable uploads.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::resumable_uploads`].
    pub async fn resumable_uploads(&self, caller: &Caller) -> Result<Vec<ResumableUpload>, Error> {
        let at = self.permit(caller, &HomePath::own(Path::root()), &[AccessRight::Write]).await?;
        Ok(at.home.resumable_uploads(caller.io()).await?)
    }

    /// Returns one of the caller's resumable uploads.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::resumable_upload`].
    pub async fn resumable_upload(&self, caller: &Caller, id: UploadId) -> Result<ResumableUpload, Error> {
        let at = self.permit(caller, &HomePath::own(Path::root()), &[AccessRight::Write]).await?;
        Ok(at.home.resumable_upload(caller.io(), id).await?)
    }

    /// Returns one of the caller's resumable uploads that was committed recently.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::completed_upload`].
    pub async fn completed_upload(&self, caller: &Caller, id: UploadId) -> Result<Completed, Error> {
        let at = self.permit(caller, &HomePath::own(Path::root()), &[AccessRight::Write]).await?;
        Ok(at.home.completed_upload(caller.io(), id).await?)
    }

    /// Discards one of the caller's resumable uploads.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::discard_upload`].
    pub async fn discard_upload(&self, caller: &Caller, id: UploadId) -> Result<(), Error> {
        let at = self.permit(caller, &HomePath::own(Path::root()), &[AccessRight::Write]).await?;
        Ok(at.home.discard_upload(caller.io(), id).await?)
    }

    /// Resumes one of the caller's uploads. `parse` parses the stored text of its precondition into the
    /// condition for its commit.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::resume_upload`].
    pub async fn resume_upload(
        &self,
        caller: &Caller,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        parse: ParseCondition,
    ) -> Result<IncomingUpload, Error> {
        let kept = self.resumable_upload(caller, id).await?;
        let (is_part, created) = (kept.is_part(), Some(kept.created));
        let start = |at: &Permitted| {
            let terms = ResumeTerms { quota: at.quota, only_new: !may_replace(caller), parse };
            UploadStart::Resume { id, offset, digests, terms }
        };
        let begun = self.begin_upload(caller, (&HomePath::own(kept.to), Parents::Needed), start).await?;
        Ok(IncomingUpload { is_part, created, ..begun })
    }

    /// Joins complete parts of the caller's into one file, in this order; the commit ends them. The file
    /// must have the digests `whole`. Its modification time becomes `modified`, since 1970.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload_of_parts`] and [`Upload::commit`]; the reason why the right has
    /// ended.
    pub async fn join_parts(
        &self,
        caller: &Caller,
        path: Path,
        condition: Condition,
        parts: Vec<ResumableUpload>,
        (whole, modified): (Vec<(Algorithm, Vec<u8>)>, Option<Duration>),
    ) -> Result<Committed, Error> {
        let created = parts.iter().map(|part| part.created).min();
        let start = |at: &Permitted| UploadStart::Parts {
            terms: terms(caller, at, condition),
            parts: parts.iter().map(|part| part.id).collect(),
            bytes: parts.iter().filter_map(|part| part.bytes).sum(),
        };
        let begun = self.begin_upload(caller, (&HomePath::own(path), Parents::Needed), start).await?;
        let mut arriving = IncomingUpload { created, ..begun };
        modified.into_iter().for_each(|modified| arriving.set_modified(modified));
        arriving.commit_whole(whole).await
    }

    /// Starts an upload, with its record. `start` gets the place where the caller may write.
    async fn begin_upload(
        &self,
        caller: &Caller,
        (place, parents): (&HomePath, Parents),
        start: impl FnOnce(&Permitted) -> UploadStart,
    ) -> Result<IncomingUpload, Error> {
        let mut audit = self.begin_at(caller, Operation::Upload, place);
        match self.begin_permitted(caller, (place, parents), start, &mut audit).await {
            Ok((upload, link)) => Ok(IncomingUpload { upload, audit, is_part: false, created: None, link }),
            Err(error) => audit.end(Err(error)),
        }
    }

    /// Starts the upload of a new file to an existing folder. Returns `None`, without a record, if the name
    /// is taken.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::upload`].
    pub async fn upload_if_free(
        &self,
        caller: &Caller,
        place: &HomePath,
        expected: Expected,
    ) -> Result<Option<IncomingUpload>, Error> {
        let start =
            |at: &Permitted| UploadStart::Whole(terms(caller, at, Condition::none().and_new()), expected);
        let mut audit = self.begin_at(caller, Operation::Upload, place);
        match self.begin_permitted(caller, (place, Parents::Needed), start, &mut audit).await {
            Ok((upload, link)) => {
                Ok(Some(IncomingUpload { upload, audit, is_part: false, created: None, link }))
            }
            Err(Error::Store(StoreError::Precondition | StoreError::IsFolder)) => {
                audit.omit();
                audit.done();
                Ok(None)
            }
            // A lock of a file that is there is no reason to refuse one of another name.
            Err(Error::Auth(AuthError::Locked { .. })) if self.is_taken(caller, place).await => {
                audit.omit();
                audit.done();
                Ok(None)
            }
            Err(error) => audit.end(Err(error)),
        }
    }

    async fn is_taken(&self, caller: &Caller, place: &HomePath) -> bool {
        match self.permit(caller, place, &[AccessRight::Write]).await {
            Ok(at) => at.home.stat(caller.io(), &at.path).await.is_ok(),
            Err(_) => false,
        }
    }

    async fn begin_permitted(
        &self,
        caller: &Caller,
        (place, parents): (&HomePath, Parents),
        start: impl FnOnce(&Permitted) -> UploadStart,
        audit: &mut AuditEntry,
    ) -> Result<(Upload, Option<LinkUpload>), Error> {
        let mut at = self.permit(caller, place, &[AccessRight::Write]).await?;
        let (permit, locks) = (
            at.transfer_permit(self, caller, place, AccessRight::Write),
            self.check_upload_locks(caller, &at).await?,
        );
        at.is_locked_by_caller = locks.has_own_lock(caller);
        audit.set_permit(permit.with_locks(locks));
        let start = start(&at);
        let link = self.begin_link_upload(caller, announced(&start)).await?;
        if matches!(start, UploadStart::From { .. }) && !may_replace(caller) {
            // For a specific error. The terms enforce the same under the home's lock.
            is_free(caller.io(), &at).await?;
        }
        let begun = at.home.begin_upload(caller.io(), start.clone()).await;
        if !parents.are_made(&at) || !matches!(begun, Err(StoreError::NoFolder)) {
            return Ok((begun?, link));
        }
        // Boxed: rarely taken, and inlining it would enlarge every upload's future.
        Box::pin(self.make_parents(caller, &at)).await?;
        Ok((at.home.begin_upload(caller.io(), start).await?, link))
    }

    /// Creates the folder of an upload, with those that it is in. Only its existence counts: another upload
    /// may create it at the same time.
    async fn make_parents(&self, caller: &Caller, at: &Permitted) -> Result<(), Error> {
        // Neither a home nor a shared folder is made again.
        let Some(folder) = at.path.parent().filter(|folder| !folder.is_top()) else { return Ok(()) };
        self.check_locks_of_parents(caller, at).await?;
        match at.home.make_folder(caller.io(), folder, at.quota, true).await {
            Err(StoreError::AlreadyExists) => Ok(()),
            made => Ok(made?),
        }
    }
}

/// Returns the bytes that the client has announced.
fn announced(start: &UploadStart) -> u64 {
    match start {
        UploadStart::Whole(_, expected) => expected.bytes.unwrap_or_default(),
        _ => 0,
    }
}

/// Builds the terms of an upload.
fn terms(caller: &Caller, at: &Permitted, condition: Condition) -> Terms {
    let condition = match (may_replace(caller), at.is_locked_by_caller) {
        (true, _) => condition,
        // The empty file that LOCK has created for the caller is no file to protect.
        (false, true) => condition.and_new_or_empty(),
        (false, false) => condition.and_new(),
    };
    Terms { to: at.path.clone(), condition, quota: at.quota }
}

/// A caller without the permission to delete may add files, but not replace any.
fn may_replace(caller: &Caller) -> bool {
    caller.identity.account.permissions.delete
}

/// Returns the output of `future`, if it is ready at once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

impl IncomingUpload {
    /// Returns the offset at which this part of the upload began: the bytes received earlier.
    pub fn start_offset(&self) -> u64 {
        self.upload.start_offset()
    }

    /// Whether it is a part of a file, which has no digest of the whole file.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// As [`AuditEntry::in_ascii`].
    pub fn in_ascii(&mut self) {
        self.audit.in_ascii();
    }

    /// Returns the bytes received so far, including those of earlier connections.
    pub fn bytes(&self) -> u64 {
        self.upload.bytes()
    }

    /// Returns the destination path, in the home that the upload goes to.
    pub fn to(&self) -> &Path {
        self.upload.to()
    }

    /// As [`Upload::set_modified`].
    pub fn set_modified(&mut self, modified: Duration) {
        self.upload.set_modified(modified);
    }

    /// Returns the path with the name of [`IncomingUpload::set_spare_name`], as text with a slash before it.
    pub fn spare_path(&self) -> Option<String> {
        let (path, name) = (self.upload.to().to_string(), self.upload.spare_name()?);
        let folder = path.rfind('/').map_or("", |end| &path[..=end]);
        Some(format!("/{folder}{}", String::from_utf8_lossy(name)))
    }

    /// As [`Upload::set_spare_name`].
    pub fn set_spare_name(&mut self, name: Vec<u8>) {
        self.upload.set_spare_name(name);
    }

    /// As [`Upload::start_running_digest`].
    pub fn start_running_digest(&self) {
        self.upload.start_running_digest();
    }

    /// Receives the rest of the upload from a connection: `next` returns the next bytes, or `None` at the
    /// end. It is to receive them into the pipe, if it gets one.
    ///
    /// # Errors
    /// As [`IncomingUpload::write`], and the errors of `next`.
    pub async fn receive<E>(
        &mut self,
        mut next: impl AsyncFnMut(Option<ReceivePipe>) -> Result<Option<ReceivedBytes>, E>,
    ) -> Result<(), ReceiveError<E>> {
        loop {
            let received = pin!(next(self.upload.receive_pipe()));
            match self.meanwhile(received).await.map_err(ReceiveError::Upload)? {
                Ok(Some(received)) => self.write_received(received).await.map_err(ReceiveError::Upload)?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(ReceiveError::Connection(error)),
            }
        }
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// As [`Upload::write`]; end it then with [`IncomingUpload::fail`].
    pub async fn write(&mut self, piece: Lease) -> Result<(), Error> {
        self.write_received(ReceivedBytes::Memory(vec![piece])).await
    }

    async fn write_received(&mut self, received: ReceivedBytes) -> Result<(), Error> {
        let written = self.upload.write_received(received).await;
        self.audit.moved(self.upload.bytes() - self.upload.start_offset());
        written?;
        match &mut self.link {
            Some(link) => link.grow(self.upload.bytes()),
            None => Ok(()),
        }
    }

    /// As [`Upload::meanwhile`]. Ends when the right to upload does, even if `next` takes longer.
    ///
    /// # Errors
    /// As [`Upload::write`]; the reason why the right has ended. End it then with [`IncomingUpload::fail`].
    pub async fn meanwhile<F: Future>(&mut self, mut next: Pin<&mut F>) -> Result<F::Output, Error> {
        let IncomingUpload { upload, audit, .. } = self;
        let Some(permit) = audit.permit() else { return Ok(upload.meanwhile(next).await?) };
        // Here, because `during` checks only while it waits, and data may always be ready.
        permit.check_if_due().await?;
        // Bytes that are received already need no timer.
        match poll_once(next.as_mut()).await {
            Some(output) => Ok(output),
            None => Ok(permit.during(upload.meanwhile(next)).await??),
        }
    }

    /// As [`Upload::cancel_handle`].
    pub fn cancel_handle(&mut self, client: Option<EndProbe>) -> CancelHandle {
        self.upload.cancel_handle(client)
    }

    /// As [`Upload::prepare`].
    ///
    /// # Errors
    /// As [`Upload::prepare`]; end it then with [`IncomingUpload::fail`].
    pub async fn prepare(&mut self) -> Result<(), Error> {
        Ok(self.upload.prepare().await?)
    }

    /// Ends the audit entry of a failed upload, and returns the error.
    pub fn fail(self, error: Error) -> Error {
        match self.audit.end::<(), _>(Err(error)) {
            Err(error) => error,
            Ok(()) => Error::NOT_FOUND,
        }
    }

    /// Aborts an upload, and waits until the store has settled it: a resumable upload keeps its recorded
    /// bytes, any other is removed.
    pub async fn abort(self) {
        let IncomingUpload { upload, audit, link: _link, .. } = self;
        upload.abort().await;
        drop(audit);
    }

    /// Commits the complete upload, if the right to it still holds.
    ///
    /// # Errors
    /// As [`Upload::commit`]; the reason why the right has ended.
    pub async fn commit(self) -> Result<Committed, Error> {
        self.commit_whole(Vec::new()).await
    }

    /// As [`IncomingUpload::commit`], if the whole file has the digests `whole`.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`]; the reason why the right has ended.
    pub async fn commit_whole(mut self, whole: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed, Error> {
        let committed = self.commit_permitted(whole).await;
        if let (Ok(committed), Some(created)) = (&committed, self.created) {
            self.audit.include_earlier(created, committed.stat.size);
        }
        if let (Ok(Committed { has_spare_name: true, .. }), Some(name)) =
            (&committed, self.upload.spare_name())
        {
            self.audit.renamed(name);
        }
        self.audit.end(committed)
    }

    /// Ends a part. Commits the upload if it is complete, checking the digests `whole` of the whole file.
    /// Otherwise stores the part, so that the upload can be resumed.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`] and [`Upload::pause`]; the reason why the right to upload has ended.
    pub async fn end_part(self, whole: Vec<(Algorithm, Vec<u8>)>) -> Result<PartOutcome, Error> {
        if !self.is_part && self.upload.announced() == Some(self.upload.bytes()) {
            return self.commit_whole(whole).await.map(PartOutcome::Complete);
        }
        let IncomingUpload { upload, mut audit, .. } = self;
        let paused = upload.pause().await;
        if paused.is_ok() {
            audit.omit();
        }
        audit.end(paused.map(PartOutcome::Paused))
    }

    /// Checks the right and commits. Starts over if rights change between the two. The right is also
    /// checked while the commit waits for the disk: that check loads changes by other processes, so that the
    /// guard refuses a right that they ended.
    async fn commit_permitted(&mut self, whole: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed, Error> {
        let IncomingUpload { upload, audit, .. } = self;
        let Some(permit) = audit.permit() else {
            return Ok(upload.try_commit(whole, None).await?.ok_or(StoreError::Busy)?);
        };
        permit.count_link_upload(upload.bytes()).await?;
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
