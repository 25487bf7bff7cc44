//! Why the store did not do what was asked.
//!
//! These are not texts for a peer: protocols say it in their own words. What must hold: what the system said
//! is kept for the log.

use std::io;

use plimsoll_io::NotDone;
use serde::{Deserialize, Serialize};

use crate::path::BadPath;

/// Why something was not done. Unless it says otherwise, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file, folder or upload.
    #[error("not there")]
    NotFound,
    /// The folder that it would be in is not there, or is a file.
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
    /// The folder has something in it.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The home itself cannot be replaced, moved or removed.
    #[error("the home itself")]
    Home,
    /// A folder cannot be moved or copied into itself.
    #[error("a folder into itself")]
    IntoItself,
    /// A name cannot move from one file system to another.
    #[error("on another disk")]
    OtherDisk,
    /// A path that cannot be.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// What is there is not what the client believed.
    #[error("a condition is not met")]
    Precondition,
    /// What came is not what the client said it sends.
    #[error("the bytes are not those of the digest")]
    Digest,
    /// More bytes came than were announced, or fewer.
    #[error("the bytes are not as many as were announced")]
    Length,
    /// It would be more than the account may have.
    #[error("over quota")]
    Quota,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// More uploads are under way than may be.
    #[error("too many uploads under way")]
    TooManyUploads,
    /// An upload goes on at another offset: this one. Asked for a larger one than there is, this is the
    /// largest.
    #[error("the upload is at offset {0}")]
    Offset(u64),
    /// Which bytes a resumed upload would continue is not certain, so none are mixed.
    #[error("not resumable: {0:?}")]
    NotResumable(NotResumable),
    /// Somebody is writing to the upload right now.
    #[error("the upload is in use")]
    InUse,
    /// Whoever sent the upload took it back before it was in its place.
    #[error("taken back")]
    TakenBack,
    /// The server may not: the operator's rights on the disk forbid it.
    #[error("the system refuses it: {0}")]
    Denied(io::Error),
    /// The file system is mounted read-only, as kernels do after a disk error. Nothing has changed.
    #[error("the disk is read-only")]
    ReadOnlyDisk,
    /// The folder has more in it than is listed.
    #[error("more entries than are listed")]
    TooManyEntries,
    /// The store is another server, and it did not answer. Whether it was done is not known.
    #[error("the store did not answer")]
    Away,
    /// Too much is waiting; nothing was begun.
    #[error("too much is waiting")]
    Busy,
    /// The disk failed. Whether it was done is not known.
    #[error("the disk failed: {0}")]
    Failed(io::Error),
}

/// Why an upload that its path identifies cannot be resumed as asked. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotResumable {
    /// A file is there, and an upload that would replace it was interrupted: the client may mean either.
    FileAndUpload {
        /// The size of the file.
        file: u64,
        /// The offset at which a client may resume the upload by REST; none if the file has the same size, or
        /// is newer than the upload.
        upload: Option<u64>,
    },
    /// No file is there, but an upload that was interrupted at this offset, and the client appends without
    /// having asked for the size.
    Unannounced(u64),
    /// Several uploads to the path are unfinished.
    SeveralUploads,
    /// The file or upload has this size by now, and SIZE reported another to the client.
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

/// What the store answers.
pub(crate) type Result<T> = std::result::Result<T, Error>;
