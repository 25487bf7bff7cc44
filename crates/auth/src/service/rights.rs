//! Requests about shares.
//!
//! It does not know whether a path exists. Invariants: an account learns nothing of other accounts' paths
//! and shares. An unknown path and a forbidden one both give `NotFound`.

use std::borrow::Cow;

use plimsoll_io::Io;

use super::AccountService;
use crate::changes::Topic;
use crate::directory::{AccountRow, GivenShare, ShareSelection};
use crate::error::Error;
use crate::limits::{SHARE_PARTS_MAX, SHARES_PER_ACCOUNT_MAX};
use crate::names::account_name;
use crate::request::AuthResponse;
use crate::shares::{Grant, NewShare, Share, draw_id, shared_path};
use plimsoll_rpc::time;

fn bad_share<T>(why: &'static str) -> Result<T, Error> {
    Err(Error::BadShare(Cow::Borrowed(why)))
}

impl AccountService {
    pub(super) async fn share(&self, io: &Io, owner: i64, new: NewShare) -> Result<AuthResponse, Error> {
        let path = shared_path(&new.path)?;
        if path.split(|byte| *byte == b'/').count() > SHARE_PARTS_MAX {
            return bad_share("This path is too deep to be shared. Share a folder that it is in.");
        }
        let created = time::now(io);
        let expires = new.expires.map(time::since_1970);
        if expires.is_some_and(|expires| expires <= created) {
            return bad_share("The share would have ended already. Give a time that is to come.");
        }
        let giver = self.directory(io, move |directory, _| directory.account_of(owner)).await?;
        if !giver.is_some_and(|giver| giver.account.enabled && giver.account.permissions.share) {
            return Err(Error::NotAllowed);
        }
        let with = self.named(io, &new.with).await?.account.id;
        if with == owner {
            return bad_share("An account has its own files already. Share with another one.");
        }
        let (id, permission) = (draw_id(io), new.permission);
        let given = GivenShare { id, owner, with, path, permission, created, expires };
        let kept = self.directory(io, move |directory, changes| {
            let kept = directory.add_share(&given, SHARES_PER_ACCOUNT_MAX);
            // It may replace a share with more permissions.
            changes.note(Topic::Shares(owner));
            kept
        });
        let Some(share) = kept.await? else {
            return bad_share(
                "This account gives as many shares as it may. End one that is no longer needed.",
            );
        };
        Ok(AuthResponse::Share(share))
    }

    /// Looks up an account by name. Only logged-in accounts and operators learn whether one exists.
    pub(super) async fn named(&self, io: &Io, name: &str) -> Result<AccountRow, Error> {
        let name = account_name(name.as_bytes()).map_err(|_| Error::NotFound)?;
        self.directory(io, move |directory, _| directory.account(&name)).await?.ok_or(Error::NotFound)
    }

    pub(super) async fn unshare(&self, io: &Io, owner: i64, id: String) -> Result<AuthResponse, Error> {
        let ended = self.directory(io, move |directory, changes| {
            let ended = directory.end_share(owner, &id);
            changes.note(Topic::Shares(owner));
            ended
        });
        if ended.await? { Ok(AuthResponse::Done(())) } else { Err(Error::NotFound) }
    }

    pub(super) async fn shares_by(&self, io: &Io, account: i64) -> Result<AuthResponse, Error> {
        self.shares(io, ShareSelection::By(account)).await.map(AuthResponse::Shares)
    }

    pub(super) async fn shared_with(&self, io: &Io, account: i64) -> Result<AuthResponse, Error> {
        self.shares(io, ShareSelection::With(account)).await.map(AuthResponse::Shares)
    }

    async fn shares(&self, io: &Io, given: ShareSelection) -> Result<Vec<Share>, Error> {
        let now = time::now(io);
        self.directory(io, move |directory, _| directory.shares(given, now)).await
    }

    pub(super) async fn granted(
        &self,
        io: &Io,
        holder: i64,
        owner: &str,
        path: &[u8],
    ) -> Result<AuthResponse, Error> {
        let path = shared_path(path).map_err(|_| Error::NotFound)?;
        let name = account_name(owner.as_bytes()).map_err(|_| Error::NotFound)?;
        let now = time::now(io);
        let found = self.directory(io, move |directory, _| {
            let owner = directory.account(&name)?.filter(|owner| owner.account.enabled);
            let Some(owner) = owner.map(|owner| owner.account) else { return Ok(None) };
            let shares = directory.shares_around(owner.id, holder, &path, now)?;
            Ok(Some((owner, shares)))
        });
        let (owner, shares) = found.await?.ok_or(Error::NotFound)?;
        if shares.is_empty() {
            Err(Error::NotFound)
        } else {
            Ok(AuthResponse::Grant(Grant { owner, shares }))
        }
    }

    pub(super) async fn end_shares(&self, io: &Io, owner: i64, path: &[u8]) -> Result<AuthResponse, Error> {
        let path = shared_path(path)?;
        let ended = self.directory(io, move |directory, changes| {
            let ended = directory.end_shares(owner, &path);
            // Most deleted files were never shared: fronts need no notice of those.
            if !matches!(ended, Ok(false)) {
                changes.note(Topic::Shares(owner));
            }
            ended
        });
        ended.await?;
        Ok(AuthResponse::Done(()))
    }
}
