//! A home at a remote store: each operation on it is sent as a request.
//!
//! It decides nothing. Invariant: each response is that of a home in the store's own process.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Entry, Existing, Io, ListingPage, Stat};
use serde::de::DeserializeOwned;

use super::client::StoreClient;
use super::request::{
    BeginUpload, Destination, EntryJson, HomeRequest, Owner, PageJson, Removal, StatJson, StoreRequest,
    TermsJson, UploadStart,
};
use super::upload::Upload;
use crate::condition::Condition;
use crate::error::Result;
use crate::finished::Completed;
use crate::path::Path;
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Expected, KeptUpload, NewUpload, Terms, UploadId};
use crate::{Copied, Depth, MoveResult, RemovalKind, Removed};

/// A home at a remote store. Clones share the home.
#[derive(Clone)]
pub(crate) struct RemoteHome {
    pub(super) remote: Arc<StoreClient>,
    pub(super) owner: Owner,
}

impl RemoteHome {
    pub(crate) fn new(remote: Arc<StoreClient>, account: i64, name: &str) -> RemoteHome {
        let directory = remote.directory().to_owned();
        RemoteHome { remote, owner: Owner { account, name: name.to_owned(), directory } }
    }

    pub(crate) fn name(&self) -> &str {
        &self.owner.name
    }

    async fn ask<T: DeserializeOwned + Send + 'static>(&self, io: &Io, question: HomeRequest) -> Result<T> {
        let caller = io.owner().number();
        self.remote.ask(io, &StoreRequest { owner: self.owner.clone(), caller, question }).await
    }

    /// Returns the metadata of the entry that a reader finds at `path`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Away`].
    pub(crate) async fn stat(&self, io: &Io, path: &Path) -> Result<Stat> {
        self.ask(io, HomeRequest::Stat(path.clone())).await.map(|StatJson(stat)| stat)
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
        let question = HomeRequest::List { path: path.clone(), most, page: page.map(PageJson::from) };
        let named: Vec<EntryJson> = self.ask(io, question).await?;
        Ok(named.into_iter().map(|EntryJson(entry)| entry).collect())
    }

    /// Returns the digest of a whole file, and the metadata of that very file.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::IsFolder`], [`crate::Error::Busy`],
    /// [`crate::Error::Away`].
    pub(crate) async fn digest(&self, io: &Io, path: &Path, algorithm: Algorithm) -> Result<(Stat, Vec<u8>)> {
        let (StatJson(stat), digest) = self.ask(io, HomeRequest::Digest(path.clone(), algorithm)).await?;
        Ok((stat, digest))
    }

    pub(crate) async fn usage(&self, io: &Io) -> Result<Usage> {
        self.ask(io, HomeRequest::Usage).await
    }

    pub(crate) async fn make_folder(&self, io: &Io, path: Path, quota: Quota, parents: bool) -> Result<()> {
        self.ask(io, HomeRequest::MakeFolder { path, quota, parents }).await
    }

    pub(crate) async fn check_removal(
        &self,
        io: &Io,
        path: Path,
        what: RemovalKind,
        when: &Condition,
    ) -> Result<()> {
        let condition = when.text().clone();
        self.ask(io, HomeRequest::CheckRemoval(Removal { path, what, condition })).await
    }

    pub(crate) async fn remove(
        &self,
        io: &Io,
        path: Path,
        what: RemovalKind,
        when: &Condition,
    ) -> Result<Removed> {
        let condition = when.text().clone();
        self.ask(io, HomeRequest::Remove(Removal { path, what, condition })).await
    }

    pub(crate) async fn set_modified(&self, io: &Io, path: Path, modified: Duration) -> Result<Stat> {
        self.ask(io, HomeRequest::SetModified { path, modified }).await.map(|StatJson(stat)| stat)
    }

    /// Returns the target of a move or copy into this home.
    pub(crate) fn destination(&self, path: Path, quota: Quota, existing: Existing) -> Destination {
        Destination { owner: self.owner.clone(), path, quota, replaces: existing == Existing::Replaced }
    }

    pub(crate) async fn check_rename(&self, io: &Io, from: Path, to: Destination) -> Result<()> {
        self.ask(io, HomeRequest::CheckRename(from, to)).await
    }

    pub(crate) async fn rename(&self, io: &Io, from: Path, to: Destination) -> Result<MoveResult> {
        self.ask(io, HomeRequest::Rename(from, to)).await
    }

    pub(crate) async fn check_copy(&self, io: &Io, from: Path, to: Destination) -> Result<()> {
        self.ask(io, HomeRequest::CheckCopy(from, to)).await
    }

    pub(crate) async fn copy(&self, io: &Io, from: Path, to: Destination, depth: Depth) -> Result<Copied> {
        self.ask(io, HomeRequest::Copy(from, to, depth)).await
    }

    pub(crate) async fn create_resumable(&self, io: &Io, new: NewUpload) -> Result<KeptUpload> {
        let NewUpload { terms, bytes, condition: words, metadata } = new;
        self.ask(io, HomeRequest::Keep { terms: terms_json(&terms), bytes, words, metadata }).await
    }

    pub(crate) async fn set_length(&self, io: &Io, id: UploadId, bytes: u64, quota: Quota) -> Result<()> {
        self.ask(io, HomeRequest::SetLength { id, bytes, quota }).await
    }

    pub(crate) async fn resumable_upload(&self, io: &Io, id: UploadId) -> Result<KeptUpload> {
        self.ask(io, HomeRequest::Kept(id)).await
    }

    pub(crate) async fn completed(&self, io: &Io, id: UploadId) -> Result<Completed> {
        self.ask(io, HomeRequest::Completed(id)).await
    }

    pub(crate) async fn pending_at(&self, io: &Io, path: &Path) -> Result<Vec<KeptUpload>> {
        self.ask(io, HomeRequest::PendingAt(path.clone())).await
    }

    pub(crate) async fn resumable_uploads(&self, io: &Io) -> Result<Vec<KeptUpload>> {
        self.ask(io, HomeRequest::AllKept).await
    }

    pub(crate) async fn discard(&self, io: &Io, id: UploadId) -> Result<()> {
        self.ask(io, HomeRequest::Discard(id)).await
    }

    pub(crate) async fn upload(&self, io: &Io, terms: &Terms, expected: Expected) -> Result<Upload> {
        let (to, announced) = (terms.to.clone(), expected.bytes);
        let how = UploadStart::Whole(terms_json(terms), expected);
        let Some(folder) = self.remote.spool() else { return self.begin(io, how, (to, announced, 0)).await };
        let begin = BeginUpload { owner: self.owner.clone(), caller: io.owner().number(), how };
        Upload::begin_spooled(&self.remote, io, begin, (to, announced, terms.quota.bytes), folder).await
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
            Begin::End => self.ask(io, HomeRequest::EndOf { path: terms.to.clone(), keep }).await?,
        };
        self.begin(
            io,
            UploadStart::From { terms: terms_json(terms), begin, keep, at },
            (terms.to.clone(), None, at),
        )
        .await
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
        let only_new = condition.text().only_new;
        self.begin(io, UploadStart::Resume { id, offset, digests, quota, only_new }, (to, bytes, offset))
            .await
    }

    pub(crate) async fn upload_of_parts(
        &self,
        io: &Io,
        terms: &Terms,
        parts: Vec<UploadId>,
        bytes: u64,
    ) -> Result<Upload> {
        let how = UploadStart::Parts { terms: terms_json(terms), parts };
        self.begin(io, how, (terms.to.clone(), Some(bytes), bytes)).await
    }

    async fn begin(
        &self,
        io: &Io,
        how: UploadStart,
        (to, announced, at): (Path, Option<u64>, u64),
    ) -> Result<Upload> {
        let begin = BeginUpload { owner: self.owner.clone(), caller: io.owner().number(), how };
        Upload::begin(&self.remote, io, begin, to, announced, at).await
    }
}

fn terms_json(terms: &Terms) -> TermsJson {
    TermsJson { to: terms.to.clone(), condition: terms.condition.text().clone(), quota: terms.quota }
}
