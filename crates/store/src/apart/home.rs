//! A home at a remote store: each operation on it is sent as a request.
//!
//! It decides nothing. Invariant: each response is that of a home in the store's own process.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Entry, Existing, Io, ListingPage, Stat};
use serde::de::DeserializeOwned;

use super::ask::{
    Asked, Destination, How, Named, NewArrival, Owner, Question, Removal, SaidPage, SaidTerms, Seen,
};
use super::remote::Remote;
use super::upload::Upload;
use crate::condition::Condition;
use crate::error::Result;
use crate::finished::Completed;
use crate::path::Path;
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Expected, KeptUpload, NewUpload, Terms, UploadId};
use crate::{Copied, Depth, Moved, Removed, What};

/// A home at a remote store. Clones share the home.
#[derive(Clone)]
pub(crate) struct RemoteHome {
    pub(super) remote: Arc<Remote>,
    pub(super) owner: Owner,
}

impl RemoteHome {
    pub(crate) fn new(remote: Arc<Remote>, account: i64, name: &str) -> RemoteHome {
        let directory = remote.directory().to_owned();
        RemoteHome { remote, owner: Owner { account, name: name.to_owned(), directory } }
    }

    pub(crate) fn name(&self) -> &str {
        &self.owner.name
    }

    async fn ask<T: DeserializeOwned + Send + 'static>(&self, io: &Io, question: Question) -> Result<T> {
        let caller = io.owner().number();
        self.remote.ask(io, &Asked { owner: self.owner.clone(), caller, question }).await
    }

    /// Returns the metadata of the entry that a reader finds at `path`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Away`].
    pub(crate) async fn stat(&self, io: &Io, path: &Path) -> Result<Stat> {
        self.ask(io, Question::Stat(path.clone())).await.map(|Seen(stat)| stat)
    }

    /// Lists the folder `path`, in no order, if it has at most `most` entries. With a `page`, returns that
    /// page and the entry after it, regardless of the folder's size. An older store returns all entries.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::NotFolder`], [`crate::Error::TooManyEntries`],
    /// [`crate::Error::Away`]; [`crate::Error::Busy`] while many listings are in progress.
    pub(crate) async fn list(
        &self,
        io: &Io,
        path: &Path,
        most: usize,
        page: Option<&ListingPage>,
    ) -> Result<Vec<Entry>> {
        let question = Question::List { path: path.clone(), most, page: page.map(SaidPage::from) };
        let named: Vec<Named> = self.ask(io, question).await?;
        Ok(named.into_iter().map(|Named(entry)| entry).collect())
    }

    /// Returns the digest of a whole file, and the metadata of that very file.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::IsFolder`], [`crate::Error::Busy`],
    /// [`crate::Error::Away`].
    pub(crate) async fn digest(&self, io: &Io, path: &Path, algorithm: Algorithm) -> Result<(Stat, Vec<u8>)> {
        let (Seen(stat), digest) = self.ask(io, Question::Digest(path.clone(), algorithm)).await?;
        Ok((stat, digest))
    }

    pub(crate) async fn usage(&self, io: &Io) -> Result<Usage> {
        self.ask(io, Question::Usage).await
    }

    pub(crate) async fn make_folder(&self, io: &Io, path: Path, quota: Quota) -> Result<()> {
        self.ask(io, Question::MakeFolder { path, quota }).await
    }

    pub(crate) async fn check_removal(
        &self,
        io: &Io,
        path: Path,
        what: What,
        when: &Condition,
    ) -> Result<()> {
        let condition = when.said().clone();
        self.ask(io, Question::CheckRemoval(Removal { path, what, condition })).await
    }

    pub(crate) async fn remove(&self, io: &Io, path: Path, what: What, when: &Condition) -> Result<Removed> {
        let condition = when.said().clone();
        self.ask(io, Question::Remove(Removal { path, what, condition })).await
    }

    pub(crate) async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        self.ask(io, Question::SetModified { path, modified }).await.map(|Seen(stat)| stat)
    }

    /// Returns the target of a move or copy into this home.
    pub(crate) fn destination(&self, path: Path, quota: Quota, existing: Existing) -> Destination {
        Destination { owner: self.owner.clone(), path, quota, replaces: existing == Existing::Replaced }
    }

    pub(crate) async fn check_rename(&self, io: &Io, from: Path, to: Destination) -> Result<()> {
        self.ask(io, Question::CheckRename(from, to)).await
    }

    pub(crate) async fn rename(&self, io: &Io, from: Path, to: Destination) -> Result<Moved> {
        self.ask(io, Question::Rename(from, to)).await
    }

    pub(crate) async fn check_copy(&self, io: &Io, from: Path, to: Destination) -> Result<()> {
        self.ask(io, Question::CheckCopy(from, to)).await
    }

    pub(crate) async fn copy(&self, io: &Io, from: Path, to: Destination, depth: Depth) -> Result<Copied> {
        self.ask(io, Question::Copy(from, to, depth)).await
    }

    pub(crate) async fn keep(&self, io: &Io, new: NewUpload) -> Result<KeptUpload> {
        let NewUpload { terms, bytes, condition: words } = new;
        self.ask(io, Question::Keep { terms: said(&terms), bytes, words }).await
    }

    pub(crate) async fn resumable_upload(&self, io: &Io, id: UploadId) -> Result<KeptUpload> {
        self.ask(io, Question::Kept(id)).await
    }

    pub(crate) async fn completed(&self, io: &Io, id: UploadId) -> Result<Completed> {
        self.ask(io, Question::Completed(id)).await
    }

    pub(crate) async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<KeptUpload>> {
        self.ask(io, Question::PendingAt(path.clone())).await
    }

    pub(crate) async fn resumable_uploads(&self, io: &Io) -> Result<Vec<KeptUpload>> {
        self.ask(io, Question::AllKept).await
    }

    pub(crate) async fn discard(&self, io: &Io, id: UploadId) -> Result<()> {
        self.ask(io, Question::Discard(id)).await
    }

    pub(crate) async fn upload(&self, io: &Io, terms: &Terms, expected: Expected) -> Result<Upload> {
        let (to, announced) = (terms.to.clone(), expected.bytes);
        let how = How::Whole(said(terms), expected);
        let Some(folder) = self.remote.spool() else { return self.begin(io, how, (to, announced, 0)).await };
        let arrival = NewArrival { owner: self.owner.clone(), caller: io.owner().number(), how };
        Upload::begin_spooled(&self.remote, io, arrival, (to, announced, terms.quota.bytes), folder).await
    }

    pub(crate) async fn upload_from(
        &self,
        io: &Io,
        terms: &Terms,
        begin: Begin,
        keep: bool,
    ) -> Result<Upload> {
        let at = match begin {
            Begin::Start => 0,
            Begin::Offset(offset) | Begin::EndAt(offset) => offset,
            Begin::End => self.ask(io, Question::EndOf { path: terms.to.clone(), keep }).await?,
        };
        self.begin(io, How::From { terms: said(terms), begin, keep, at }, (terms.to.clone(), None, at)).await
    }

    /// Uses only those of the `terms` that do not depend on the upload: the store knows its path and
    /// condition.
    pub(crate) async fn resume_upload(
        &self,
        io: &Io,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        terms: impl FnOnce(Path, &str) -> Terms,
    ) -> Result<Upload> {
        let KeptUpload { to, bytes, .. } = self.resumable_upload(io, id).await?;
        let Terms { condition, quota, .. } = terms(to.clone(), "");
        let only_new = condition.said().only_new;
        self.begin(io, How::GoOn { id, offset, digests, quota, only_new }, (to, bytes, offset)).await
    }

    pub(crate) async fn upload_of_parts(
        &self,
        io: &Io,
        terms: &Terms,
        parts: Vec<UploadId>,
        bytes: u64,
    ) -> Result<Upload> {
        let how = How::Parts { terms: said(terms), parts };
        self.begin(io, how, (terms.to.clone(), Some(bytes), bytes)).await
    }

    async fn begin(
        &self,
        io: &Io,
        how: How,
        (to, announced, at): (Path, Option<u64>, u64),
    ) -> Result<Upload> {
        let arrival = NewArrival { owner: self.owner.clone(), caller: io.owner().number(), how };
        Upload::begin(&self.remote, io, arrival, to, announced, at).await
    }
}

fn said(terms: &Terms) -> SaidTerms {
    SaidTerms { to: terms.to.clone(), condition: terms.condition.said().clone(), quota: terms.quota }
}
