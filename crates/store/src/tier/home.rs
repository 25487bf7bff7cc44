//! A home, in this process or remote.
//!
//! Invariant: each operation must have the same meaning for both.

use std::time::Duration;

use plimsoll_io::{Io, Stat};

use super::location::Location;
use super::upload::Upload;
use crate::condition::Condition;
use crate::error::Result;
use crate::finished::Completed;
use crate::home;
use crate::path::Path;
use crate::remote::RemoteHome;
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Expected, KeptUpload, NewUpload, Terms, UploadId};
use crate::{RemovalKind, Removed};

/// The files of one account. Clones share the home.
#[derive(Clone)]
pub struct Home(pub(super) Backend);

/// The location of a home.
#[derive(Clone)]
pub(super) enum Backend {
    /// In this process.
    Local(home::Home),
    /// At a remote store.
    Remote(RemoteHome),
}

impl Home {
    /// The account's name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Backend::Local(home) => home.name(),
            Backend::Remote(home) => home.name(),
        }
    }

    /// Returns the location of a file or folder in it, for a reader.
    pub fn location(&self, path: Path) -> Location {
        match &self.0 {
            Backend::Local(home) => Location::in_home(home.clone(), &path),
            Backend::Remote(home) => Location::in_remote_home(home.clone(), path),
        }
    }

    /// Returns the metadata of the entry that a reader finds at `path`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    pub async fn stat(&self, io: &Io, path: &Path) -> Result<Stat> {
        match &self.0 {
            Backend::Local(home) => home.look_up(io, path).await,
            Backend::Remote(home) => home.stat(io, path).await,
        }
    }

    /// Returns its usage.
    ///
    /// # Errors
    /// Any error of counting it.
    pub async fn usage(&self, io: &Io) -> Result<Usage> {
        match &self.0 {
            Backend::Local(home) => home.usage(io).await,
            Backend::Remote(home) => home.usage(io).await,
        }
    }

    /// Creates a folder, with `parents` also the missing ones of the folders that it is in.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyExists`] if an entry of any kind has the name; [`crate::Error::NoFolder`];
    /// [`crate::Error::Quota`].
    pub async fn make_folder(&self, io: &Io, path: Path, quota: Quota, parents: bool) -> Result<()> {
        match &self.0 {
            Backend::Local(home) => home.make_folder(io, path, quota, parents).await,
            Backend::Remote(home) => home.make_folder(io, path, quota, parents).await,
        }
    }

    /// Removes the entry `path`, if it is of this kind.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Precondition`], [`crate::Error::Home`]; if it is of
    /// another kind, [`crate::Error::IsFolder`], [`crate::Error::NotFolder`], [`crate::Error::NotEmpty`].
    pub async fn remove(
        &self,
        io: &Io,
        path: Path,
        what: RemovalKind,
        condition: Condition,
    ) -> Result<Removed> {
        match &self.0 {
            Backend::Local(home) => home.remove(io, path, what, condition).await,
            Backend::Remote(home) => home.remove(io, path, what, &condition).await,
        }
    }

    /// Checks whether [`Home::remove`] would now succeed.
    ///
    /// # Errors
    /// As [`Home::remove`].
    pub async fn check_removal(
        &self,
        io: &Io,
        path: Path,
        what: RemovalKind,
        condition: Condition,
    ) -> Result<()> {
        match &self.0 {
            Backend::Local(home) => home.check_removal(io, path, what, condition).await,
            Backend::Remote(home) => home.check_removal(io, path, what, &condition).await,
        }
    }

    /// Sets the modification time of the file or folder `path`, as time since 1970. Returns its metadata
    /// after that.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for a link; [`crate::Error::Home`].
    pub async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        match &self.0 {
            Backend::Local(home) => home.set_modified(io, path, modified).await,
            Backend::Remote(home) => home.set_modified(io, path, modified).await,
        }
    }

    /// Begins an upload, which is not resumable if it is interrupted.
    ///
    /// # Errors
    /// Errors that are known before the first byte: [`crate::Error::NoFolder`], [`crate::Error::IsFolder`],
    /// [`crate::Error::Precondition`], [`crate::Error::Quota`], [`crate::Error::TooManyUploads`].
    pub async fn upload(&self, io: &Io, terms: Terms, expected: Expected) -> Result<Upload> {
        match &self.0 {
            Backend::Local(home) => home.upload(io, terms, expected).await.map(Upload::local),
            Backend::Remote(home) => home.upload(io, &terms, expected).await.map(Upload::remote),
        }
    }

    /// Begins an upload of unknown length at `from`. `keep` is for the home's own account: resumable
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
    pub async fn upload_from(&self, io: &Io, terms: Terms, from: Begin, keep: bool) -> Result<Upload> {
        match &self.0 {
            Backend::Local(home) => home.upload_from(io, terms, from, keep).await.map(Upload::local),
            Backend::Remote(home) => home.upload_from(io, &terms, from, keep).await.map(Upload::remote),
        }
    }

    /// Returns the offset at which [`Home::upload_from`] would now begin at the end.
    ///
    /// # Errors
    /// Any error of looking it up. [`crate::Error::Away`] for a remote home: only the RPC server calls it,
    /// for a home in its own process.
    pub async fn end_of(&self, io: &Io, path: &Path, keep: bool) -> Result<u64> {
        match &self.0 {
            Backend::Local(home) => home.end_of(io, path, keep).await,
            Backend::Remote(_) => Err(crate::Error::Away),
        }
    }

    /// Resumes an upload, if that is at `offset`. With `digests` of the part that is now sent, the part
    /// counts only as a whole. `terms` gets the upload's path, and the condition that it began with. A
    /// remote store knows the path and the condition itself: it uses only the quota of `terms`, and whether
    /// the path must have no entry.
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
        terms: impl FnOnce(Path, &str) -> Terms,
    ) -> Result<Upload> {
        match &self.0 {
            Backend::Local(home) => {
                home.resume_upload(io, id, offset, digests, terms).await.map(Upload::local)
            }
            Backend::Remote(home) => {
                home.resume_upload(io, id, offset, digests, terms).await.map(Upload::remote)
            }
        }
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
        match &self.0 {
            Backend::Local(home) => home.upload_of_parts(io, terms, parts).await.map(Upload::local),
            Backend::Remote(home) => home.upload_of_parts(io, &terms, parts, bytes).await.map(Upload::remote),
        }
    }

    /// Creates a resumable upload. One to the root is a partial upload, which has no path.
    ///
    /// # Errors
    /// As [`Home::upload`].
    pub async fn create_resumable(&self, io: &Io, new: NewUpload) -> Result<KeptUpload> {
        match &self.0 {
            Backend::Local(home) => home.create_resumable(io, new).await,
            Backend::Remote(home) => home.create_resumable(io, new).await,
        }
    }

    /// Sets the length of a resumable upload that was created without one, and reserves space for it. The
    /// length never changes afterwards. A connection that wrote to the upload can write no more.
    ///
    /// # Errors
    /// [`crate::Error::Length`] if the upload has another length or more bytes already, or if its path alone
    /// identifies it; [`crate::Error::Quota`].
    pub async fn set_length(&self, io: &Io, id: UploadId, bytes: u64, quota: Quota) -> Result<()> {
        match &self.0 {
            Backend::Local(home) => home.set_length(io, id, bytes, quota).await,
            Backend::Remote(home) => home.set_length(io, id, bytes, quota).await,
        }
    }

    /// Returns a resumable upload, with the bytes received so far if a part is in progress.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for one that has expired.
    pub async fn resumable_upload(&self, io: &Io, id: UploadId) -> Result<KeptUpload> {
        match &self.0 {
            Backend::Local(home) => home.resumable_upload(io, id).await,
            Backend::Remote(home) => home.resumable_upload(io, id).await,
        }
    }

    /// Returns a resumable upload of announced length that was committed a while ago.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also before the commit, and a while after it.
    pub async fn completed(&self, io: &Io, id: UploadId) -> Result<Completed> {
        match &self.0 {
            Backend::Local(home) => home.completed(io, id),
            Backend::Remote(home) => home.completed(io, id).await,
        }
    }

    /// Returns the unfinished uploads that `path` identifies and that have received bytes, the newest
    /// first. They were begun by [`Home::upload_from`] with `keep`.
    ///
    /// # Errors
    /// Any error of reading them.
    pub async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<KeptUpload>> {
        match &self.0 {
            Backend::Local(home) => home.pending_at(io, path).await,
            Backend::Remote(home) => home.pending_at(io, path).await,
        }
    }

    /// Returns all resumable uploads, the oldest first.
    ///
    /// # Errors
    /// Any error of reading them.
    pub async fn resumable_uploads(&self, io: &Io) -> Result<Vec<KeptUpload>> {
        match &self.0 {
            Backend::Local(home) => home.resumable_uploads(io).await,
            Backend::Remote(home) => home.resumable_uploads(io).await,
        }
    }

    /// Discards a resumable upload.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::InUse`].
    pub async fn discard(&self, io: &Io, id: UploadId) -> Result<()> {
        match &self.0 {
            Backend::Local(home) => home.discard(io, id).await,
            Backend::Remote(home) => home.discard(io, id).await,
        }
    }
}
