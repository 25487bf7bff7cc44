//! The ends of a move or copy, wherever their homes are.
//!
//! What must hold: both homes are at one store; there is no other way for a name to move at once.

use plimsoll_io::{Existing, Io};

use super::home::{At, Home};
use crate::change;
use crate::error::{Error, Result};
use crate::path::Path;
use crate::usage::Quota;
use crate::{Copied, Depth, Moved};

/// One end of a move or copy.
#[derive(Clone)]
pub struct End {
    /// The home.
    pub home: Home,
    /// The path in it.
    pub path: Path,
    /// What that home may hold.
    pub quota: Quota,
}

impl End {
    /// Moves what is here to `to`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::AlreadyExists`] unless `existing` is to be replaced;
    /// [`Error::NoFolder`], [`Error::IntoItself`], [`Error::OtherDisk`], [`Error::Quota`].
    pub async fn rename(self, io: &Io, to: End, existing: Existing) -> Result<Moved> {
        match (self.home.0, to.home.0) {
            (At::Here(from), At::Here(home)) => {
                let from = change::End { home: from, path: self.path, quota: self.quota };
                from.rename(io, change::End { home, path: to.path, quota: to.quota }, existing).await
            }
            (At::Apart(from), At::Apart(home)) => {
                from.rename(io, self.path, home.destination(to.path, to.quota, existing)).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Whether [`End::rename`] would do it, as far as can be told now without counting.
    ///
    /// # Errors
    /// As [`End::rename`].
    pub async fn check_rename(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        match (&self.home.0, &to.home.0) {
            (At::Here(from), At::Here(home)) => {
                let from = change::End { home: from.clone(), path: self.path.clone(), quota: self.quota };
                let to = change::End { home: home.clone(), path: to.path.clone(), quota: to.quota };
                from.check_rename(io, &to, existing).await
            }
            (At::Apart(from), At::Apart(home)) => {
                let to = home.destination(to.path.clone(), to.quota, existing);
                from.check_rename(io, self.path.clone(), to).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Copies what is here to `to`. Links and devices are left out.
    ///
    /// # Errors
    /// As [`End::rename`]; [`Error::Busy`] while many copies to the same home are under way.
    pub async fn copy(self, io: &Io, to: End, existing: Existing, depth: Depth) -> Result<Copied> {
        match (self.home.0, to.home.0) {
            (At::Here(from), At::Here(home)) => {
                let from = change::End { home: from, path: self.path, quota: self.quota };
                from.copy(io, change::End { home, path: to.path, quota: to.quota }, existing, depth).await
            }
            (At::Apart(from), At::Apart(home)) => {
                from.copy(io, self.path, home.destination(to.path, to.quota, existing), depth).await
            }
            _ => Err(Error::OtherDisk),
        }
    }

    /// Whether [`End::copy`] would do it, as far as can be told now without counting.
    ///
    /// # Errors
    /// As [`End::copy`].
    pub async fn check_copy(&self, io: &Io, to: &End, existing: Existing) -> Result<()> {
        match (&self.home.0, &to.home.0) {
            (At::Here(from), At::Here(home)) => {
                let from = change::End { home: from.clone(), path: self.path.clone(), quota: self.quota };
                let to = change::End { home: home.clone(), path: to.path.clone(), quota: to.quota };
                from.check_copy(io, &to, existing).await
            }
            (At::Apart(from), At::Apart(home)) => {
                let to = home.destination(to.path.clone(), to.quota, existing);
                from.check_copy(io, self.path.clone(), to).await
            }
            _ => Err(Error::OtherDisk),
        }
    }
}
