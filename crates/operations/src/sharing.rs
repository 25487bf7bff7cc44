//! Shares: granted, ended, listed.
//!
//! The rights of a share are in [`crate::permit`]. Invariants: only an existing path can be shared,
//! and only by the owner of its home.

use std::collections::BTreeMap;
use std::time::SystemTime;

use plimsoll_auth::{NewShare, Permission, Share};
use plimsoll_io::Io;
use plimsoll_store::Path;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::operation::Operation;
use crate::permit::{AccessRight, Permitted};

impl Operations {
    /// Grants `with` a right to a path of the caller's home.
    ///
    /// # Errors
    /// [`Error::NOT_FOUND`] if the path does not exist; as [`plimsoll_auth::Auth::share`].
    pub async fn share(
        &self,
        caller: &Caller,
        path: Path,
        with: &str,
        permission: Permission,
        expires: Option<SystemTime>,
    ) -> Result<Share, Error> {
        let place = HomePath::own(path);
        let audit = self.begin_at(caller, Operation::Share, &place);
        audit.end(self.give(caller, &place, with, permission, expires).await)
    }

    async fn give(
        &self,
        caller: &Caller,
        place: &HomePath,
        with: &str,
        permission: Permission,
        expires: Option<SystemTime>,
    ) -> Result<Share, Error> {
        if !caller.identity.account.permissions.share {
            return Err(Error::NotPermitted("share files"));
        }
        let permitted = self.permit(caller, place, &[AccessRight::Read]).await?;
        is_there(caller.io(), &permitted).await?;
        let path = place.path.as_bytes().to_vec();
        let share = NewShare { path, with: with.to_owned(), permission, expires };
        let share = self.0.auth.share(caller.io(), &caller.identity, share).await?;
        // A removal that ran meanwhile may not have seen the new share.
        if let Err(error) = is_there(caller.io(), &permitted).await {
            self.0.auth.unshare(caller.io(), &caller.identity, &share.id).await?;
            return Err(error);
        }
        Ok(share)
    }

    /// Ends a share.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::unshare`].
    pub async fn unshare(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::Unshare, &"");
        audit.end(self.0.auth.unshare(caller.io(), &caller.identity, id).await)
    }

    /// Returns the shares that the caller granted.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shares_by`].
    pub async fn shares(&self, caller: &Caller) -> Result<Vec<Share>, Error> {
        let audit = self.begin_at(caller, Operation::ListShares, &"");
        audit.end(self.0.auth.shares_by(caller.io(), &caller.identity).await)
    }

    /// Returns the shares that others granted to the caller.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shared_with`].
    pub async fn shared(&self, caller: &Caller) -> Result<Vec<Share>, Error> {
        let audit = self.begin_at(caller, Operation::ListShared, &"");
        audit.end(self.0.auth.shared_with(caller.io(), &caller.identity).await)
    }

    /// Returns the owners of shares with the caller, by name, with the time of each owner's newest share.
    /// It is not an operation of its own, but a part of listing folders.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shared_with`].
    pub async fn sharers(&self, caller: &Caller) -> Result<BTreeMap<String, SystemTime>, Error> {
        let mut owners = BTreeMap::new();
        for share in self.0.auth.shared_with(caller.io(), &caller.identity).await? {
            let last = owners.entry(share.owner).or_insert(share.created);
            *last = share.created.max(*last);
        }
        Ok(owners)
    }

    /// Ends the shares of a path that is about to be removed. Shares end before the removal: a file
    /// created later under the same name must not be shared, even if the server crashes in between.
    pub(crate) async fn end_shares(&self, io: &Io, at: &Permitted) -> Result<(), Error> {
        Ok(self.0.auth.end_shares(io, at.owner, at.path.as_bytes()).await?)
    }
}

/// Checks that a place is free. A caller without the permission to delete may not replace files either. A
/// place that cannot be looked up is not free.
pub(crate) async fn is_free(io: &Io, at: &Permitted) -> Result<(), Error> {
    match is_there(io, at).await {
        Ok(()) => Err(Error::NotPermitted("replace files")),
        Err(Error::Store(plimsoll_store::Error::NotFound | plimsoll_store::Error::NotFolder)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that a place exists.
pub(crate) async fn is_there(io: &Io, at: &Permitted) -> Result<(), Error> {
    at.home.stat(io, &at.path).await?;
    Ok(())
}
