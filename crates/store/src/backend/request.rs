//! The operations on a home as data: requests, and their responses.
//!
//! They do not depend on the implementation of the home, nor on a transport. Invariant: a request has all
//! that its response depends on, except files, settings and time. In this process a [`Condition`] has its
//! test; to a remote store, its text is sent.

use std::time::Duration;

use plimsoll_io::Stat;
use serde::{Deserialize, Serialize};

use crate::change::{Copied, Depth, Disposal, MoveResult, RemovalKind, Removed};
use crate::condition::{Condition, ParseCondition};
use crate::error::Error;
use crate::finished::Completed;
use crate::json::StatJson;
use crate::owner::HomeOwner;
use crate::path::Path;
use crate::trash::{TrashId, TrashInfo, TrashPage, TrashedEntry};
use crate::usage::{Quota, Usage};
use crate::write::{Algorithm, Begin, Committed, Expected, NewUpload, ResumableUpload, Terms, UploadId};

/// An operation on a home. The methods of [`crate::Home`] describe most of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HomeRequest {
    /// Response: [`HomeResponse::Usage`].
    Usage,
    /// Response: [`HomeResponse::Stat`].
    Stat(Path),
    /// Response: [`HomeResponse::Done`].
    MakeFolder {
        /// The folder.
        path: Path,
        /// The home's quota.
        quota: Quota,
        /// Whether missing folders above it are created too.
        parents: bool,
    },
    /// Response: [`HomeResponse::Done`].
    CheckRemoval(Removal),
    /// Response: [`HomeResponse::Removed`].
    Remove(Removal),
    /// Response: [`HomeResponse::TrashInfo`].
    TrashInfo,
    /// Response: [`HomeResponse::Trash`].
    Trash(TrashPage),
    /// Response: [`HomeResponse::Restored`].
    Restore {
        /// The entry of the trash.
        id: TrashId,
        /// The path that it gets; none for the one that it had.
        to: Option<Path>,
        /// The home's quota, for folders that are created again.
        quota: Quota,
    },
    /// Drops an entry of the trash, or all of them. Response: [`HomeResponse::Removed`].
    DropTrashed(Option<TrashId>),
    /// Response: [`HomeResponse::Stat`].
    SetModified {
        /// The file or folder.
        path: Path,
        /// The time since 1970.
        modified: Duration,
    },
    /// Response: [`HomeResponse::Done`].
    CheckRename(Path, Destination),
    /// Response: [`HomeResponse::Moved`].
    Rename(Path, Destination),
    /// Response: [`HomeResponse::Done`].
    CheckCopy(Path, Destination),
    /// Response: [`HomeResponse::Copied`].
    Copy(Path, Destination, Depth),
    /// Response: [`HomeResponse::Upload`].
    CreateResumable(NewUpload),
    /// Response: [`HomeResponse::Done`].
    SetUploadLength {
        /// The upload.
        id: UploadId,
        /// Its length in bytes.
        bytes: u64,
        /// The home's quota.
        quota: Quota,
    },
    /// Response: [`HomeResponse::Upload`].
    ResumableUpload(UploadId),
    /// Response: [`HomeResponse::Completed`].
    CompletedUpload(UploadId),
    /// Response: [`HomeResponse::Uploads`].
    PendingAt(Path),
    /// Response: [`HomeResponse::Uploads`].
    ResumableUploads,
    /// Response: [`HomeResponse::Done`].
    DiscardUpload(UploadId),
    /// Returns the offset at which [`UploadStart::From`] would now begin at the end. Response:
    /// [`HomeResponse::Offset`].
    EndOf {
        /// The path.
        path: Path,
        /// Whether resumable uploads are considered.
        keep: bool,
    },
    /// As [`crate::Location::digest`]. Response: [`HomeResponse::Digest`].
    Digest(Path, Algorithm),
}

plimsoll_rpc::responses! {
    HomeResponse,
    /// Success, without further data.
    Done(()),
    /// The home's usage.
    Usage(Usage),
    /// The metadata of a file or folder.
    Stat(StatJson),
    /// The result of a removal.
    Removed(Removed),
    /// The state of the trash.
    TrashInfo(TrashInfo),
    /// Entries of the trash.
    Trash(Vec<TrashedEntry>),
    /// The path of a restored entry.
    Restored(Path),
    /// The result of a move.
    Moved(MoveResult),
    /// The result of a copy.
    Copied(Copied),
    /// A resumable upload.
    Upload(ResumableUpload),
    /// Resumable uploads.
    Uploads(Vec<ResumableUpload>),
    /// A resumable upload that was committed.
    Completed(Completed),
    /// An offset in bytes.
    Offset(u64),
    /// The metadata of a file, and the digest of that very file.
    Digest((StatJson, Vec<u8>)),
}

impl HomeResponse {
    /// Returns its content.
    ///
    /// # Errors
    /// [`Error::Away`] if the implementation of the home has sent another response.
    pub(crate) fn content<T: TryFrom<HomeResponse>>(self) -> Result<T, Error> {
        T::try_from(self).map_err(|_| {
            tracing::error!("the store sent a response of another kind than the request's");
            Error::Away
        })
    }
}

impl From<Stat> for HomeResponse {
    fn from(stat: Stat) -> HomeResponse {
        HomeResponse::Stat(StatJson(stat))
    }
}

/// The entry to be removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Removal {
    /// The path.
    pub path: Path,
    /// The kind that it must have.
    pub what: RemovalKind,
    /// The condition on it.
    pub condition: Condition,
    /// Where it goes.
    pub disposal: Disposal,
}

/// The target of a move or copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Destination {
    /// The owner of its home, which is in the same store.
    pub owner: HomeOwner,
    /// The path in it.
    pub path: Path,
    /// The quota of that home.
    pub quota: Quota,
    /// Whether an existing entry is replaced.
    pub replaces: bool,
}

/// How an upload begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadStart {
    /// As [`crate::Home::upload`].
    Whole(Terms, Expected),
    /// As [`crate::Home::upload_from`].
    From {
        /// Its path and terms.
        terms: Terms,
        /// Where it begins.
        begin: Begin,
        /// Whether it is resumable if it is interrupted.
        keep: bool,
        /// The offset at which it must begin, if that was reported to the caller.
        at: Option<u64>,
    },
    /// As [`crate::Home::resume_upload`].
    Resume {
        /// The upload.
        id: UploadId,
        /// Its present offset.
        offset: u64,
        /// Digests of the part that is now sent.
        digests: Vec<(Algorithm, Vec<u8>)>,
        /// The terms of its commit.
        terms: ResumeTerms,
    },
    /// As [`crate::Home::upload_of_parts`].
    Parts {
        /// Its path and terms.
        terms: Terms,
        /// The parts, in their order.
        parts: Vec<UploadId>,
        /// Their total length.
        bytes: u64,
    },
}

/// The terms of a resumed upload, whose path and condition were recorded when it was created.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ResumeTerms {
    /// The home's quota.
    pub quota: Quota,
    /// Whether its path must have no entry, in addition to its condition.
    pub only_new: bool,
    /// Parses its condition. A remote store has its own parser.
    #[serde(skip, default = "no_parser")]
    pub parse: ParseCondition,
}

/// The end of an upload, after all its bytes were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It is committed, if the digests of all its bytes are these.
    Commit {
        /// The digests.
        digests: Vec<(Algorithm, Vec<u8>)>,
        /// The modification time that the file gets, since 1970.
        modified: Option<Duration>,
        /// As [`crate::Upload::set_spare_name`].
        #[serde(default)]
        spare_name: Option<Vec<u8>>,
    },
    /// The part ends, and the upload stays resumable.
    Pause,
    /// It is aborted.
    Abort,
}

/// The result of an [`Ending`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It is committed.
    Committed(Committed),
    /// It is at this offset.
    Paused(u64),
    /// It is aborted and settled.
    Aborted,
}

impl HomeRequest {
    /// Parses the condition of a request that was received.
    pub(crate) fn parse_condition(&mut self, parse: ParseCondition) {
        match self {
            HomeRequest::CheckRemoval(removal) | HomeRequest::Remove(removal) => {
                removal.condition.parse_with(parse);
            }
            HomeRequest::CreateResumable(new) => new.terms.condition.parse_with(parse),
            _ => {}
        }
    }
}

impl UploadStart {
    /// As [`HomeRequest::parse_condition`].
    pub(crate) fn parse_condition(&mut self, parse: ParseCondition) {
        match self {
            UploadStart::Whole(terms, _)
            | UploadStart::From { terms, .. }
            | UploadStart::Parts { terms, .. } => terms.condition.parse_with(parse),
            UploadStart::Resume { terms, .. } => terms.parse = parse,
        }
    }
}

impl ResumeTerms {
    /// Returns terms without a condition.
    pub fn any(quota: Quota) -> ResumeTerms {
        ResumeTerms { quota, only_new: false, parse: |_| Condition::none() }
    }

    /// Returns the terms of an upload to `to` whose recorded condition is `words`.
    pub(crate) fn terms(self, to: Path, words: &str) -> Terms {
        let condition = (self.parse)(words);
        let condition = if self.only_new { condition.and_new() } else { condition };
        Terms { to, condition, quota: self.quota }
    }
}

/// The parser of a request that was received: until the server has set its own, no condition holds.
fn no_parser() -> ParseCondition {
    |words: &str| if words.is_empty() { Condition::none() } else { Condition::never(words) }
}
