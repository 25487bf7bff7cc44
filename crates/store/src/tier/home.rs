//! A home: each operation on it is a request, and there is one call for all of them.
//!
//! It decides nothing. Invariant: each operation has the same meaning for every implementation.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Io, Stat};

use super::location::Location;
use super::upload::Upload;
use crate::backend::{HomeBackend, HomeRequest, HomeResponse, Removal, ResumeTerms, StatJson, UploadStart};
use crate::condition::Condition;
use crate::error::Result;
use crate::finished::Completed;
use crate::home::LocalHome;
use crate::owner::HomeOwner;
use crate::path::Path;
use crate::trash::{TrashId, TrashInfo, TrashPage, TrashedEntry};
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Expected, NewUpload, ResumableUpload, Terms, UploadId};
use crate::{Disposal, RemovalKind, Removed};

/// The files of one account. Clones share the home.
#[derive(Clone)]
pub struct Home(pub(super) Backend);

#[derive(Clone)]
pub(super) enum Backend {
    /// In the file system of this process.
    Local(LocalHome),
    /// Another implementation.
    Other(Arc<dyn HomeBackend>),
}

impl Home {
    /// The home's account.
    pub fn owner(&self) -> &HomeOwner {
        match &self.0 {
            Backend::Local(home) => home.owner(),
            Backend::Other(home) => home.owner(),
        }
    }

    /// Executes an operation.
    pub(crate) async fn call(&self, io: &Io, request: HomeRequest) -> Result<HomeResponse> {
        match &self.0 {
            Backend::Local(home) => home.call(io, request).await,
            Backend::Other(home) => home.call(io, request).await,
        }
    }

    pub(super) async fn ask<T: TryFrom<HomeResponse>>(&self, io: &Io, request: HomeRequest) -> Result<T> {
        self.call(io, request).await?.content()
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// As [`Home::upload`], [`Home::upload_from`], [`Home::resume_upload`] and [`Home::upload_of_parts`].
    pub async fn begin_upload(&self, io: &Io, start: UploadStart) -> Result<Upload> {
        match &self.0 {
            Backend::Local(home) => Ok(Upload::local(home.begin_upload(io, start).await?)),
            Backend::Other(home) => Ok(Upload::other(home.begin_upload(io, start).await?)),
        }
    }

    /// Returns the location of a file or folder in it, for a reader.
    pub fn location(&self, path: Path) -> Location {
        match &self.0 {
            Backend::Local(home) => Location::in_home(home.clone(), &path),
            Backend::Other(home) => Location::in_other_home(Arc::clone(home), path),
        }
    }

    /// Returns the metadata of the entry that a reader finds at `path`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    pub async fn stat(&self, io: &Io, path: &Path) -> Result<Stat> {
        self.ask(io, HomeRequest::Stat(path.clone())).await.map(|StatJson(stat)| stat)
    }

    /// Returns its usage.
    ///
    /// # Errors
    /// Any error of counting it.
    pub async fn usage(&self, io: &Io) -> Result<Usage> {
        self.ask(io, HomeRequest::Usage).await
    }

    /// Creates a folder, with `parents` also the missing ones of the folders that it is in.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyExists`] if an entry of any kind has the name; [`crate::Error::NoFolder`];
    /// [`crate::Error::Quota`].
    pub async fn make_folder(&self, io: &Io, path: Path, quota: Quota, parents: bool) -> Result<()> {
        self.ask(io, HomeRequest::MakeFolder { path, quota, parents }).await
    }

    /// Removes the entry `path` to the trash, if it is of this kind.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Precondition`], [`crate::Error::Home`]; if it is of
    /// another kind, [`crate::Error::IsFolder`], [`crate::Error::NotFolder`], [`crate::Error::NotEmpty`].
    pub async fn remove(
        &self,
        io: &Io,
        path: Path,
        kind: RemovalKind,
        condition: Condition,
    ) -> Result<Removed> {
        let removal = Removal { path, what: kind, condition, disposal: Disposal::Trash };
        self.remove_by(io, removal).await
    }

    /// As [`Home::remove`], for good or not.
    ///
    /// # Errors
    /// As [`Home::remove`].
    pub async fn remove_by(&self, io: &Io, removal: Removal) -> Result<Removed> {
        self.ask(io, HomeRequest::Remove(removal)).await
    }

    /// Returns the state of its trash.
    ///
    /// # Errors
    /// Any error of counting its usage.
    pub async fn trash_info(&self, io: &Io) -> Result<TrashInfo> {
        self.ask(io, HomeRequest::TrashInfo).await
    }

    /// Returns a page of the entries of its trash, the newest first.
    ///
    /// # Errors
    /// Any error of reading them.
    pub async fn trash(&self, io: &Io, page: TrashPage) -> Result<Vec<TrashedEntry>> {
        self.ask(io, HomeRequest::Trash(page)).await
    }

    /// Moves an entry of the trash back to its path, or to the path `to`. Missing folders above that are
    /// created. Returns the path.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such entry; [`crate::Error::AlreadyExists`] if the path has
    /// an entry; [`crate::Error::NoFolder`] if a file is in the place of a folder;
    /// [`crate::Error::OtherDisk`], [`crate::Error::Quota`]; [`crate::Error::Busy`] while the entry is moved
    /// by another caller.
    pub async fn restore(&self, io: &Io, id: TrashId, to: Option<Path>, quota: Quota) -> Result<Path> {
        self.ask(io, HomeRequest::Restore { id, to, quota }).await
    }

    /// Deletes an entry of the trash for good, or all entries.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Busy`].
    pub async fn drop_trashed(&self, io: &Io, id: Option<TrashId>) -> Result<Removed> {
        self.ask(io, HomeRequest::DropTrashed(id)).await
    }

    /// Checks whether [`Home::remove`] would now succeed.
    ///
    /// # Errors
    /// As [`Home::remove`].
    pub async fn check_removal(
        &self,
        io: &Io,
        path: Path,
        kind: RemovalKind,
        condition: Condition,
    ) -> Result<()> {
        let removal = Removal { path, what: kind, condition, disposal: Disposal::Trash };
        self.ask(io, HomeRequest::CheckRemoval(removal)).await
    }

    /// Sets the modification time of the file or folder `path`, as time since 1970. Returns its metadata
    /// after that.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for a link; [`crate::Error::Home`].
    pub async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        self.ask(io, HomeRequest::SetModified { path, modified }).await.map(|StatJson(stat)| stat)
    }

    /// Begins an upload, which is not resumable if it is interrupted.
    ///
    /// # Errors
    /// Errors that are known before the first byte: [`crate::Error::NoFolder`], [`crate::Error::IsFolder`],
    /// [`crate::Error::Precondition`], [`crate::Error::Quota`], [`crate::Error::TooManyUploads`].
    pub async fn upload(&self, io: &Io, terms: Terms, expected: Expected) -> Result<Upload> {
        self.begin_upload(io, UploadStart::Whole(terms, expected)).await
    }

    /// Begins an upload of unknown length at `begin`. `keep` is for the home's own account: resumable
    /// uploads to the path are considered, and the upload is itself resumable if it is interrupted, unless no
    /// bytes were received, it was refused, or it began with the bytes of a file, which still exists. Without
    /// `keep`, resumable uploads are left alone.
    ///
    /// A connection that wrote to a resumable upload can write no more, if it has received nothing for
    /// [`crate::limits::TAKEN_OVER_TIME`]. Bytes beyond an offset are cut off.
    ///
    /// An upload that begins with a file's bytes is committed only if its path still has that file,
    /// unchanged.
    ///
    /// # Errors
    /// As [`Home::upload`]. [`crate::Error::Offset`] with the largest possible offset, if the requested one
    /// is larger. [`crate::Error::NotResumable`] if the client could mean another file or upload.
    /// [`crate::Error::InUse`] if another connection is sending the same upload. [`crate::Error::Busy`]
    /// while many long copies to the home are in progress.
    pub async fn upload_from(&self, io: &Io, terms: Terms, begin: Begin, keep: bool) -> Result<Upload> {
        self.begin_upload(io, UploadStart::From { terms, begin, keep, at: None }).await
    }

    /// Resumes an upload, if that is at `offset`. With `digests` of the part that is now sent, the part
    /// counts only as a whole. The upload keeps its path, and the condition that it began with.
    ///
    /// Another connection that wrote to the upload can write no more. Most often it is a broken connection
    /// of the same client.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`]; [`crate::Error::Offset`] with the offset at which the upload is.
    pub async fn resume_upload(
        &self,
        io: &Io,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        terms: ResumeTerms,
    ) -> Result<Upload> {
        self.begin_upload(io, UploadStart::Resume { id, offset, digests, terms }).await
    }

    /// Begins an upload with all bytes of `parts`, complete partial uploads, in this order. `bytes` is
    /// their total length.
    ///
    /// # Errors
    /// As [`Home::upload`]. [`crate::Error::NotFound`] if one is not a partial upload.
    /// [`crate::Error::Length`] if one is incomplete. [`crate::Error::Busy`] while many long copies to the
    /// home are in progress.
    pub async fn upload_of_parts(
        &self,
        io: &Io,
        terms: Terms,
        parts: Vec<UploadId>,
        bytes: u64,
    ) -> Result<Upload> {
        self.begin_upload(io, UploadStart::Parts { terms, parts, bytes }).await
    }

    /// Creates a resumable upload. One to the root is a partial upload, which has no path.
    ///
    /// # Errors
    /// As [`Home::upload`].
    pub async fn create_resumable(&self, io: &Io, new: NewUpload) -> Result<ResumableUpload> {
        self.ask(io, HomeRequest::CreateResumable(new)).await
    }

    /// Sets the length of a resumable upload that was created without one, and reserves space for it. The
    /// length never changes afterwards. A connection that wrote to the upload can write no more.
    ///
    /// # Errors
    /// [`crate::Error::Length`] if the upload has another length or more bytes already, or if its path alone
    /// identifies it; [`crate::Error::Quota`].
    pub async fn set_upload_length(&self, io: &Io, id: UploadId, bytes: u64, quota: Quota) -> Result<()> {
        self.ask(io, HomeRequest::SetUploadLength { id, bytes, quota }).await
    }

    /// Returns a resumable upload, with the bytes received so far if a part is in progress.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for one that has expired.
    pub async fn resumable_upload(&self, io: &Io, id: UploadId) -> Result<ResumableUpload> {
        self.ask(io, HomeRequest::ResumableUpload(id)).await
    }

    /// Returns a resumable upload of announced length that was committed a while ago.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also before the commit, and a while after it.
    pub async fn completed_upload(&self, io: &Io, id: UploadId) -> Result<Completed> {
        self.ask(io, HomeRequest::CompletedUpload(id)).await
    }

    /// Returns the unfinished uploads that `path` identifies and that have received bytes, the newest
    /// first. They were begun by [`Home::upload_from`] with `keep`.
    ///
    /// # Errors
    /// Any error of reading them.
    pub async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<ResumableUpload>> {
        self.ask(io, HomeRequest::PendingAt(path.clone())).await
    }

    /// Returns all resumable uploads, the oldest first.
    ///
    /// # Errors
    /// Any error of reading them.
    pub async fn resumable_uploads(&self, io: &Io) -> Result<Vec<ResumableUpload>> {
        self.ask(io, HomeRequest::ResumableUploads).await
    }

    /// Discards a resumable upload.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::InUse`].
    pub async fn discard_upload(&self, io: &Io, id: UploadId) -> Result<()> {
        self.ask(io, HomeRequest::DiscardUpload(id)).await
    }
}
