//! The trash of the caller's home: listed, restored, dropped.
//!
//! Removals are in [`crate::files`]. Invariants: only the owner of a home reaches its trash, also for what
//! others removed in a share. A restored path is not shared: its shares ended with its removal.

use plimsoll_store::{Path, Removed, TrashId, TrashInfo, TrashPage, TrashedEntry};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::locking::Effect;
use crate::operation::Operation;
use crate::permit::{AccessRight, Permitted};

impl Operations {
    /// Returns a page of the caller's trash, the newest entries first.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::trash`].
    pub async fn trash(&self, caller: &Caller, page: TrashPage) -> Result<Vec<TrashedEntry>, Error> {
        let audit = self.begin_at(caller, Operation::ListTrash, &"");
        audit.end(self.list_trash(caller, page).await)
    }

    async fn list_trash(&self, caller: &Caller, page: TrashPage) -> Result<Vec<TrashedEntry>, Error> {
        let own = self.own_home(caller, AccessRight::Read).await?;
        Ok(own.home.trash(caller.io(), page).await?)
    }

    /// Returns the state of the caller's trash. It is not an operation of its own, but a part of showing an
    /// entry.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::trash_info`].
    pub async fn trash_info(&self, caller: &Caller) -> Result<TrashInfo, Error> {
        let own = self.own_home(caller, AccessRight::Read).await?;
        Ok(own.home.trash_info(caller.io()).await?)
    }

    /// Restores an entry of the caller's trash to its path, or to `to`. Returns the path.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::restore`].
    pub async fn restore(&self, caller: &Caller, id: TrashId, to: Option<Path>) -> Result<Path, Error> {
        let audit = self.begin_at(caller, Operation::Restore, &id);
        let restored = self.take_back(caller, id, to).await;
        let audit = match &restored {
            Ok(path) => audit.to(&HomePath::own(path.clone())),
            Err(_) => audit,
        };
        audit.end(restored)
    }

    async fn take_back(&self, caller: &Caller, id: TrashId, to: Option<Path>) -> Result<Path, Error> {
        let own = self.own_home(caller, AccessRight::Write).await?;
        if let Some(to) = &to {
            let at = self.permit(caller, &HomePath::own(to.clone()), &[AccessRight::Write]).await?;
            self.check_locks(caller, &at, Effect::Creation).await?;
        }
        Ok(own.home.restore(caller.io(), id, to, own.quota).await?)
    }

    /// Deletes an entry of the caller's trash for good, or all entries.
    ///
    /// # Errors
    /// As [`plimsoll_store::Home::drop_trashed`].
    pub async fn drop_trashed(&self, caller: &Caller, id: Option<TrashId>) -> Result<Removed, Error> {
        let mut audit =
            self.begin_at(caller, Operation::DropTrash, &id.map(|id| id.to_string()).unwrap_or_default());
        let dropped = self.delete_trashed(caller, id).await;
        if let Ok(dropped) = &dropped {
            audit.moved(dropped.usage.bytes);
        }
        audit.end(dropped)
    }

    async fn delete_trashed(&self, caller: &Caller, id: Option<TrashId>) -> Result<Removed, Error> {
        let own = self.own_home(caller, AccessRight::Delete).await?;
        Ok(own.home.drop_trashed(caller.io(), id).await?)
    }

    async fn own_home(&self, caller: &Caller, right: AccessRight) -> Result<Permitted, Error> {
        if caller.identity.link().is_some() {
            // The trash is not below the path of a link.
            return Err(Error::NOT_FOUND);
        }
        self.permit(caller, &HomePath::own(Path::root()), &[right]).await
    }
}
