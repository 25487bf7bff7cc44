//! The RPC server of a store: answers the requests of fronts.
//!
//! It decides nothing: it calls the store in this process, as an operation in this process would.
//! Invariants: a condition that is received as text is checked under the home's lock. A name that no
//! account can have is never used for a folder.

use plimsoll_io::{Existing, Io, ListingPage};
use plimsoll_rpc::{Call, CallRefused, Service, encode, parse};
use serde::Serialize;

use super::client::{QUESTIONS, READY};
use super::error_json::ErrorJson;
use super::listing::list;
use super::request::{
    BeginUpload, Destination, Ended, Ending, Get, HomeRequest, Owner, Removal, StatJson, StoreRequest,
    TermsJson, UploadStart,
};
use crate::condition::{Condition, ConditionText};
use crate::error::{Error, Result};
use crate::limits::DIRECTORY_BYTES_MAX;
use crate::path::Path;
use crate::usage::Quota;
use crate::write::{NewUpload, Terms};
use crate::{End, Home, Location, Store, Upload};

/// Answers requests for a store.
pub struct StoreServer {
    store: Store,
    /// Parses the text of a condition, in the protocol's own syntax.
    again: fn(&str) -> Condition,
}

impl StoreServer {
    /// Creates a server for `store`; `again` parses the text of conditions.
    pub fn new(store: Store, again: fn(&str) -> Condition) -> StoreServer {
        StoreServer { store, again }
    }

    /// Executes a request, and returns the response in JSON.
    async fn respond(&self, io: &Io, asked: StoreRequest) -> Vec<u8> {
        self.execute(io, asked).await.unwrap_or_else(|error| encode_result::<()>(Err(error)))
    }

    async fn execute(
        &self,
        io: &Io,
        StoreRequest { owner, caller, question }: StoreRequest,
    ) -> Result<Vec<u8>> {
        let io = &io.for_owner(owner.job_owner(caller));
        let home = self.home(io, &owner).await?;
        Ok(match question {
            HomeRequest::Usage => encode_result(home.usage(io).await),
            HomeRequest::Stat(path) => encode_result(home.stat(io, &path).await.map(StatJson)),
            HomeRequest::List { path, most, page } => {
                list(io, &home, &path, most, page.map(ListingPage::from)).await
            }
            HomeRequest::MakeFolder { path, quota, parents } => {
                encode_result(home.make_folder(io, path, quota, parents).await)
            }
            HomeRequest::CheckRemoval(Removal { path, what, condition }) => {
                encode_result(home.check_removal(io, path, what, self.condition(&condition)).await)
            }
            HomeRequest::Remove(Removal { path, what, condition }) => {
                encode_result(home.remove(io, path, what, self.condition(&condition)).await)
            }
            HomeRequest::SetModified { path, modified } => {
                encode_result(home.set_modified(io, path, modified).await.map(StatJson))
            }
            HomeRequest::CheckRename(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                encode_result(from.check_rename(io, &to, existing).await)
            }
            HomeRequest::Rename(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                encode_result(from.rename(io, to, existing).await)
            }
            HomeRequest::CheckCopy(path, to) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                encode_result(from.check_copy(io, &to, existing).await)
            }
            HomeRequest::Copy(path, to, depth) => {
                let (from, to, existing) = self.ends(io, home, path, to).await?;
                encode_result(from.copy(io, to, existing, depth).await)
            }
            HomeRequest::Keep { terms, bytes, words: condition, metadata } => {
                let new = NewUpload { terms: self.terms(terms), bytes, condition, metadata };
                encode_result(home.create_resumable(io, new).await)
            }
            HomeRequest::SetLength { id, bytes, quota } => {
                encode_result(home.set_length(io, id, bytes, quota).await)
            }
            HomeRequest::Kept(id) => encode_result(home.resumable_upload(io, id).await),
            HomeRequest::Completed(id) => encode_result(home.completed(io, id).await),
            HomeRequest::PendingAt(path) => encode_result(home.pending_at(io, &path).await),
            HomeRequest::AllKept => encode_result(home.resumable_uploads(io).await),
            HomeRequest::Discard(id) => encode_result(home.discard(io, id).await),
            HomeRequest::EndOf { path, keep } => encode_result(home.end_of(io, &path, keep).await),
            HomeRequest::Digest(path, algorithm) => {
                let digest = home.location(path).digest(io, algorithm).await;
                encode_result(digest.map(|(stat, digest)| (StatJson(stat), digest)))
            }
        })
    }

    /// Returns the ends of a move or copy, and whether an existing entry is replaced.
    async fn ends(&self, io: &Io, home: Home, path: Path, to: Destination) -> Result<(End, End, Existing)> {
        let Destination { owner, path: name, quota, replaces } = to;
        let existing = if replaces { Existing::Replaced } else { Existing::Kept };
        let to = End { home: self.home(io, &owner).await?, path: name, quota };
        Ok((End { home, path, quota: Quota::default() }, to, existing))
    }

    /// Returns the location of a requested file, and the engine for work on behalf of the caller.
    ///
    /// # Errors
    /// Any error of opening the home.
    pub async fn locate(&self, io: &Io, get: Get) -> Result<(Location, Io)> {
        let home = self.home(io, &get.owner).await?;
        Ok((home.location(get.path), io.for_owner(get.owner.job_owner(get.caller))))
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// As the methods of [`Home`] that begin uploads.
    pub async fn begin(&self, io: &Io, begin: BeginUpload) -> Result<Upload> {
        let io = &io.for_owner(begin.owner.job_owner(begin.caller));
        let home = self.home(io, &begin.owner).await?;
        match begin.how {
            UploadStart::Whole(terms, expected) => home.upload(io, self.terms(terms), expected).await,
            UploadStart::From { terms, begin, keep, at } => {
                let upload = home.upload_from(io, self.terms(terms), begin, keep).await?;
                // The upload has grown since its offset was reported to the front.
                if upload.start_offset() == at { Ok(upload) } else { Err(Error::InUse) }
            }
            UploadStart::Resume { id, offset, digests, quota, only_new } => {
                let terms = |to, words: &str| {
                    let condition = ConditionText { words: words.to_owned(), only_new, only_folder: false };
                    Terms { to, condition: self.condition(&condition), quota }
                };
                home.resume_upload(io, id, offset, digests, terms).await
            }
            UploadStart::Parts { terms, parts } => {
                home.upload_of_parts(io, self.terms(terms), parts, 0).await
            }
        }
    }

    /// Ends an upload after all its bytes were received.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`] and [`Upload::pause`].
    pub async fn end_upload(&self, mut upload: Upload, ending: Ending) -> Result<Ended> {
        match ending {
            Ending::Commit(whole) => upload.commit_whole(whole).await.map(Ended::Committed),
            Ending::CommitDated(whole, modified) => {
                upload.set_modified(modified);
                upload.commit_whole(whole).await.map(Ended::Committed)
            }
            Ending::Pause => upload.pause().await.map(Ended::Paused),
            Ending::Abort => {
                upload.abort().await;
                Ok(Ended::GivenUp)
            }
        }
    }

    async fn home(&self, io: &Io, owner: &Owner) -> Result<Home> {
        let name = Path::parse(owner.name.as_bytes())?;
        if name.as_bytes() != owner.name.as_bytes() || name.depth() != 1 {
            return Err(Error::NotFound);
        }
        let directory = owner.directory.as_bytes();
        if directory.len() > DIRECTORY_BYTES_MAX || !directory.iter().all(u8::is_ascii_alphanumeric) {
            return Err(Error::NotFound);
        }
        self.store.home_of(io, owner).await
    }

    fn terms(&self, said: TermsJson) -> Terms {
        Terms { to: said.to, condition: self.condition(&said.condition), quota: said.quota }
    }

    fn condition(&self, said: &ConditionText) -> Condition {
        let mut condition = (self.again)(&said.words);
        if said.only_new {
            condition = condition.and_new();
        }
        if said.only_folder {
            condition = condition.and_folder();
        }
        condition
    }
}

impl Service for StoreServer {
    fn has(&self, path: &str) -> bool {
        [QUESTIONS, READY].contains(&path)
    }

    fn call<'a>(
        &'a self,
        io: &'a Io,
        path: &str,
        request: &[u8],
    ) -> std::result::Result<Call<'a>, CallRefused> {
        match path {
            QUESTIONS => {
                let asked: StoreRequest = parse(request)?;
                let is_aborted_with_client = matches!(
                    asked.question,
                    HomeRequest::Digest(..) | HomeRequest::List { .. } | HomeRequest::Copy(..)
                );
                Ok(Call { is_aborted_with_client, ..Call::new(self.respond(io, asked)) })
            }
            READY => Ok(Call::new(async { encode_result(Ok(())) })),
            _ => Err(CallRefused::NoSuchMethod),
        }
    }
}

/// Serialises a result as a response. Logs errors of the operating system; the response has their text,
/// too.
pub fn encode_result<T: Serialize>(answered: Result<T>) -> Vec<u8> {
    if let Err(error @ (Error::Failed(_) | Error::Denied(_))) = &answered {
        tracing::error!(%error, "an operation on files failed");
    }
    encode(answered.map_err(ErrorJson::from))
}
