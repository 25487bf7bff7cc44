//! Requests of a front to a store, as data.
//!
//! It does not define their transport. Invariants: a request has all that its response depends on, except
//! files, settings and time. Paths are sent as bytes, which need not be UTF-8.

use std::time::Duration;

use plimsoll_io::{Entry, FileKind, JobOwner, ListingPage, Stat};
use plimsoll_rpc::{ConnectionClass, Method, Request};
use plimsoll_wire::http::target::{decode_path, encode_path};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::client::QUESTIONS;
use crate::condition::ConditionText;
use crate::limits::{STORE_ANSWER_TIME, STORE_COUNT_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;
use crate::usage::Quota;
use crate::write::{Algorithm, Begin, Committed, Expected, UploadId};
use crate::{Depth, RemovalKind};

/// The owner of a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The account's number, which is never another account's.
    pub account: i64,
    /// The account's name.
    pub name: String,
    /// The front's name for its directory of accounts, if other fronts may have another directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
}

impl Owner {
    /// The owner of work that `caller` requested; 0 is the home's account.
    pub(super) fn job_owner(&self, caller: u64) -> JobOwner {
        let caller = if caller == 0 { JobOwner::account(self.account).number() } else { caller };
        JobOwner::elsewhere(caller, &self.directory)
    }
}

/// A request about a home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreRequest {
    /// The home.
    pub owner: Owner,
    /// The caller, as [`plimsoll_io::JobOwner::number`]; 0 is the home's account.
    #[serde(default)]
    pub caller: u64,
    /// The request itself.
    pub question: HomeRequest,
}

/// An operation, each with the type of its response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HomeRequest {
    /// Returns the home's usage. [`crate::Usage`]
    Usage,
    /// Returns the metadata of the entry that a reader finds at a path. [`StatJson`]
    Stat(Path),
    /// Lists a folder. A list of names, percent-encoded, each with its metadata.
    List {
        /// The folder.
        path: Path,
        /// The largest number of entries; a larger folder is an error.
        most: usize,
        /// Only these entries, and one more if the page is not the last. An older store ignores it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<PageJson>,
    },
    /// Creates a folder. No data.
    MakeFolder {
        /// The folder.
        path: Path,
        /// The home's quota.
        quota: Quota,
        /// Whether missing folders above it are created too.
        #[serde(default)]
        parents: bool,
    },
    /// Checks a removal. No data.
    CheckRemoval(Removal),
    /// Removes an entry. [`crate::Removed`]
    Remove(Removal),
    /// Sets a modification time. [`StatJson`]
    SetModified {
        /// The file or folder.
        path: Path,
        /// The time since 1970.
        modified: Duration,
    },
    /// Checks a move. No data.
    CheckRename(Path, Destination),
    /// Moves an entry. [`crate::MoveResult`]
    Rename(Path, Destination),
    /// Checks a copy. No data.
    CheckCopy(Path, Destination),
    /// Copies an entry. [`crate::Copied`]
    Copy(Path, Destination, Depth),
    /// Creates a resumable upload. [`crate::KeptUpload`]
    Keep {
        /// Its path and terms.
        terms: TermsJson,
        /// Its length in bytes, if known.
        bytes: Option<u64>,
        /// The condition to be checked again at the commit.
        words: String,
        /// The client's metadata. An older store ignores it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        metadata: String,
    },
    /// Sets the length of a resumable upload that was created without one. No data.
    SetLength {
        /// The upload.
        id: UploadId,
        /// Its length in bytes.
        bytes: u64,
        /// The home's quota.
        quota: Quota,
    },
    /// Returns a resumable upload. [`crate::KeptUpload`]
    Kept(UploadId),
    /// Returns a resumable upload that was committed. [`crate::Completed`]
    Completed(UploadId),
    /// Returns the unfinished uploads that a path identifies. A list of [`crate::KeptUpload`].
    PendingAt(Path),
    /// Returns all resumable uploads. A list of [`crate::KeptUpload`].
    AllKept,
    /// Discards a resumable upload. No data.
    Discard(UploadId),
    /// Returns the offset at which an upload would begin at the end. A number.
    EndOf {
        /// The path.
        path: Path,
        /// Whether resumable uploads are considered.
        keep: bool,
    },
    /// Computes the digest of a whole file; also returns the metadata of that very file. [`StatJson`], bytes.
    Digest(Path, Algorithm),
}

/// A lookup: it may be repeated.
const READ: Method = Method {
    path: QUESTIONS,
    deadline: STORE_ANSWER_TIME,
    is_idempotent: true,
    class: ConnectionClass::Unbounded,
};
/// A lookup that takes as long as a file or a tree is large.
const LONG_READ: Method = Method { deadline: STORE_LONG_ANSWER_TIME, ..READ };
/// A change: after an unknown outcome, it must not be repeated.
const CHANGE: Method = Method { is_idempotent: false, ..READ };
/// A change that may wait until the home is counted.
const COUNTED_CHANGE: Method = Method { deadline: STORE_COUNT_TIME, ..CHANGE };
/// A change that takes as long as a file or a tree is large.
const LONG_CHANGE: Method = Method { deadline: STORE_LONG_ANSWER_TIME, ..CHANGE };

impl Request for StoreRequest {
    fn method(&self) -> Method {
        match &self.question {
            HomeRequest::Usage => LONG_READ,
            HomeRequest::Stat(_) => READ,
            HomeRequest::List { .. } => LONG_READ,
            HomeRequest::MakeFolder { .. } => COUNTED_CHANGE,
            HomeRequest::CheckRemoval(_) => READ,
            HomeRequest::Remove(_) => LONG_CHANGE,
            HomeRequest::SetModified { .. } => CHANGE,
            HomeRequest::CheckRename(..) => READ,
            HomeRequest::Rename(..) => LONG_CHANGE,
            HomeRequest::CheckCopy(..) => READ,
            HomeRequest::Copy(..) => LONG_CHANGE,
            HomeRequest::Keep { .. } => COUNTED_CHANGE,
            HomeRequest::SetLength { .. } => CHANGE,
            HomeRequest::Kept(_) => READ,
            HomeRequest::Completed(_) => READ,
            HomeRequest::PendingAt(_) => READ,
            HomeRequest::AllKept => READ,
            HomeRequest::Discard(_) => CHANGE,
            HomeRequest::EndOf { .. } => READ,
            HomeRequest::Digest(..) => LONG_READ,
        }
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
    pub condition: ConditionText,
}

/// The target of a move or copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Destination {
    /// The owner of its home.
    pub owner: Owner,
    /// The path in it.
    pub path: Path,
    /// The quota of that home.
    pub quota: Quota,
    /// Whether an existing entry is replaced.
    pub replaces: bool,
}

/// [`crate::Terms`] as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TermsJson {
    /// The path of the upload.
    pub to: Path,
    /// The condition on the entry that the path has before.
    pub condition: ConditionText,
    /// The home's quota.
    pub quota: Quota,
}

/// A request for a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Get {
    /// The owner of its home.
    pub owner: Owner,
    /// As [`StoreRequest::caller`].
    #[serde(default)]
    pub caller: u64,
    /// The path.
    pub path: Path,
}

/// A request to begin an upload, sent before its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginUpload {
    /// The owner of its home.
    pub owner: Owner,
    /// As [`StoreRequest::caller`].
    #[serde(default)]
    pub caller: u64,
    /// How it begins.
    pub how: UploadStart,
}

/// How an upload begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadStart {
    /// As [`crate::Home::upload`].
    Whole(TermsJson, Expected),
    /// As [`crate::Home::upload_from`].
    From {
        /// Its path and terms.
        terms: TermsJson,
        /// Where it begins.
        begin: Begin,
        /// Whether it is resumable if it is interrupted.
        keep: bool,
        /// The offset at which it must begin, as it was reported to the caller.
        at: u64,
    },
    /// As [`crate::Home::resume_upload`].
    #[serde(rename = "go_on")]
    Resume {
        /// The upload.
        id: UploadId,
        /// Its present offset.
        offset: u64,
        /// Digests of the part that is now sent.
        digests: Vec<(Algorithm, Vec<u8>)>,
        /// The home's quota.
        quota: Quota,
        /// Whether its path must have no entry.
        only_new: bool,
    },
    /// As [`crate::Home::upload_of_parts`].
    Parts {
        /// Its path and terms.
        terms: TermsJson,
        /// The parts, in their order.
        parts: Vec<UploadId>,
    },
}

/// The end of an upload, after all its bytes were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It is committed, if the digests of all its bytes are these.
    Commit(Vec<(Algorithm, Vec<u8>)>),
    /// The same, with the modification time that it gets, since 1970.
    CommitDated(Vec<(Algorithm, Vec<u8>)>, Duration),
    /// The part ends, and the upload stays resumable.
    Pause,
    /// It is aborted.
    #[serde(rename = "give_up")]
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
    GivenUp,
}

/// A [`ListingPage`] as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageJson {
    after: Option<Encoded>,
    limit: usize,
}

impl From<&ListingPage> for PageJson {
    fn from(page: &ListingPage) -> PageJson {
        PageJson { after: page.after.clone().map(Encoded), limit: page.limit }
    }
}

impl From<PageJson> for ListingPage {
    fn from(said: PageJson) -> ListingPage {
        ListingPage { after: said.after.map(|Encoded(name)| name), limit: said.limit }
    }
}

/// The metadata of a file or folder.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StatJson(#[serde(with = "StatFields")] pub Stat);

/// An entry of a folder.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryJson(#[serde(with = "EntryFields")] pub(crate) Entry);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Entry")]
struct EntryFields {
    #[serde(with = "percent_encoded")]
    name: Vec<u8>,
    #[serde(with = "StatFields")]
    stat: Stat,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stat")]
pub(crate) struct StatFields {
    #[serde(with = "KindJson")]
    kind: FileKind,
    size: u64,
    device: u64,
    inode: u64,
    modified: Duration,
    changed: Duration,
    /// Missing in the answers of earlier versions.
    #[serde(default)]
    links: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FileKind", rename_all = "snake_case")]
enum KindJson {
    File,
    Folder,
    Other,
}

/// A path as its bytes. If links may not lead out of a folder below the home, that folder is added.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SaidPath {
    InHome(Encoded),
    Beneath { beneath: Encoded, path: Encoded },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Encoded(#[serde(with = "percent_encoded")] Vec<u8>);

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let path = Encoded(self.as_bytes().to_vec());
        let said = match self.top() {
            b"" => SaidPath::InHome(path),
            top => SaidPath::Beneath { beneath: Encoded(top.to_vec()), path },
        };
        said.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        let parse = |bytes: &Encoded| Path::parse(&bytes.0).map_err(D::Error::custom);
        match SaidPath::deserialize(deserializer)? {
            SaidPath::InHome(path) => parse(&path),
            SaidPath::Beneath { beneath, path } => {
                let (beneath, path) = (parse(&beneath)?, parse(&path)?);
                // Without its boundary, the path could resolve to more than the request allows.
                let is_bounded = !beneath.is_root() && path.is_within(&beneath);
                is_bounded.then(|| path.beneath(&beneath)).ok_or_else(|| D::Error::custom("no path beneath"))
            }
        }
    }
}

impl Serialize for UploadId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UploadId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UploadId, D::Error> {
        let text = String::deserialize(deserializer)?;
        UploadId::parse(text.as_bytes()).ok_or_else(|| D::Error::custom("no upload's name"))
    }
}

/// Serialises bytes of a name or path as percent-encoded text.
mod percent_encoded {
    use super::*;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(bytes.len());
        encode_path(bytes, &mut text);
        String::from_utf8_lossy(&text).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        // The path of a request target begins with a slash.
        let (text, mut bytes) = (format!("/{}", String::deserialize(deserializer)?), Vec::new());
        let bad = || D::Error::custom("no name or path");
        decode_path(text.as_bytes(), &mut bytes).map_err(|_| bad())?;
        bytes.strip_prefix(b"/").map(<[u8]>::to_vec).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_bytes_travel() {
        for name in [&b"plain"[..], b"a b/c%2f\\", b"\xff\xfe", "日本".as_bytes(), b""] {
            let path = Path::parse(name).unwrap();
            let read: Path = serde_json::from_str(&serde_json::to_string(&path).unwrap()).unwrap();
            assert_eq!(read, path);
        }
        let path = Path::parse(b"a b/c").unwrap().beneath(&Path::parse(b"a b").unwrap());
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(text, r#"{"beneath":"a%20b","path":"a%20b/c"}"#);
        assert_eq!(serde_json::from_str::<Path>(&text).unwrap(), path);
    }

    #[test]
    fn what_is_no_path_is_not_read_as_one() {
        for text in ["\"..\"", "\"a//../b\"", "\"a%00b\"", "7", r#"{"beneath":"b","path":"a"}"#] {
            assert!(serde_json::from_str::<Path>(text).is_err(), "{text}");
        }
    }
}
