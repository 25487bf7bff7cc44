//! The ends of a move or copy, in homes of this process or in remote ones.
//!
//! Invariant: both homes must be in one store, because only then a name moves atomically.

use plimsoll_io::{Existing, Io};

use super::home::{Backend, Home};
use crate::change;
use crate::error::{Error, Result};
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
    /// [`Error::NotFound`]; [`Error::AlreadyExists`] unless `existing` is to be replaced;
    /// [`Error::NoFolder`], [`Error::IntoItself`], [`Error::OtherDisk`], [`Error::Quota`].
    pub async fn rename(self, io: &Io, to: End, existing: Existing) -> Result<MoveResult> {
        match (self.home.0, to.home.0) {
            (Backend::Local(from), Backend::Local(home)) => {
                let from = change::End { home: from, path: self.path, quota: self.quota };
                from.rename(io, change::End { home, path: to.path, quota: to.quota }, existing).await
            }
            (Backend::Remote(from), Backend::Remote(home)) => {
                from.rename(io, self.path, home.destination(to.path, to.quota, existing)).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Checks whether [`End::rename`] would succeed, as far as is known without counting.
    ///
    /// # Errors
    /// As [`End::rename`].
    pub async fn check_rename(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        match (&self.home.0, &to.home.0) {
            (Backend::Local(from), Backend::Local(home)) => {
                let from = change::End { home: from.clone(), path: self.path.clone(), quota: self.quota };
                let to = change::End { home: home.clone(), path: to.path.clone(), quota: to.quota };
                from.check_rename(io, &to, existing).await
            }
            (Backend::Remote(from), Backend::Remote(home)) => {
                let to = home.destination(to.path.clone(), to.quota, existing);
                from.check_rename(io, self.path.clone(), to).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Copies this end to `to`. Links and devices are left out.
    ///
    /// # Errors
    /// As [`End::rename`]; [`Error::Busy`] while many copies to the same home are in progress.
    pub async fn copy(self, io: &Io, to: End, existing: Existing, depth: Depth) -> Result<Copied> {
        match (self.home.0, to.home.0) {
            (Backend::Local(from), Backend::Local(home)) => {
                let from = change::End { home: from, path: self.path, quota: self.quota };
                from.copy(io, change::End { home, path: to.path, quota: to.quota }, existing, depth).await
            }
            (Backend::Remote(from), Backend::Remote(home)) => {
                from.copy(io, self.path, home.destination(to.path, to.quota, existing), depth).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Checks whether [`End::copy`] would succeed, as far as is known without counting.
    ///
    /// # Errors
    /// As [`End::copy`].
    pub async fn check_copy(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        match (&self.home.0, &to.home.0) {
            (Backend::Local(from), Backend::Local(home)) => {
                let from = change::End { home: from.clone(), path: self.path.clone(), quota: self.quota };
                let to = change::End { home: home.clone(), path: to.path.clone(), quota: to.quota };
                from.check_copy(io, &to, existing).await
            }
            (Backend::Remote(from), Backend::Remote(home)) => {
                let to = home.destination(to.path.clone(), to.quota, existing);
                from.check_copy(io, self.path.clone(), to).await
            }
            _ => Err(Error::OtherDisk),
        }
    }
}
