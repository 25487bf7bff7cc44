//! A home, wherever it is.
//!
//! What must hold: each question means the same of a home that is here and of one elsewhere.

use std::time::Duration;

use plimsoll_io::{File, Io, Stat};

use super::upload::Upload;
use crate::apart::Elsewhere;
use crate::condition::Condition;
use crate::edition::Edition;
use crate::error::Result;
use crate::finished::Completed;
use crate::home;
use crate::known_digests::KnownDigests;
use crate::path::Path;
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Expected, KeptUpload, NewUpload, Terms, UploadId};
use crate::{Removed, What};

/// The files of one account. Clones are the same home.
#[derive(Clone)]
pub struct Home(pub(super) At);

/// Where a home is.
#[derive(Clone)]
pub(super) enum At {
    /// In this process.
    Here(home::Home),
    /// At a store elsewhere.
    Apart(Elsewhere),
}

/// Where the files of a home are read.
#[derive(Clone)]
pub enum Files {
    /// Beneath a folder that is open here.
    Here {
        /// The folder that paths begin at.
        folder: File,
        /// The edition that the folder is in.
        edition: Edition,
        /// The digests that are known of files in it.
        digests: KnownDigests,
    },
    /// At a store elsewhere.
    Apart(Elsewhere),
}

impl Home {
    /// The account's name.
    pub fn name(&self) -> &str {
        match &self.0 {
            At::Here(home) => home.name(),
            At::Apart(home) => home.name(),
        }
    }

    /// Where its files are read, as it is now.
    pub fn files(&self) -> Files {
        match &self.0 {
            // The edition first: what is opened after it is at least as new.
            At::Here(home) => {
                let edition = home.edition();
                Files::Here { edition, folder: home.files().clone(), digests: home.known_digests().clone() }
            }
            At::Apart(home) => Files::Apart(home.clone()),
        }
    }

    /// What is known of what a reader finds at `path`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    pub async fn stat(&self, io: &Io, path: &Path) -> Result<Stat> {
        match &self.0 {
            At::Here(home) => home.look_up(io, path).await,
            At::Apart(home) => home.stat(io, path).await,
        }
    }

    /// What it holds.
    ///
    /// # Errors
    /// What keeps it from being counted.
    pub async fn usage(&self, io: &Io) -> Result<Usage> {
        match &self.0 {
            At::Here(home) => home.usage(io).await,
            At::Apart(home) => home.usage(io).await,
        }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyExists`], whatever has the name; [`crate::Error::NoFolder`];
    /// [`crate::Error::Quota`].
    pub async fn make_folder(&self, io: &Io, path: Path, quota: Quota) -> Result<()> {
        match &self.0 {
            At::Here(home) => home.make_folder(io, path, quota).await,
            At::Apart(home) => home.make_folder(io, path, quota).await,
        }
    }

    /// Removes what has the name `path`, if it is such a thing.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Precondition`], [`crate::Error::Home`]; if it is another
    /// thing, [`crate::Error::IsFolder`], [`crate::Error::NotFolder`], [`crate::Error::NotEmpty`].
    pub async fn remove(&self, io: &Io, path: Path, what: What, condition: Condition) -> Result<Removed> {
        match &self.0 {
            At::Here(home) => home.remove(io, path, what, condition).await,
            At::Apart(home) => home.remove(io, path, what, &condition).await,
        }
    }

    /// Whether [`Home::remove`] would remove anything, as things stand.
    ///
    /// # Errors
    /// As [`Home::remove`].
    pub async fn check_removal(&self, io: &Io, path: Path, what: What, condition: Condition) -> Result<()> {
        match &self.0 {
            At::Here(home) => home.check_removal(io, path, what, condition).await,
            At::Apart(home) => home.check_removal(io, path, what, &condition).await,
        }
    }

    /// Sets when the file or folder `path` was last modified, as time since 1970; what is known of it then.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for a link; [`crate::Error::Home`].
    pub async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        match &self.0 {
            At::Here(home) => home.set_modified(io, path, modified).await,
            At::Apart(home) => home.set_modified(io, path, modified).await,
        }
    }

    /// Begins an upload. It is not kept if it is broken off.
    ///
    /// # Errors
    /// Whatever can be told before the first byte: that its folder is not there, that a folder has its name,
    /// [`crate::Error::Precondition`], [`crate::Error::Quota`], [`crate::Error::TooManyUploads`].
    pub async fn upload(&self, io: &Io, terms: Terms, expected: Expected) -> Result<Upload> {
        match &self.0 {
            At::Here(home) => home.upload(io, terms, expected).await.map(Upload::here),
            At::Apart(home) => home.upload(io, &terms, expected).await.map(Upload::apart),
        }
    }

    /// Begins an upload of unknown length at `from`. With `keep`, which is for the home's own account, kept
    /// uploads to the path are looked at, and the upload is kept when it is broken off; not if nothing has
    /// come, not if it is refused, and not if it began with a file's bytes, since that is still there to
    /// begin with. Without, kept uploads are left alone.
    ///
    /// A connection that wrote to a kept upload until now does so no more, if nothing has come from it for
    /// [`crate::limits::TAKEN_OVER_TIME`]. Bytes beyond an offset are cut off.
    ///
    /// One that begins with a file's bytes is committed only if that is still what its path stands for.
    ///
    /// # Errors
    /// As [`Home::upload`]; [`crate::Error::Offset`] with the largest offset that there is, if that is too
    /// small; [`crate::Error::NotResumable`] if the client could mean something else that is there;
    /// [`crate::Error::InUse`] if another connection sends the same upload; [`crate::Error::Busy`] while many
    /// long copies to the home are under way.
    pub async fn upload_from(&self, io: &Io, terms: Terms, from: Begin, keep: bool) -> Result<Upload> {
        match &self.0 {
            At::Here(home) => home.upload_from(io, terms, from, keep).await.map(Upload::here),
            At::Apart(home) => home.upload_from(io, &terms, from, keep).await.map(Upload::apart),
        }
    }

    /// The offset at which [`Home::upload_from`] would begin at the end, as things stand.
    ///
    /// # Errors
    /// What keeps it from being found; [`crate::Error::Away`] of a home elsewhere, of which nobody else asks.
    pub async fn end_of(&self, io: &Io, path: &Path, keep: bool) -> Result<u64> {
        match &self.0 {
            At::Here(home) => home.end_of(io, path, keep).await,
            At::Apart(_) => Err(crate::Error::Away),
        }
    }

    /// Goes on with a kept upload, if that stands at `offset`. With `digests` of the part that comes now, the
    /// part counts only as a whole. `terms` is given its path, and the condition that it was begun with; a
    /// store elsewhere, which knows both, asks of it the quota alone and whether there must be nothing.
    ///
    /// Whoever wrote to it until now does so no more: that is most often the same client, whose connection
    /// broke without a word.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`]; [`crate::Error::Offset`] with the offset that it does stand at.
    pub async fn go_on(
        &self,
        io: &Io,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        terms: impl FnOnce(Path, &str) -> Terms,
    ) -> Result<Upload> {
        match &self.0 {
            At::Here(home) => home.go_on(io, id, offset, digests, terms).await.map(Upload::here),
            At::Apart(home) => home.go_on(io, id, offset, digests, terms).await.map(Upload::apart),
        }
    }

    /// Begins an upload with all bytes of `parts`, complete kept uploads without a path, in this order. They
    /// have `bytes` together.
    ///
    /// # Errors
    /// As [`Home::upload`]; [`crate::Error::NotFound`] if a part is none; [`crate::Error::Length`] if one is
    /// incomplete; [`crate::Error::Busy`] while many long copies to the home are under way.
    pub async fn upload_of_parts(
        &self,
        io: &Io,
        terms: Terms,
        parts: Vec<UploadId>,
        bytes: u64,
    ) -> Result<Upload> {
        match &self.0 {
            At::Here(home) => home.upload_of_parts(io, terms, parts).await.map(Upload::here),
            At::Apart(home) => home.upload_of_parts(io, &terms, parts, bytes).await.map(Upload::apart),
        }
    }

    /// Begins an upload that is kept: one to the root is a part of a file, and has no path.
    ///
    /// # Errors
    /// As [`Home::upload`].
    pub async fn keep(&self, io: &Io, new: NewUpload) -> Result<KeptUpload> {
        match &self.0 {
            At::Here(home) => home.keep(io, new).await,
            At::Apart(home) => home.keep(io, new).await,
        }
    }

    /// A kept upload, with what has come of a part that goes on.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for one that has expired.
    pub async fn kept(&self, io: &Io, id: UploadId) -> Result<KeptUpload> {
        match &self.0 {
            At::Here(home) => home.kept(io, id).await,
            At::Apart(home) => home.kept(io, id).await,
        }
    }

    /// A kept upload of announced length that came into its place a while ago.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], also for one that is still kept, and after a while.
    pub async fn completed(&self, io: &Io, id: UploadId) -> Result<Completed> {
        match &self.0 {
            At::Here(home) => home.completed(io, id),
            At::Apart(home) => home.completed(io, id).await,
        }
    }

    /// The unfinished uploads that `path` identifies, the newest first, as far as anything has been received
    /// of them: those that [`Home::upload_from`] with `keep` has begun.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<KeptUpload>> {
        match &self.0 {
            At::Here(home) => home.pending_at(io, path).await,
            At::Apart(home) => home.pending_at(io, path).await,
        }
    }

    /// All kept uploads, the oldest first.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub async fn all_kept(&self, io: &Io) -> Result<Vec<KeptUpload>> {
        match &self.0 {
            At::Here(home) => home.all_kept(io).await,
            At::Apart(home) => home.all_kept(io).await,
        }
    }

    /// Throws a kept upload away.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::InUse`].
    pub async fn discard(&self, io: &Io, id: UploadId) -> Result<()> {
        match &self.0 {
            At::Here(home) => home.discard(io, id).await,
            At::Apart(home) => home.discard(io, id).await,
        }
    }
}
