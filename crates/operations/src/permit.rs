//! The permission check: the caller's rights at a place, and the account that is charged for the bytes.
//!
//! There is no other permission check. Invariants: each operation repeats it, and so does a transfer in
//! progress ([`crate::transfer_permit`]). A place that the caller may not know about is "not found". In a
//! share or a public link, no symbolic link leads out of the shared folder.

use plimsoll_auth::{Grant, GrantBasis, Link, Permission, Permissions};
use plimsoll_store::{CommitGuard, End, Home, Path, Quota};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::locking::CheckedLocks;
use crate::transfer_permit::Permit;

/// The kind of access to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessRight {
    /// List and read.
    Read,
    /// Add and replace.
    Write,
    /// Remove.
    Delete,
}

/// What happens if the folder of a new file or folder does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// The operation fails.
    Needed,
    /// The folder is created, with those that it is in.
    Made,
    /// As the caller's account is permitted.
    AsPermitted,
}

impl Parents {
    /// Whether missing folders are created at `at`.
    pub(crate) fn are_made(self, at: &Permitted) -> bool {
        self == Parents::Made || (self == Parents::AsPermitted && at.may.parents)
    }
}

/// A place to which the caller has the requested rights.
pub(crate) struct Permitted {
    pub(crate) home: Home,
    /// The path in that home. In a share, it is resolved beneath the shared folder.
    pub(crate) path: Path,
    pub(crate) quota: Quota,
    /// The id of the home's account.
    pub(crate) owner: i64,
    /// In a folder above shares: the names that lead to them. Nothing else is visible there.
    pub(crate) only: Option<Vec<Vec<u8>>>,
    /// Whether the caller submits the token of a lock of exactly this path. Known in uploads only.
    pub(crate) is_locked_by_caller: bool,
    /// All permissions of the caller here, also those that the operation does not need.
    pub(crate) may: Permissions,
    /// The basis of the right, if it comes from a share.
    grant: Option<GrantBasis>,
}

impl Permitted {
    pub(crate) fn end(&self) -> End {
        End { home: self.home.clone(), path: self.path.clone(), quota: self.quota }
    }

    /// Whether this is the shared file or folder itself, and not a path in it.
    fn is_shared_itself(&self) -> bool {
        self.grant.is_some() && self.path.is_top()
    }

    /// Rejects an operation that would remove or replace the shared file or folder itself, which only its
    /// owner may.
    pub(crate) fn check_inside(&self) -> Result<(), Error> {
        if self.is_shared_itself() { Err(Error::SharedItself) } else { Ok(()) }
    }

    /// Returns the same right as a [`Permit`], to be checked again while a transfer uses it.
    pub(crate) fn transfer_permit(
        &self,
        operations: &Operations,
        caller: &Caller,
        place: &HomePath,
        right: AccessRight,
    ) -> Permit {
        let delete = caller.identity.account.permissions.delete;
        let rights = match right {
            AccessRight::Read => READ,
            // The upload was started with the right to replace files.
            AccessRight::Write | AccessRight::Delete if delete => WRITE_AND_DELETE,
            AccessRight::Write | AccessRight::Delete => WRITE,
        };
        let shared =
            self.grant.clone().map(|basis| Shared { basis, owner: self.owner, path: self.path.clone() });
        Permit::new(operations, caller, place, rights, shared)
    }
}

const READ: &[AccessRight] = &[AccessRight::Read];
const WRITE: &[AccessRight] = &[AccessRight::Write];
const WRITE_AND_DELETE: &[AccessRight] = &[AccessRight::Write, AccessRight::Delete];

/// The basis of a right to another account's files.
pub(crate) struct Shared {
    pub(crate) basis: GrantBasis,
    pub(crate) owner: i64,
    /// The path, resolved beneath the shared folder.
    pub(crate) path: Path,
}

/// A caller's grant in another account's home.
struct Granted {
    grant: Grant,
    shared: Shared,
    only: Option<Vec<Vec<u8>>>,
}

impl Operations {
    /// Returns the caller's own home without blocking, if the caller may read there and the home is
    /// already open.
    pub(crate) fn try_own_home(&self, caller: &Caller, place: &HomePath) -> Option<Home> {
        let account = &caller.identity.account;
        let is_own = place.is_own(&account.name) && caller.identity.link().is_none();
        let may = is_own && check(account.permissions, READ).is_ok();
        may.then(|| self.0.store.try_home(account.id, &account.name))?
    }

    /// Returns the place, if the caller has all of `rights` there.
    pub(crate) async fn permit(
        &self,
        caller: &Caller,
        place: &HomePath,
        rights: &[AccessRight],
    ) -> Result<Permitted, Error> {
        let account = &caller.identity.account;
        check(account.permissions, rights)?;
        if let Some(link) = caller.identity.link() {
            check_within_link(link, place, &account.name)?;
        }
        if place.is_own(&account.name) {
            let home = self.0.store.home(caller.io(), account.id, &account.name).await?;
            // A visitor of a link is not the owner either.
            let keeps_trash = caller.identity.link().is_some();
            let quota = Quota { bytes: account.quota.bytes, files: account.quota.files, keeps_trash };
            let (path, may) = (path_of(caller, place)?, account.permissions);
            let (owner, is_locked_by_caller) = (account.id, false);
            return Ok(Permitted {
                home,
                path,
                quota,
                owner,
                only: None,
                is_locked_by_caller,
                may,
                grant: None,
            });
        }
        // Boxed: the common case, the caller's own home, then has no room for it in its future.
        let Granted { grant, shared, only } = Box::pin(self.granted(caller, place, rights)).await?;
        let may = at_most(account.permissions, grant.permission_at(place.path.as_bytes()));
        let owner = grant.owner;
        let home = self.0.store.home(caller.io(), owner.id, &owner.name).await?;
        let quota = Quota { bytes: owner.quota.bytes, files: owner.quota.files, keeps_trash: true };
        let Shared { basis, path, .. } = shared;
        let (owner, is_locked_by_caller) = (owner.id, false);
        Ok(Permitted { home, path, quota, owner, only, is_locked_by_caller, may, grant: Some(basis) })
    }

    async fn granted(
        &self,
        caller: &Caller,
        place: &HomePath,
        rights: &[AccessRight],
    ) -> Result<Granted, Error> {
        let owner = place.owner.as_deref().unwrap_or_default();
        let path = place.path.as_bytes();
        let granted = self.0.auth.granted_with_basis(caller.io(), &caller.identity, owner, path).await;
        let (grant, basis) = granted.map_err(|error| match error {
            plimsoll_auth::Error::NotFound | plimsoll_auth::Error::BadName(_) => Error::NOT_FOUND,
            other => other.into(),
        })?;
        let only = shared(&grant, &place.path, rights)?;
        let path = place.path.clone().beneath(&top_of(&grant, &place.path, rights));
        let shared = Shared { basis, owner: grant.owner.id, path };
        Ok(Granted { grant, shared, only })
    }

    /// Checks that the caller still has all of `rights`. Reads only the accounts and shares that may have
    /// changed.
    pub(crate) async fn check_again(
        &self,
        caller: &mut Caller,
        place: &HomePath,
        rights: &[AccessRight],
        shared: Option<&mut Shared>,
    ) -> Result<(), Error> {
        let (auth, io) = (&self.0.auth, caller.visitor.io.clone());
        if !auth.holds(&io, &caller.identity) {
            caller.identity = auth.renew(&io, &caller.identity).await?;
        }
        check(caller.identity.account.permissions, rights)?;
        let Some(shared) = shared else { return Ok(()) };
        if auth.grant_holds(&io, &shared.basis) {
            return Ok(());
        }
        match self.granted(caller, place, rights).await {
            Ok(now)
                if now.shared.owner == shared.owner
                    && now.shared.path.is_bounded_no_closer_than(&shared.path) =>
            {
                shared.basis = now.shared.basis;
                Ok(())
            }
            Ok(_) | Err(Error::Store(_) | Error::ReadOnlyShare | Error::NotShared) => Err(Error::ShareEnded),
            Err(error) => Err(error),
        }
    }

    /// Returns a guard that fails once a change is known that could end the right. It does not block.
    pub(crate) fn guard(
        &self,
        caller: &Caller,
        shared: Option<&Shared>,
        locks: Option<&CheckedLocks>,
    ) -> CommitGuard {
        let (auth, identity) = (self.0.auth.clone(), caller.identity.clone());
        let (basis, locks) = (shared.map(|shared| shared.basis.clone()), locks.map(CheckedLocks::known));
        CommitGuard::new(move || {
            auth.is_unchanged(&identity, basis.as_ref())
                && locks.as_ref().is_none_or(|known| auth.has_no_new_lock(known))
        })
    }
}

/// Checks that a visitor of a link stays in its path.
fn check_within_link(link: &Link, place: &HomePath, owner: &str) -> Result<(), Error> {
    let top = Path::parse(&link.path).map_err(|_| Error::NOT_FOUND)?;
    let is_within = place.is_own(owner) && place.path.is_within(&top);
    if is_within { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Returns the path of a place in the caller's own home. For a visitor of a link, no symbolic link leads out
/// of the path of the link.
fn path_of(caller: &Caller, place: &HomePath) -> Result<Path, Error> {
    let Some(link) = caller.identity.link() else { return Ok(place.path.clone()) };
    let top = Path::parse(&link.path).map_err(|_| Error::NOT_FOUND)?;
    Ok(place.path.clone().beneath(&top))
}

/// The widest share that covers the path and permits the operation: no link may lead out of it.
fn top_of(grant: &Grant, path: &Path, rights: &[AccessRight]) -> Path {
    let changes = rights.iter().any(|right| *right != AccessRight::Read);
    let suffice = grant
        .shares
        .iter()
        .filter(|share| share.covers(path.as_bytes()) && (!changes || share.permission == Permission::Write));
    let widest = suffice.map(|share| &share.path).min_by_key(|path| path.len());
    // Above all shares, only names that lead to them are shown: no symbolic link is followed there.
    widest.and_then(|path| Path::parse(path).ok()).unwrap_or_else(Path::root)
}

/// Checks the permissions of the account itself.
fn check(permissions: Permissions, rights: &[AccessRight]) -> Result<(), Error> {
    for right in rights {
        match right {
            AccessRight::Read if !permissions.read => return Err(Error::NotPermitted("read files")),
            AccessRight::Write if !permissions.write => return Err(Error::NotPermitted("write files")),
            AccessRight::Delete if !permissions.delete => return Err(Error::NotPermitted("delete files")),
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the grant suffices. In a folder above shares, returns the names that lead to them.
fn shared(grant: &Grant, path: &Path, rights: &[AccessRight]) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let changes = rights.iter().any(|right| *right != AccessRight::Read);
    match grant.permission_at(path.as_bytes()) {
        Some(Permission::Read) if changes => Err(Error::ReadOnlyShare),
        Some(_) => Ok(None),
        None if changes => Err(Error::NotShared),
        None => Ok(Some(names_below(grant, path))),
    }
}

/// Returns the account's permissions where a share permits `shared`.
fn at_most(permissions: Permissions, shared: Option<Permission>) -> Permissions {
    let changes = shared == Some(Permission::Write);
    let (write, delete) = (permissions.write && changes, permissions.delete && changes);
    let parents = permissions.parents && changes;
    Permissions { read: permissions.read, write, delete, parents, ..Permissions::NONE }
}

/// Returns the first path component below `path` of each share that lies there.
fn names_below(grant: &Grant, path: &Path) -> Vec<Vec<u8>> {
    let skip = if path.is_root() { 0 } else { path.as_bytes().len() + 1 };
    let rests = grant.shares.iter().filter_map(|share| share.path.get(skip..));
    let mut names: Vec<Vec<u8>> =
        rests.filter_map(|rest| rest.split(|byte| *byte == b'/').next()).map(<[u8]>::to_vec).collect();
    names.sort();
    names.dedup();
    names
}
