//! Errors of operations.
//!
//! This module has no messages for clients: each protocol has its own. Invariants: a path that the
//! caller may not know about is [`store::Error::NotFound`], as if it did not exist.

use plimsoll_auth as auth;
use plimsoll_store as store;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of accounts, sessions or shares.
    #[error(transparent)]
    Auth(#[from] auth::Error),
    /// An error of files.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The client presents a password on a connection that others could read.
    #[error("passwords are not accepted over an unencrypted connection from another machine")]
    PlainPassword,
    /// The account lacks a permission.
    #[error("the account may not {0}")]
    NotPermitted(&'static str),
    /// The share is read-only.
    #[error("the share is for reading only")]
    ReadOnlyShare,
    /// The shared file or folder itself: only its owner may remove or replace it.
    #[error("the shared file or folder itself")]
    SharedItself,
    /// A share has ended, or permits less than when the transfer that uses it was started.
    #[error("the share has ended, or lets do less")]
    ShareEnded,
    /// A folder above shares. It shows only the names that lead to them, and permits no changes.
    #[error("nothing is shared here but what lies below")]
    NotShared,
}

/// The word for an aborted operation in the transfer log.
pub(crate) const BROKEN_OFF: &str = "broken off";

impl Error {
    /// The path does not exist, or the caller may not know about it.
    pub const NOT_FOUND: Error = Error::Store(store::Error::NotFound);

    /// The words of errors that occur in everyday use, and say nothing about the server's state.
    pub(crate) const EXPECTED: [&str; 7] =
        ["not found", "exists", "wrong kind", "not empty", "precondition", "locked", BROKEN_OFF];

    /// Returns the word for this error in the transfer log.
    pub fn word(&self) -> &'static str {
        match self {
            Error::Auth(error) => auth_word(error),
            Error::Store(error) => store_word(error),
            Error::NotPermitted(_)
            | Error::ReadOnlyShare
            | Error::SharedItself
            | Error::ShareEnded
            | Error::NotShared => "not allowed",
            Error::PlainPassword => "not encrypted",
        }
    }
}

fn auth_word(error: &auth::Error) -> &'static str {
    match error {
        auth::Error::NameTaken => "name taken",
        auth::Error::BadName(_)
        | auth::Error::BadPassword(_)
        | auth::Error::BadShare(_)
        | auth::Error::BadImport(_) => "bad request",
        auth::Error::WrongCredentials
        | auth::Error::WrongCredentialsAfter { .. }
        | auth::Error::NoSession => "not authenticated",
        auth::Error::NotAllowed
        | auth::Error::SignUpClosed
        | auth::Error::NoLinks
        | auth::Error::OwnRight
        | auth::Error::NoLocks
        | auth::Error::LockOfAnother => "not allowed",
        auth::Error::Locked { .. } | auth::Error::TooManyLocks => "locked",
        auth::Error::LinkUsedUp => "used up",
        auth::Error::NotFound => "not found",
        auth::Error::TooManyAttempts { .. } => "too many attempts",
        auth::Error::Busy { .. } => "busy",
        auth::Error::Full => "disk full",
        auth::Error::Unavailable => "failed",
    }
}

fn store_word(error: &store::Error) -> &'static str {
    match error {
        store::Error::NotFound | store::Error::NoFolder => "not found",
        store::Error::AlreadyExists => "exists",
        store::Error::IsFolder
        | store::Error::NotFolder
        | store::Error::OtherDisk
        | store::Error::LeadsOut => "wrong kind",
        store::Error::NotEmpty => "not empty",
        store::Error::Home | store::Error::IntoItself | store::Error::Path(_) => "bad request",
        store::Error::Precondition | store::Error::Offset(_) | store::Error::NotResumable(_) => {
            "precondition"
        }
        store::Error::Digest | store::Error::Length => "digest mismatch",
        store::Error::Quota => "quota",
        store::Error::Full => "disk full",
        store::Error::TooManyUploads => "too many uploads",
        store::Error::TooManyEntries => "too many entries",
        store::Error::InUse | store::Error::Busy => "busy",
        store::Error::Cancelled => BROKEN_OFF,
        store::Error::Denied(_)
        | store::Error::ReadOnlyDisk
        | store::Error::Failed(_)
        | store::Error::Away => "failed",
    }
}
