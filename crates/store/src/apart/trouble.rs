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
pub enum Trouble {
    NotFound,
    NoFolder,
    AlreadyExists,
    IsFolder,
    NotFolder,
    NotEmpty,
    Home,
    IntoItself,
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

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        match error {
            Error::NotFound => Trouble::NotFound,
            Error::NoFolder => Trouble::NoFolder,
            Error::AlreadyExists => Trouble::AlreadyExists,
            Error::IsFolder => Trouble::IsFolder,
            Error::NotFolder => Trouble::NotFolder,
            Error::NotEmpty => Trouble::NotEmpty,
            Error::Home => Trouble::Home,
            Error::IntoItself => Trouble::IntoItself,
            Error::OtherDisk => Trouble::OtherDisk,
            Error::Path(bad) => Trouble::Path(bad),
            Error::Precondition => Trouble::Precondition,
            Error::Digest => Trouble::Digest,
            Error::Length => Trouble::Length,
            Error::Quota => Trouble::Quota,
            Error::Full => Trouble::Full,
            Error::TooManyUploads => Trouble::TooManyUploads,
            Error::TooManyEntries => Trouble::TooManyEntries,
            Error::Offset(offset) => Trouble::Offset(offset),
            Error::NotResumable(why) => Trouble::NotResumable(why),
            Error::InUse => Trouble::InUse,
            Error::Cancelled => Trouble::Cancelled,
            Error::Denied(error) => Trouble::Denied(error.to_string()),
            Error::ReadOnlyDisk => Trouble::ReadOnlyDisk,
            Error::Busy => Trouble::Busy,
            Error::Away => Trouble::Away,
            Error::Failed(error) => Trouble::Failed(error.to_string()),
        }
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        match trouble {
            Trouble::NotFound => Error::NotFound,
            Trouble::NoFolder => Error::NoFolder,
            Trouble::AlreadyExists => Error::AlreadyExists,
            Trouble::IsFolder => Error::IsFolder,
            Trouble::NotFolder => Error::NotFolder,
            Trouble::NotEmpty => Error::NotEmpty,
            Trouble::Home => Error::Home,
            Trouble::IntoItself => Error::IntoItself,
            Trouble::OtherDisk => Error::OtherDisk,
            Trouble::Path(bad) => Error::Path(bad),
            Trouble::Precondition => Error::Precondition,
            Trouble::Digest => Error::Digest,
            Trouble::Length => Error::Length,
            Trouble::Quota => Error::Quota,
            Trouble::Full => Error::Full,
            Trouble::TooManyUploads => Error::TooManyUploads,
            Trouble::TooManyEntries => Error::TooManyEntries,
            Trouble::Offset(offset) => Error::Offset(offset),
            Trouble::NotResumable(why) => Error::NotResumable(why),
            Trouble::InUse => Error::InUse,
            Trouble::Cancelled => Error::Cancelled,
            Trouble::Denied(text) => Error::Denied(io::Error::other(text)),
            Trouble::ReadOnlyDisk => Error::ReadOnlyDisk,
            Trouble::Busy => Error::Busy,
            Trouble::Away => Error::Away,
            Trouble::Failed(text) => Error::Failed(io::Error::other(text)),
        }
    }
}
