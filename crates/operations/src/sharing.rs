//! Shares: given, taken back, listed.
//!
//! What they let do is [`crate::permit`]'s. What must hold: only what is there can be shared, and only by
//! whose home it is in.

use std::collections::BTreeMap;
use std::time::SystemTime;

use plimsoll_auth::{NewShare, Permission, Share};
use plimsoll_io::Io;
use plimsoll_store::Path;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::operation::Operation;
use crate::permit::{Permitted, Right};
use crate::place::Place;

impl Operations {
    /// Gives `with` a right to a path of the caller's home.
    ///
    /// # Errors
    /// [`Error::NOT_FOUND`] if there is nothing; as [`plimsoll_auth::Auth::share`].
    pub async fn share(
        &self,
        caller: &Caller,
        path: Path,
        with: &str,
        permission: Permission,
        expires: Option<SystemTime>,
    ) -> Result<Share, Error> {
        let place = Place::own(path);
        let transfer = self.begin_at(caller, Operation::Share, &place);
        transfer.end(self.give(caller, &place, with, permission, expires).await)
    }

    async fn give(
        &self,
        caller: &Caller,
        place: &Place,
        with: &str,
        permission: Permission,
        expires: Option<SystemTime>,
    ) -> Result<Share, Error> {
        if !caller.identity.account.permissions.share {
            return Err(Error::NotPermitted("share files"));
        }
        let permitted = self.permit(caller, place, &[Right::Read]).await?;
        is_there(caller.io(), &permitted).await?;
        let path = place.path.as_bytes().to_vec();
        let share = NewShare { path, with: with.to_owned(), permission, expires };
        let share = self.0.auth.share(caller.io(), &caller.identity, share).await?;
        // If it went away meanwhile, whoever removed it may not have seen the share.
        if let Err(error) = is_there(caller.io(), &permitted).await {
            self.0.auth.unshare(caller.io(), &caller.identity, &share.id).await?;
            return Err(error);
        }
        Ok(share)
    }

    /// Takes a share back.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::unshare`].
    pub async fn unshare(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let transfer = self.begin_at(caller, Operation::Unshare, &"");
        transfer.end(self.0.auth.unshare(caller.io(), &caller.identity, id).await)
    }

    /// What the caller has shared.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shares_by`].
    pub async fn shares(&self, caller: &Caller) -> Result<Vec<Share>, Error> {
        let transfer = self.begin_at(caller, Operation::ListShares, &"");
        transfer.end(self.0.auth.shares_by(caller.io(), &caller.identity).await)
    }

    /// What others have shared with the caller.
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::shared_with`].
    pub async fn shared(&self, caller: &Caller) -> Result<Vec<Share>, Error> {
        let transfer = self.begin_at(caller, Operation::ListShared, &"");
        transfer.end(self.0.auth.shared_with(caller.io(), &caller.identity).await)
    }

    /// Who shares something with the caller, by name, and when they gave their last share. It is no operation
    /// of its own, but a part of listing folders.
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

    /// Ends the shares of what is about to go away. Before it goes: what comes under the same name later must
    /// not be shared with anybody, also if the server ends in between.
    pub(crate) async fn end_shares(&self, io: &Io, at: &Permitted) -> Result<(), Error> {
        Ok(self.0.auth.end_shares(io, at.owner, at.path.as_bytes()).await?)
    }
}

/// Whether there is nothing at a place, for who may not delete: they may not replace either. What cannot be
/// found out is not taken for nothing.
pub(crate) async fn is_free(io: &Io, at: &Permitted) -> Result<(), Error> {
    match is_there(io, at).await {
        Ok(()) => Err(Error::NotPermitted("replace files")),
        Err(Error::Store(plimsoll_store::Error::NotFound | plimsoll_store::Error::NotFolder)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether there is anything at a place.
pub(crate) async fn is_there(io: &Io, at: &Permitted) -> Result<(), Error> {
    at.home.stat(io, &at.path).await?;
    Ok(())
}
