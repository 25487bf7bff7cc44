//! A home on the local file system executes the requests of its callers.
//!
//! It implements no operation: each is where its invariants are, in [`crate::change`] and [`crate::write`].
//! Invariant: each request is executed here, whether its caller is in this process or at a front.

use plimsoll_io::{Existing, Io};

use crate::Location;
use crate::backend::{Destination, HomeRequest, HomeResponse, Pending, Removal, StatJson, UploadStart};
use crate::change::LocalEnd;
use crate::error::Result;
use crate::home::LocalHome;
use crate::path::Path;
use crate::usage::Quota;
use crate::write::LocalUpload;

impl LocalHome {
    /// Executes an operation. Boxed: callers' futures have no room for it, and its code is compiled once,
    /// not in each crate that awaits it.
    pub(crate) fn call<'a>(&'a self, io: &'a Io, request: HomeRequest) -> Pending<'a, HomeResponse> {
        Box::pin(async move {
            let response = self.execute(io, request).await;
            self.tidy_trash(io);
            response
        })
    }

    async fn execute(&self, io: &Io, request: HomeRequest) -> Result<HomeResponse> {
        match request {
            HomeRequest::Usage => self.usage(io).await.map(HomeResponse::Usage),
            HomeRequest::Stat(path) => self.look_up(io, &path).await.map(HomeResponse::from),
            HomeRequest::MakeFolder { path, quota, parents } => {
                self.make_folder(io, path, quota, parents).await.map(HomeResponse::Done)
            }
            HomeRequest::CheckRemoval(Removal { path, what, condition, .. }) => {
                self.check_removal(io, path, what, condition).await.map(HomeResponse::Done)
            }
            HomeRequest::Remove(removal) => self.remove(io, removal).await.map(HomeResponse::Removed),
            HomeRequest::TrashInfo => self.trash_info(io).await.map(HomeResponse::TrashInfo),
            HomeRequest::Trash(page) => self.list_trash(io, page).await.map(HomeResponse::Trash),
            HomeRequest::Restore { id, to, quota } => {
                self.restore(io, id, to, quota).await.map(HomeResponse::Restored)
            }
            HomeRequest::DropTrashed(id) => self.drop_trashed(io, id).await.map(HomeResponse::Removed),
            HomeRequest::SetModified { path, modified } => {
                self.set_modified(io, path, modified).await.map(HomeResponse::from)
            }
            HomeRequest::CheckRename(path, to) => {
                let (from, to, existing) = self.ends(io, path, to).await?;
                from.check_rename(io, &to, existing).await.map(HomeResponse::Done)
            }
            HomeRequest::Rename(path, to) => {
                let (from, to, existing) = self.ends(io, path, to).await?;
                from.rename(io, to, existing).await.map(HomeResponse::Moved)
            }
            HomeRequest::CheckCopy(path, to) => {
                let (from, to, existing) = self.ends(io, path, to).await?;
                from.check_copy(io, &to, existing).await.map(HomeResponse::Done)
            }
            HomeRequest::Copy(path, to, depth) => {
                let (from, to, existing) = self.ends(io, path, to).await?;
                from.copy(io, to, existing, depth).await.map(HomeResponse::Copied)
            }
            HomeRequest::CreateResumable(new) => {
                self.create_resumable(io, new).await.map(HomeResponse::Upload)
            }
            HomeRequest::SetUploadLength { id, bytes, quota } => {
                self.set_upload_length(io, id, bytes, quota).await.map(HomeResponse::Done)
            }
            HomeRequest::ResumableUpload(id) => self.resumable_upload(io, id).await.map(HomeResponse::Upload),
            HomeRequest::CompletedUpload(id) => self.completed_upload(io, id).map(HomeResponse::Completed),
            HomeRequest::PendingAt(path) => self.pending_at(io, &path).await.map(HomeResponse::Uploads),
            HomeRequest::ResumableUploads => self.resumable_uploads(io).await.map(HomeResponse::Uploads),
            HomeRequest::DiscardUpload(id) => self.discard_upload(io, id).await.map(HomeResponse::Done),
            HomeRequest::EndOf { path, keep } => self.end_of(io, &path, keep).await.map(HomeResponse::Offset),
            HomeRequest::Digest(path, algorithm) => {
                let (stat, digest) = Location::in_home(self.clone(), &path).digest(io, algorithm).await?;
                Ok(HomeResponse::Digest((StatJson(stat), digest)))
            }
        }
    }

    /// Begins an upload. Boxed as [`LocalHome::call`].
    pub(crate) fn begin_upload<'a>(&'a self, io: &'a Io, start: UploadStart) -> Pending<'a, LocalUpload> {
        Box::pin(async move {
            match start {
                UploadStart::Whole(terms, expected) => self.upload(io, terms, expected).await,
                UploadStart::From { terms, begin, keep, .. } => {
                    self.upload_from(io, terms, begin, keep).await
                }
                UploadStart::Resume { id, offset, digests, terms } => {
                    self.resume_upload(io, id, offset, digests, terms).await
                }
                UploadStart::Parts { terms, parts, .. } => self.upload_of_parts(io, terms, parts).await,
            }
        })
    }

    /// Returns the ends of a move or copy, and whether an existing entry is replaced.
    async fn ends(&self, io: &Io, path: Path, to: Destination) -> Result<(LocalEnd, LocalEnd, Existing)> {
        let Destination { owner, path: name, quota, replaces } = to;
        let existing = if replaces { Existing::Replaced } else { Existing::Kept };
        let to = LocalEnd { home: self.of_same_store(io, &owner).await?, path: name, quota };
        // Nothing is added to the home that an entry leaves.
        Ok((LocalEnd { home: self.clone(), path, quota: Quota::default() }, to, existing))
    }
}
