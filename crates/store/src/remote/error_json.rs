//! Errors as data, as a store returns them to a front.
//!
//! Invariant: a front must be able to distinguish all variants. Errors of the operating system are reduced
//! to their text.

use std::io;

use serde::{Deserialize, Serialize};

use crate::error::{Error, NotResumable};
use crate::path::BadPath;

/// An [`Error`] as data, with the same variants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "they are those of Error")]
pub enum ErrorJson {
    NotFound,
    NoFolder,
    AlreadyExists,
    IsFolder,
    NotFolder,
    NotEmpty,
    Home,
    IntoItself,
    LeadsOut,
    OtherDisk,
    Path(BadPath),
    Precondition,
    Digest,
    Length,
    Quota,
    Full,
    TooManyUploads,
    TooManyEntries,
    Offset(u64),
    NotResumable(NotResumable),
    InUse,
    Cancelled,
    Denied(String),
    ReadOnlyDisk,
    Busy,
    Away,
    Failed(String),
}

impl From<Error> for ErrorJson {
    fn from(error: Error) -> ErrorJson {
        match error {
            Error::NotFound => ErrorJson::NotFound,
            Error::NoFolder => ErrorJson::NoFolder,
            Error::AlreadyExists => ErrorJson::AlreadyExists,
            Error::IsFolder => ErrorJson::IsFolder,
            Error::NotFolder => ErrorJson::NotFolder,
            Error::NotEmpty => ErrorJson::NotEmpty,
            Error::Home => ErrorJson::Home,
            Error::IntoItself => ErrorJson::IntoItself,
            Error::LeadsOut => ErrorJson::LeadsOut,
            Error::OtherDisk => ErrorJson::OtherDisk,
            Error::Path(bad) => ErrorJson::Path(bad),
            Error::Precondition => ErrorJson::Precondition,
            Error::Digest => ErrorJson::Digest,
            Error::Length => ErrorJson::Length,
            Error::Quota => ErrorJson::Quota,
            Error::Full => ErrorJson::Full,
            Error::TooManyUploads => ErrorJson::TooManyUploads,
            Error::TooManyEntries => ErrorJson::TooManyEntries,
            Error::Offset(offset) => ErrorJson::Offset(offset),
            Error::NotResumable(why) => ErrorJson::NotResumable(why),
            Error::InUse => ErrorJson::InUse,
            Error::Cancelled => ErrorJson::Cancelled,
            Error::Denied(error) => ErrorJson::Denied(error.to_string()),
            Error::ReadOnlyDisk => ErrorJson::ReadOnlyDisk,
            Error::Busy => ErrorJson::Busy,
            Error::Away => ErrorJson::Away,
            Error::Failed(error) => ErrorJson::Failed(error.to_string()),
        }
    }
}

impl From<ErrorJson> for Error {
    fn from(trouble: ErrorJson) -> Error {
        match trouble {
            ErrorJson::NotFound => Error::NotFound,
            ErrorJson::NoFolder => Error::NoFolder,
            ErrorJson::AlreadyExists => Error::AlreadyExists,
            ErrorJson::IsFolder => Error::IsFolder,
            ErrorJson::NotFolder => Error::NotFolder,
            ErrorJson::NotEmpty => Error::NotEmpty,
            ErrorJson::Home => Error::Home,
            ErrorJson::IntoItself => Error::IntoItself,
            ErrorJson::LeadsOut => Error::LeadsOut,
            ErrorJson::OtherDisk => Error::OtherDisk,
            ErrorJson::Path(bad) => Error::Path(bad),
            ErrorJson::Precondition => Error::Precondition,
            ErrorJson::Digest => Error::Digest,
            ErrorJson::Length => Error::Length,
            ErrorJson::Quota => Error::Quota,
            ErrorJson::Full => Error::Full,
            ErrorJson::TooManyUploads => Error::TooManyUploads,
            ErrorJson::TooManyEntries => Error::TooManyEntries,
            ErrorJson::Offset(offset) => Error::Offset(offset),
            ErrorJson::NotResumable(why) => Error::NotResumable(why),
            ErrorJson::InUse => Error::InUse,
            ErrorJson::Cancelled => Error::Cancelled,
            ErrorJson::Denied(text) => Error::Denied(io::Error::other(text)),
            ErrorJson::ReadOnlyDisk => Error::ReadOnlyDisk,
            ErrorJson::Busy => Error::Busy,
            ErrorJson::Away => Error::Away,
            ErrorJson::Failed(text) => Error::Failed(io::Error::other(text)),
        }
    }
}
