//! Errors of the store.
//!
//! They are not messages for clients: each protocol has its own. Invariant: errors of the operating system
//! are kept for the log. A remote store sends all variants; of an error of the operating system, its text.

use std::io;

use plimsoll_io::NotDone;
use serde::{Deserialize, Serialize};

use crate::path::BadPath;

/// The reason why an operation failed. Unless a variant says otherwise, nothing has changed.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// There is no such file, folder or upload.
    #[error("not there")]
    NotFound,
    /// The parent folder does not exist, or is a file.
    #[error("the folder it would be in is not there")]
    NoFolder,
    /// The name is taken.
    #[error("the name is taken")]
    AlreadyExists,
    /// A folder is where a file is needed.
    #[error("a folder, not a file")]
    IsFolder,
    /// A file is where a folder is needed.
    #[error("a file, not a folder")]
    NotFolder,
    /// The folder is not empty.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The home itself cannot be replaced, moved or removed.
    #[error("the home itself")]
    Home,
    /// A folder cannot be moved or copied into itself.
    #[error("a folder into itself")]
    IntoItself,
    /// A folder with a link to a folder outside it is not copied: the copy would lack its contents.
    #[error("a link leads out of the folder")]
    LeadsOut,
    /// A rename cannot move an entry from one file system to another, nor the top of a mounted one.
    #[error("on another disk")]
    OtherDisk,
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// A condition is not met: the present entry is not the one that the client expects.
    #[error("a condition is not met")]
    Precondition,
    /// The received bytes do not match a digest that the client sent.
    #[error("the bytes are not those of the digest")]
    Digest,
    /// More or fewer bytes were received than were announced.
    #[error("the bytes are not as many as were announced")]
    Length,
    /// The account's quota would be exceeded.
    #[error("over quota")]
    Quota,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The home has the maximum number of uploads that are in progress or resumable.
    #[error("too many uploads in progress")]
    TooManyUploads,
    /// The upload continues at another offset: this one. If the requested offset is too large, this is the
    /// largest possible one.
    #[error("the upload is at offset {0}")]
    Offset(u64),
    /// The bytes that a resumed upload would continue are not certain, so none are mixed.
    #[error("not resumable: {0:?}")]
    NotResumable(NotResumable),
    /// Another connection is writing to the upload, or has taken it over.
    #[error("the upload is in use")]
    InUse,
    /// The sender cancelled the upload before its commit.
    #[error("taken back")]
    Cancelled,
    /// The file permissions, which are the operator's, deny access; or the home is quarantined.
    #[error("the kernel denies it: {0}")]
    Denied(#[serde(with = "as_text")] io::Error),
    /// The file system is mounted read-only, as kernels do after a disk error. Nothing has changed.
    #[error("the disk is read-only")]
    ReadOnlyDisk,
    /// The folder has more entries than a listing may have.
    #[error("too many entries to list")]
    TooManyEntries,
    /// A remote store did not respond. The outcome is unknown.
    #[error("the store did not answer")]
    Away,
    /// Too much work is queued; nothing was started.
    #[error("too much is waiting")]
    Busy,
    /// The disk failed. The outcome is unknown.
    #[error("the disk failed: {0}")]
    Failed(#[serde(with = "as_text")] io::Error),
}

/// Why an upload that its path identifies cannot be resumed as asked. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotResumable {
    /// The path has a file, and an interrupted upload would replace it: the client may mean either.
    FileAndUpload {
        /// The size of the file.
        file: u64,
        /// The offset at which a client may resume the upload by REST; none if the file has the same size,
        /// or is newer than the upload.
        upload: Option<u64>,
    },
    /// The path has no file, but an upload that was interrupted at this offset. The client appends without
    /// having requested the size.
    Unannounced(u64),
    /// Several uploads to the path are unfinished.
    SeveralUploads,
    /// The file or upload now has this size, and SIZE reported another one to the client.
    Changed(u64),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound | Kind::InvalidFilename => Error::NotFound,
            Kind::AlreadyExists => Error::AlreadyExists,
            Kind::IsADirectory => Error::IsFolder,
            Kind::NotADirectory => Error::NotFolder,
            Kind::DirectoryNotEmpty => Error::NotEmpty,
            Kind::StorageFull | Kind::QuotaExceeded => Error::Full,
            Kind::ResourceBusy | Kind::TimedOut => Error::Busy,
            Kind::ReadOnlyFilesystem => Error::ReadOnlyDisk,
            Kind::CrossesDevices => Error::OtherDisk,
            Kind::PermissionDenied => Error::Denied(error),
            _ => Error::Failed(error),
        }
    }
}

impl From<NotDone> for Error {
    fn from(not_done: NotDone) -> Error {
        match not_done {
            NotDone::Busy => Error::Busy,
            NotDone::Lost => Error::Failed(not_done.into()),
        }
    }
}

/// Serialises an error of the operating system as its text.
mod as_text {
    use std::io;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(error: &io::Error, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(error)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<io::Error, D::Error> {
        String::deserialize(from).map(io::Error::other)
    }
}

/// The result of a store operation.
pub(crate) type Result<T> = std::result::Result<T, Error>;
