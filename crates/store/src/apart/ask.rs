//! What a front asks a store, as data.
//!
//! It says nothing of how it travels. What must hold: a question has all that its answer depends on, but for
//! the files, the settings and the time; paths are told as their bytes, whatever these are.

use std::time::Duration;

use plimsoll_io::{Entry, FileKind, JobOwner, ListingPage, Stat};
use plimsoll_wire::http::target::{decode_path, encode_path};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::condition::Said;
use crate::limits::{STORE_ANSWER_TIME, STORE_COUNT_TIME, STORE_LONG_ANSWER_TIME};
use crate::path::Path;
use crate::usage::Quota;
use crate::write::{Algorithm, Begin, Committed, Expected, UploadId};
use crate::{Depth, What};

/// Whose home something is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The account's number, which is never another account's.
    pub account: i64,
    /// The account's name.
    pub name: String,
    /// The front's name for the directory that has the account, if other fronts may have another directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
}

impl Owner {
    /// On whose behalf work is done that `caller` asked for.
    pub(super) fn job_owner(&self, caller: u64) -> JobOwner {
        let caller = if caller == 0 { JobOwner::account(self.account).number() } else { caller };
        JobOwner::elsewhere(caller, &self.directory)
    }
}

/// A question about a home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The home.
    pub owner: Owner,
    /// On whose behalf: [`plimsoll_io::JobOwner::number`]. Without, the home's account.
    #[serde(default)]
    pub caller: u64,
    /// The question.
    pub question: Question,
}

/// What is asked; the type of the answer is behind each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// What does it hold? [`crate::Usage`]
    Usage,
    /// What is known of what a reader finds at a path? [`Seen`]
    Stat(Path),
    /// What is in a folder? A list of names, percent-encoded, each with what is known of it.
    List {
        /// The folder.
        path: Path,
        /// More entries than these are not told: the folder is too large.
        most: usize,
        /// Only these, and one more that says that the page is not the last. An older store ignores it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<SaidPage>,
    },
    /// Make a folder. Nothing.
    MakeFolder {
        /// The folder.
        path: Path,
        /// What the home may hold.
        quota: Quota,
    },
    /// Would this be removed? Nothing.
    CheckRemoval(Removal),
    /// Remove. [`crate::Removed`]
    Remove(Removal),
    /// Say when something was last changed. [`Seen`]
    SetModified {
        /// The file or folder.
        path: Path,
        /// The time since 1970.
        modified: Duration,
    },
    /// Would this be moved? Nothing.
    CheckRename(Path, Destination),
    /// Move. [`crate::Moved`]
    Rename(Path, Destination),
    /// Would this be copied? Nothing.
    CheckCopy(Path, Destination),
    /// Copy. [`crate::Copied`]
    Copy(Path, Destination, Depth),
    /// Begin an upload that is kept. [`crate::KeptUpload`]
    Keep {
        /// Where it goes, and under which terms.
        terms: SaidTerms,
        /// How many bytes it will have.
        bytes: Option<u64>,
        /// The condition to be asked again with the commit.
        words: String,
    },
    /// Look at a kept upload. [`crate::KeptUpload`]
    Kept(UploadId),
    /// Look at a kept upload that is in its place. [`crate::Completed`]
    Completed(UploadId),
    /// The unfinished uploads that a path identifies. A list of [`crate::KeptUpload`].
    PendingAt(Path),
    /// All kept uploads. A list of [`crate::KeptUpload`].
    AllKept,
    /// Throw a kept upload away. Nothing.
    Discard(UploadId),
    /// At which offset an upload would begin that goes on at the end. A number.
    EndOf {
        /// The path.
        path: Path,
        /// Whether kept uploads are looked at.
        keep: bool,
    },
    /// The digest of a whole file, and what is known of that very file. [`Seen`], bytes.
    Digest(Path, Algorithm),
}

/// What a question does to a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: to ask twice is the same as to ask once.
    Looks,
    /// Something: who does not know whether it was taken must not ask again.
    Changes,
}

impl Question {
    /// What it does, and how long the answer is waited for.
    pub(super) fn manner(&self) -> (Effect, Duration) {
        use Effect::{Changes, Looks};
        match self {
            Question::Usage => (Looks, STORE_LONG_ANSWER_TIME),
            Question::Stat(_) => (Looks, STORE_ANSWER_TIME),
            Question::List { .. } => (Looks, STORE_LONG_ANSWER_TIME),
            Question::MakeFolder { .. } => (Changes, STORE_COUNT_TIME),
            Question::CheckRemoval(_) => (Looks, STORE_ANSWER_TIME),
            Question::Remove(_) => (Changes, STORE_LONG_ANSWER_TIME),
            Question::SetModified { .. } => (Changes, STORE_ANSWER_TIME),
            Question::CheckRename(..) => (Looks, STORE_ANSWER_TIME),
            Question::Rename(..) => (Changes, STORE_LONG_ANSWER_TIME),
            Question::CheckCopy(..) => (Looks, STORE_ANSWER_TIME),
            Question::Copy(..) => (Changes, STORE_LONG_ANSWER_TIME),
            Question::Keep { .. } => (Changes, STORE_COUNT_TIME),
            Question::Kept(_) => (Looks, STORE_ANSWER_TIME),
            Question::Completed(_) => (Looks, STORE_ANSWER_TIME),
            Question::PendingAt(_) => (Looks, STORE_ANSWER_TIME),
            Question::AllKept => (Looks, STORE_ANSWER_TIME),
            Question::Discard(_) => (Changes, STORE_ANSWER_TIME),
            Question::EndOf { .. } => (Looks, STORE_ANSWER_TIME),
            Question::Digest(..) => (Looks, STORE_LONG_ANSWER_TIME),
        }
    }
}

/// What is to be removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Removal {
    /// The path.
    pub path: Path,
    /// What it must be.
    pub what: What,
    /// What must be true of it.
    pub condition: Said,
}

/// Where something is moved or copied to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Destination {
    /// Whose home.
    pub owner: Owner,
    /// The path in it.
    pub path: Path,
    /// What that home may hold.
    pub quota: Quota,
    /// Whether what is there is replaced.
    pub replaces: bool,
}

/// [`crate::Terms`] as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaidTerms {
    /// The path that it gets.
    pub to: Path,
    /// What must be true of what is there.
    pub condition: Said,
    /// What the home may hold.
    pub quota: Quota,
}

/// A file that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Get {
    /// Whose home it is in.
    pub owner: Owner,
    /// As [`Asked::caller`].
    #[serde(default)]
    pub caller: u64,
    /// The path.
    pub path: Path,
}

/// An upload to be begun, before its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewArrival {
    /// Whose home it goes to.
    pub owner: Owner,
    /// As [`Asked::caller`].
    #[serde(default)]
    pub caller: u64,
    /// How it begins.
    pub how: How,
}

/// How an upload begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As [`crate::Home::upload`].
    Whole(SaidTerms, Expected),
    /// As [`crate::Home::upload_from`].
    From {
        /// Where it goes, and under which terms.
        terms: SaidTerms,
        /// Where it begins.
        begin: Begin,
        /// Whether it is kept.
        keep: bool,
        /// The offset that this must be: who asked was told so.
        at: u64,
    },
    /// As [`crate::Home::go_on`].
    GoOn {
        /// The upload.
        id: UploadId,
        /// Where it stands.
        offset: u64,
        /// Digests of the part that comes.
        digests: Vec<(Algorithm, Vec<u8>)>,
        /// What the home may hold.
        quota: Quota,
        /// Whether there must be nothing where it goes.
        only_new: bool,
    },
    /// As [`crate::Home::upload_of_parts`].
    Parts {
        /// Where it goes, and under which terms.
        terms: SaidTerms,
        /// The parts, in their order.
        parts: Vec<UploadId>,
    },
}

/// What is to become of an upload whose bytes have come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It gets its name, if the digests of all of it are these.
    Commit(Vec<(Algorithm, Vec<u8>)>),
    /// The same, with the time of modification that it gets, since 1970.
    CommitDated(Vec<(Algorithm, Vec<u8>)>, Duration),
    /// It is left for later.
    Pause,
    /// It is given up.
    GiveUp,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It has its name.
    Committed(Committed),
    /// It stands at this offset.
    Paused(u64),
    /// It is settled.
    GivenUp,
}

/// A [`ListingPage`] as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaidPage {
    after: Option<Encoded>,
    limit: usize,
}

impl From<&ListingPage> for SaidPage {
    fn from(page: &ListingPage) -> SaidPage {
        SaidPage { after: page.after.clone().map(Encoded), limit: page.limit }
    }
}

impl From<SaidPage> for ListingPage {
    fn from(said: SaidPage) -> ListingPage {
        ListingPage { after: said.after.map(|Encoded(name)| name), limit: said.limit }
    }
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Seen(#[serde(with = "SaidStat")] pub Stat);

/// An entry of a folder.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Named(#[serde(with = "SaidEntry")] pub(crate) Entry);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Entry")]
struct SaidEntry {
    #[serde(with = "percent_encoded")]
    name: Vec<u8>,
    #[serde(with = "SaidStat")]
    stat: Stat,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stat")]
pub(crate) struct SaidStat {
    #[serde(with = "SaidKind")]
    kind: FileKind,
    size: u64,
    device: u64,
    inode: u64,
    modified: Duration,
    changed: Duration,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FileKind", rename_all = "snake_case")]
enum SaidKind {
    File,
    Folder,
    Other,
}

/// A path: as its bytes; or with the folder that no link may lead out of, unless that is the home.
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
                // Without its bound, the path would mean more than it was asked for.
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

/// Bytes of a name or path as text.
mod percent_encoded {
    use super::*;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(bytes.len());
        encode_path(bytes, &mut text);
        String::from_utf8_lossy(&text).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        // A path as a target has it begins with a slash.
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
        for text in ["\"..\"", "\"a//b\"", "\"a%00b\"", "7", r#"{"beneath":"b","path":"a"}"#] {
            assert!(serde_json::from_str::<Path>(text).is_err(), "{text}");
        }
    }
}
