//! Files and folders: read, create, remove, move and copy.
//!
//! Uploads are in [`crate::uploads`]. Invariants: the shares of a path end before the path is removed.

use std::time::Duration;

use plimsoll_auth::Permissions;
use plimsoll_io::Existing;
use plimsoll_store::backend::Removal;
use plimsoll_store::{
    Condition, Copied, Depth, Disposal, Error as StoreError, Location, MoveResult, RemovalKind, Removed,
};

use crate::Operations;
use crate::audit::AuditEntry;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::locking::Effect;
use crate::operation::Operation;
use crate::permit::{AccessRight, Parents, Permitted};
use crate::sharing::is_there;
use crate::transfer_permit::Permit;

/// A file or folder that the caller may read.
pub struct ReadAccess {
    /// The location, as of the permission check.
    pub location: Location,
    /// The visible entries of a folder.
    pub shown: VisibleEntries,
    /// The caller's permissions there.
    pub may: Permissions,
}

impl ReadAccess {
    fn new(permitted: Permitted) -> ReadAccess {
        let shown = permitted.only.map_or(VisibleEntries::All, VisibleEntries::Only);
        ReadAccess { location: permitted.home.location(permitted.path), shown, may: permitted.may }
    }
}

/// The visible entries of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibleEntries {
    /// All entries.
    All,
    /// The names that lead to shares. Files cannot be read here.
    Only(Vec<Vec<u8>>),
}

impl Operations {
    /// Permits the reading of a place: a download, or a listing of a folder. The sender of the contents ends
    /// the audit entry.
    ///
    /// # Errors
    /// [`Error::NOT_FOUND`] if the caller may not know about the place. The reader finds out whether it
    /// exists.
    pub async fn read(
        &self,
        caller: &Caller,
        place: &HomePath,
        operation: Operation,
    ) -> Result<(ReadAccess, AuditEntry), Error> {
        self.read_audited(caller, place, self.begin_at(caller, operation, place)).await
    }

    /// As [`Operations::read`], with an audit entry that [`Operations::begin_download`] started.
    ///
    /// # Errors
    /// As [`Operations::read`].
    pub async fn read_audited(
        &self,
        caller: &Caller,
        place: &HomePath,
        mut audit: AuditEntry,
    ) -> Result<(ReadAccess, AuditEntry), Error> {
        match self.permit(caller, place, &[AccessRight::Read]).await {
            Ok(permitted) => {
                audit.set_permit(permitted.transfer_permit(self, caller, place, AccessRight::Read));
                Ok((ReadAccess::new(permitted), audit))
            }
            Err(error) => audit.end(Err(error)),
        }
    }

    /// Returns the location of one of the caller's own files without blocking, if their home is already
    /// open. This neither logs nor changes anything: [`Operations::begin_download`] starts the entry once
    /// the file is found.
    pub fn try_locate(&self, caller: &Caller, place: &HomePath) -> Option<Location> {
        Some(self.try_own_home(caller, place)?.location(place.path.clone()))
    }

    /// Starts the audit entry of a download, which [`Operations::try_locate`] or [`Operations::read_audited`]
    /// permits. The sender of the contents ends it.
    pub fn begin_download(&self, caller: &Caller, place: &HomePath) -> AuditEntry {
        self.begin_at(caller, Operation::Download, place)
    }

    /// Returns the right of such a download, to be checked again if the download takes long.
    pub fn permit_to_read_own(&self, caller: &Caller, place: &HomePath) -> Permit {
        Permit::to_read_own(self, caller, place)
    }

    /// As [`Operations::read`], for a lookup that is not an operation of its own.
    ///
    /// # Errors
    /// As [`Operations::read`].
    pub async fn look(&self, caller: &Caller, place: &HomePath) -> Result<ReadAccess, Error> {
        Ok(ReadAccess::new(self.permit(caller, place, &[AccessRight::Read]).await?))
    }

    /// Creates a folder; the folders that it is in as `parents` says.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::make_folder`].
    pub async fn make_folder(
        &self,
        caller: &Caller,
        place: &HomePath,
        parents: Parents,
    ) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::MakeFolder, place);
        audit.end(self.make(caller, place, parents).await)
    }

    async fn make(&self, caller: &Caller, place: &HomePath, parents: Parents) -> Result<(), Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        self.check_locks(caller, &at, Effect::Creation).await?;
        let made = at.home.make_folder(caller.io(), at.path.clone(), at.quota, false).await;
        if !parents.are_made(&at) || !matches!(made, Err(StoreError::NoFolder)) {
            return Ok(made?);
        }
        self.check_locks_of_parents(caller, &at).await?;
        Ok(at.home.make_folder(caller.io(), at.path, at.quota, true).await?)
    }

    /// Removes a file, or a folder and its contents, to the trash or for good. In a share, the trash is that
    /// of the home's owner, and only the owner removes for good.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::remove`].
    pub async fn remove(
        &self,
        caller: &Caller,
        place: &HomePath,
        condition: Condition,
        disposal: Disposal,
    ) -> Result<Removed, Error> {
        self.remove_what(caller, place, (RemovalKind::Any, disposal), condition).await
    }

    /// Removes a file to the trash. Fails on a folder.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::remove`].
    pub async fn remove_file(&self, caller: &Caller, place: &HomePath) -> Result<Removed, Error> {
        self.remove_what(caller, place, (RemovalKind::File, Disposal::Trash), Condition::none()).await
    }

    /// Removes an empty folder to the trash.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::remove`].
    pub async fn remove_folder(&self, caller: &Caller, place: &HomePath) -> Result<Removed, Error> {
        self.remove_what(caller, place, (RemovalKind::EmptyFolder, Disposal::Trash), Condition::none()).await
    }

    async fn remove_what(
        &self,
        caller: &Caller,
        place: &HomePath,
        removal: (RemovalKind, Disposal),
        condition: Condition,
    ) -> Result<Removed, Error> {
        let mut audit = self.begin_at(caller, Operation::Delete, place);
        let removed = self.take_away(caller, place, removal, condition).await;
        if let Ok(removed) = &removed {
            audit.moved(removed.usage.bytes);
        }
        audit.end(removed)
    }

    async fn take_away(
        &self,
        caller: &Caller,
        place: &HomePath,
        (kind, disposal): (RemovalKind, Disposal),
        condition: Condition,
    ) -> Result<Removed, Error> {
        let at = self.permit(caller, place, &[AccessRight::Delete]).await?;
        at.check_inside()?;
        // Only the owner deletes for good: the owner could not restore the entry.
        let disposal = match disposal {
            Disposal::Deleted if at.quota.keeps_trash => {
                return Err(Error::NotPermitted("delete files of others for good"));
            }
            Disposal::Trash if at.quota.keeps_trash => Disposal::TrashOfAnother,
            disposal => disposal,
        };
        let locks = self.check_locks(caller, &at, Effect::Tree).await?;
        let io = caller.io();
        // A removal that would fail must fail before the shares end.
        at.home.check_removal(io, at.path.clone(), kind, condition.clone()).await?;
        self.end_shares(io, &at).await?;
        let removal = Removal { path: at.path.clone(), what: kind, condition, disposal };
        let removed = at.home.remove_by(io, removal).await?;
        // Also end the shares that were granted meanwhile.
        self.end_shares(io, &at).await?;
        self.end_checked_locks(io, &locks).await;
        Ok(removed)
    }

    /// Sets the modification time of a file or folder: `modified` after 1970.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::set_modified`].
    pub async fn set_modified(
        &self,
        caller: &Caller,
        place: &HomePath,
        modified: Duration,
    ) -> Result<Duration, Error> {
        let audit = self.begin_at(caller, Operation::SetTime, place);
        audit.end(self.set_time(caller, place, modified).await)
    }

    async fn set_time(
        &self,
        caller: &Caller,
        place: &HomePath,
        modified: Duration,
    ) -> Result<Duration, Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        self.check_locks(caller, &at, Effect::Contents).await?;
        Ok(at.home.set_modified(caller.io(), at.path, modified).await?.modified)
    }

    /// Renames `from` to `to`.
    ///
    /// # Errors
    /// As [`plimsoll_store::End::rename`].
    pub async fn rename(
        &self,
        caller: &Caller,
        from: &HomePath,
        to: &HomePath,
        existing: Existing,
    ) -> Result<MoveResult, Error> {
        let audit = self.begin_at(caller, Operation::Move, from).to(to);
        audit.end(self.give_name(caller, from, to, existing).await)
    }

    async fn give_name(
        &self,
        caller: &Caller,
        from: &HomePath,
        to: &HomePath,
        existing: Existing,
    ) -> Result<MoveResult, Error> {
        let io = caller.io();
        let source = self.permit(caller, from, &[AccessRight::Read, AccessRight::Delete]).await?;
        let target = self.permit(caller, to, &[AccessRight::Write]).await?;
        source.check_inside()?;
        target.check_inside()?;
        is_there(io, &source).await?;
        let locks = self.check_locks(caller, &source, Effect::Tree).await?;
        self.check_locks(caller, &target, Effect::Tree).await?;
        // A rename that would fail must fail before any share ends, if the reason is known without counting.
        source.end().check_rename(io, &target.end(), existing).await?;
        self.end_shares_of_replaced(caller, &target, existing).await?;
        self.end_shares(io, &source).await?;
        let moved = source.end().rename(io, target.end(), existing).await?;
        // Also end the shares that were granted meanwhile.
        self.end_shares(io, &source).await?;
        // A lock of the destination stays: it protects what is there now.
        self.end_checked_locks(io, &locks).await;
        Ok(moved)
    }

    /// Copies `from` to `to`.
    ///
    /// # Errors
    /// As [`plimsoll_store::End::copy`].
    pub async fn copy(
        &self,
        caller: &Caller,
        from: &HomePath,
        to: &HomePath,
        existing: Existing,
        depth: Depth,
    ) -> Result<Copied, Error> {
        let mut audit = self.begin_at(caller, Operation::Copy, from).to(to);
        let copied = self.duplicate(caller, from, to, existing, depth).await;
        if let Ok(copied) = &copied {
            audit.moved(copied.usage.bytes);
        }
        audit.end(copied)
    }

    async fn duplicate(
        &self,
        caller: &Caller,
        from: &HomePath,
        to: &HomePath,
        existing: Existing,
        depth: Depth,
    ) -> Result<Copied, Error> {
        let io = caller.io();
        let source = self.permit(caller, from, &[AccessRight::Read]).await?;
        if source.only.is_some() {
            return Err(Error::NotShared);
        }
        let target = self.permit(caller, to, &[AccessRight::Write]).await?;
        target.check_inside()?;
        self.check_locks(caller, &target, Effect::Tree).await?;
        let asked = existing;
        // The store decides under the home's lock, so this covers files that another caller creates
        // meanwhile.
        let existing = if caller.identity.account.permissions.delete { asked } else { Existing::Kept };
        let refused = |error| match error {
            StoreError::AlreadyExists if existing != asked => Error::NotPermitted("replace files"),
            error => error.into(),
        };
        // A copy that would fail must fail before any share ends, if the reason is known without counting.
        source.end().check_copy(io, &target.end(), existing).await.map_err(refused)?;
        self.end_shares_of_replaced(caller, &target, existing).await?;
        source.end().copy(io, target.end(), existing, depth).await.map_err(refused)
    }

    /// Ends the shares of a replaced destination, as for any DELETE. "the server MUST perform a DELETE
    /// with "Depth: infinity" on the destination resource" (RFC 4918, section 9.9.3).
    async fn end_shares_of_replaced(
        &self,
        caller: &Caller,
        target: &Permitted,
        existing: Existing,
    ) -> Result<(), Error> {
        if existing == Existing::Kept {
            // The store refuses to replace anything, so no share ends.
            return Ok(());
        }
        self.end_shares(caller.io(), target).await
    }
}
