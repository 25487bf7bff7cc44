//! The permission check: what a caller may do at a place, and whose quota it counts for.
//!
//! There is no other. What must hold: it is asked anew for each operation, so that a share that has ended is
//! over at the next request; who may not know of a place is told that it is not there.

use plimsoll_auth::{Grant, Permission, Permissions};
use plimsoll_store::{End, Home, Path, Quota};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::place::Place;

/// What is to be done at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Look and read.
    Read,
    /// Add and replace.
    Write,
    /// Remove.
    Delete,
}

/// A place that the caller may use as they asked.
pub(crate) struct Permitted {
    pub(crate) home: Home,
    pub(crate) path: Path,
    pub(crate) quota: Quota,
    /// The account whose home it is.
    pub(crate) owner: i64,
    /// Where only shares below are seen: the names that lead to them.
    pub(crate) only: Option<Vec<Vec<u8>>>,
    /// What the caller could do here, if they asked.
    pub(crate) may: Permissions,
}

impl Permitted {
    pub(crate) fn end(&self) -> End {
        End { home: self.home.clone(), path: self.path.clone(), quota: self.quota }
    }
}

impl Operations {
    /// The caller's own home, if they may read there and it is open.
    pub(crate) fn own_at_hand(&self, caller: &Caller, place: &Place) -> Option<Home> {
        let account = &caller.identity.account;
        let may = place.is_own(&account.name) && check(account.permissions, &[Right::Read]).is_ok();
        may.then(|| self.0.store.home_at_hand(account.id, &account.name))?
    }

    /// The place, if the caller has all of `rights` there.
    pub(crate) async fn permit(
        &self,
        caller: &Caller,
        place: &Place,
        rights: &[Right],
    ) -> Result<Permitted, Error> {
        let account = &caller.identity.account;
        check(account.permissions, rights)?;
        let others: String;
        let (name, id, quota, only, may) = if place.is_own(&account.name) {
            (&account.name, account.id, account.quota, None, account.permissions)
        } else {
            let owner = place.owner.as_deref().unwrap_or_default();
            let path = place.path.as_bytes();
            // Apart, so that one's own home has no room for it.
            let grant = Box::pin(self.0.auth.granted(caller.io(), &caller.identity, owner, path)).await;
            let grant = grant.map_err(|error| match error {
                plimsoll_auth::Error::NotFound | plimsoll_auth::Error::BadName(_) => Error::NOT_FOUND,
                other => other.into(),
            })?;
            let only = shared(&grant, &place.path, rights)?;
            let may = at_most(account.permissions, grant.permission_at(path));
            others = grant.owner.name;
            (&others, grant.owner.id, grant.owner.quota, only, may)
        };
        let home = self.0.store.home(caller.io(), id, name).await?;
        let quota = Quota { bytes: quota.bytes, files: quota.files };
        Ok(Permitted { home, path: place.path.clone(), quota, owner: id, only, may })
    }
}

/// Whether an account as such may do something.
fn check(permissions: Permissions, rights: &[Right]) -> Result<(), Error> {
    for right in rights {
        match right {
            Right::Read if !permissions.read => return Err(Error::NotPermitted("read files")),
            Right::Write if !permissions.write => return Err(Error::NotPermitted("write files")),
            Right::Delete if !permissions.delete => return Err(Error::NotPermitted("delete files")),
            _ => {}
        }
    }
    Ok(())
}

/// Whether what is granted suffices; where shares lie only below, the names that lead to them.
fn shared(grant: &Grant, path: &Path, rights: &[Right]) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let changes = rights.iter().any(|right| *right != Right::Read);
    match grant.permission_at(path.as_bytes()) {
        Some(Permission::Read) if changes => Err(Error::ReadOnlyShare),
        Some(_) => Ok(None),
        None if changes => Err(Error::NotShared),
        None => Ok(Some(names_below(grant, path))),
    }
}

/// What an account may do where a share lets it do `shared`.
fn at_most(permissions: Permissions, shared: Option<Permission>) -> Permissions {
    let changes = shared == Some(Permission::Write);
    let (write, delete) = (permissions.write && changes, permissions.delete && changes);
    Permissions { write, delete, share: false, ..permissions }
}

/// The first name, below `path`, of each share that lies there.
fn names_below(grant: &Grant, path: &Path) -> Vec<Vec<u8>> {
    let skip = if path.is_root() { 0 } else { path.as_bytes().len() + 1 };
    let rests = grant.shares.iter().filter_map(|share| share.path.get(skip..));
    let mut names: Vec<Vec<u8>> =
        rests.filter_map(|rest| rest.split(|byte| *byte == b'/').next()).map(<[u8]>::to_vec).collect();
    names.sort();
    names.dedup();
    names
}
