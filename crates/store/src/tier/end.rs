//! The ends of a move or copy.
//!
//! Invariant: both homes must be in one store, because only then a name moves atomically.

use plimsoll_io::{Existing, Io};

use super::home::Home;
use crate::backend::{Destination, HomeRequest};
use crate::error::Result;
use crate::path::Path;
use crate::usage::Quota;
use crate::{Copied, Depth, MoveResult};

/// One end of a move or copy.
#[derive(Clone)]
pub struct End {
    /// The home.
    pub home: Home,
    /// The path in it.
    pub path: Path,
    /// The quota of that home.
    pub quota: Quota,
}

impl End {
    /// Moves this end to `to`.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`]; [`crate::Error::AlreadyExists`] unless `existing` is to be replaced;
    /// [`crate::Error::NoFolder`], [`crate::Error::IntoItself`], [`crate::Error::OtherDisk`],
    /// [`crate::Error::Quota`].
    pub async fn rename(self, io: &Io, to: End, existing: Existing) -> Result<MoveResult> {
        self.home.ask(io, HomeRequest::Rename(self.path, to.destination(existing))).await
    }

    /// Checks whether [`End::rename`] would succeed, as far as is known without counting.
    ///
    /// # Errors
    /// As [`End::rename`].
    pub async fn check_rename(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        self.home.ask(io, HomeRequest::CheckRename(self.path.clone(), to.destination(existing))).await
    }

    /// Copies this end to `to`. The copy of a folder has all that a listing of it shows: links within the
    /// folder as links, and files that other links lead to. Devices and dangling links are left out.
    ///
    /// # Errors
    /// As [`End::rename`]; [`crate::Error::LeadsOut`]; [`crate::Error::Busy`] while many copies to the same
    /// home are in progress.
    pub async fn copy(self, io: &Io, to: End, existing: Existing, depth: Depth) -> Result<Copied> {
        self.home.ask(io, HomeRequest::Copy(self.path, to.destination(existing), depth)).await
    }

    /// Checks whether [`End::copy`] would succeed, as far as is known without counting.
    ///
    /// # Errors
    /// As [`End::copy`].
    pub async fn check_copy(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        self.home.ask(io, HomeRequest::CheckCopy(self.path.clone(), to.destination(existing))).await
    }

    fn destination(&self, existing: Existing) -> Destination {
        let (owner, path, quota) = (self.home.owner().clone(), self.path.clone(), self.quota);
        Destination { owner, path, quota, replaces: existing == Existing::Replaced }
    }
}
