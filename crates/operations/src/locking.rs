//! Locks: the check at each change, and the operations of clients that lock.
//!
//! The auth tier stores them. Invariants: a change over any protocol is refused if a lock covers a changed
//! resource. The exception: the caller holds the lock and submits its token. If the locks of the home are
//! cached, the check makes no request. A commit is refused if a lock was added since its check. A visitor of
//! a public link holds no lock.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_auth::{Error as AuthError, HomeLocks, Lock, NewLock};
use plimsoll_io::{Io, Stat};
use plimsoll_store::{Condition, Error as StoreError, Expected, Path};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::operation::Operation;
use crate::permit::{AccessRight, Parents, Permitted};

/// The effect of a change on the resource at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It replaces contents or properties.
    Contents,
    /// It creates the resource, which changes its folder, too.
    Creation,
    /// It removes or replaces the resource with everything below it, which changes its folder, too.
    Tree,
}

/// The lock that a client requests.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// Whether others may take a shared lock, too.
    pub is_shared: bool,
    /// Whether everything below the path is to be locked, too.
    pub is_deep: bool,
    /// The element `owner` of the request (RFC 4918, section 14.17), as XML.
    pub about: String,
    /// How long it holds, unless it is refreshed.
    pub time: Duration,
}

/// The state of a resource that the conditions of a request may compare.
#[derive(Debug)]
pub struct LockState {
    /// The ids of the locks that cover the resource.
    pub locks: Vec<String>,
    /// Its metadata, if it exists.
    pub stat: Option<Stat>,
}

/// The locks that a change was last checked against.
pub(crate) struct CheckedLocks {
    /// The id of the home's account.
    owner: i64,
    path: Path,
    effect: Effect,
    known: Arc<HomeLocks>,
}

impl CheckedLocks {
    /// Returns the locks of the home, for the guard of a commit.
    pub(crate) fn known(&self) -> Arc<HomeLocks> {
        Arc::clone(&self.known)
    }

    /// Returns whether the caller submits the token of a lock of exactly this resource.
    pub(crate) fn has_own_lock(&self, caller: &Caller) -> bool {
        let mut held = self.known.held(caller.io().wall());
        held.any(|lock| lock.path == self.path.as_bytes() && is_submitted(caller, lock))
    }
}

impl Operations {
    /// Checks that no lock excludes a change.
    ///
    /// # Errors
    /// [`AuthError::Locked`]; [`AuthError::Busy`], [`AuthError::Unavailable`].
    pub(crate) async fn check_locks(
        &self,
        caller: &Caller,
        at: &Permitted,
        effect: Effect,
    ) -> Result<CheckedLocks, Error> {
        self.checked_locks(caller, (at.owner, &at.path), effect).await
    }

    /// Ends the locks of a resource that was removed, and of all below it: those that were known when the
    /// removal was checked. Another client may have created the resource again, and locked it. The removal
    /// has succeeded, so a failure is not its own: the locks end at their times.
    pub(crate) async fn end_checked_locks(&self, io: &Io, checked: &CheckedLocks) {
        let CheckedLocks { owner, path, known, .. } = checked;
        let within = known.held(io.wall()).filter(|lock| lock.is_within(path.as_bytes()));
        let ids: Vec<String> = within.map(|lock| lock.id.clone()).collect();
        if !ids.is_empty()
            && let Err(error) = self.0.auth.end_locks(io, *owner, ids).await
        {
            tracing::warn!(%error, "the locks of a removed file or folder were not ended");
        }
    }

    /// The same for an upload, which may create the file.
    pub(crate) async fn check_upload_locks(
        &self,
        caller: &Caller,
        at: &Permitted,
    ) -> Result<CheckedLocks, Error> {
        let place = (at.owner, &at.path);
        let creation = self.checked_locks(caller, place, Effect::Creation).await;
        match creation {
            // A lock of the folder alone leaves the contents of its files free.
            Err(Error::Auth(AuthError::Locked { .. }))
                if at.home.stat(caller.io(), &at.path).await.is_ok() =>
            {
                self.checked_locks(caller, place, Effect::Contents).await
            }
            checked => checked,
        }
    }

    /// Checks that no lock excludes the creation of the missing folders above a path.
    ///
    /// # Errors
    /// As [`Operations::check_locks`].
    pub(crate) async fn check_locks_of_parents(&self, caller: &Caller, at: &Permitted) -> Result<(), Error> {
        let folders = std::iter::successors(at.path.parent(), Path::parent);
        for folder in folders.take_while(|folder| !folder.is_top()) {
            if at.home.stat(caller.io(), &folder).await.is_ok() {
                break;
            }
            self.checked_locks(caller, (at.owner, &folder), Effect::Creation).await?;
        }
        Ok(())
    }

    async fn checked_locks(
        &self,
        caller: &Caller,
        (owner, path): (i64, &Path),
        effect: Effect,
    ) -> Result<CheckedLocks, Error> {
        let known = self.0.auth.home_locks(caller.io(), owner).await?;
        check(caller, &known, path, effect)?;
        Ok(CheckedLocks { owner, path: path.clone(), effect, known })
    }

    /// Checks again that no lock excludes an upload, if locks have changed.
    pub(crate) async fn check_locks_again(
        &self,
        caller: &Caller,
        checked: &mut CheckedLocks,
    ) -> Result<(), Error> {
        if self
            .0
            .auth
            .try_home_locks(caller.io(), checked.owner)
            .is_some_and(|now| Arc::ptr_eq(&now, &checked.known))
        {
            return Ok(());
        }
        let CheckedLocks { owner, path, effect, .. } = checked;
        *checked = self.checked_locks(caller, (*owner, path), *effect).await?;
        Ok(())
    }

    /// Checks that the caller may change a resource, and that no lock excludes it.
    ///
    /// # Errors
    /// [`AuthError::Locked`], and those of the permission check.
    pub async fn refuse_locked(&self, caller: &Caller, place: &HomePath) -> Result<(), Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        self.check_locks(caller, &at, Effect::Contents).await.map(drop)
    }

    /// Takes a lock. If there is nothing at the place, an empty file is created. Returns the lock, and
    /// whether a file was created. "A successful lock request to an unmapped URL MUST result in the creation
    /// of a locked (non-collection) resource with empty content" (RFC 4918, section 7.3).
    ///
    /// # Errors
    /// As [`plimsoll_auth::Auth::lock`]; the reason why the file could not be created.
    pub async fn lock(
        &self,
        caller: &Caller,
        place: &HomePath,
        request: LockRequest,
    ) -> Result<(Lock, bool), Error> {
        let audit = self.begin_at(caller, Operation::Lock, place);
        audit.end(self.take(caller, place, request).await)
    }

    async fn take(
        &self,
        caller: &Caller,
        place: &HomePath,
        request: LockRequest,
    ) -> Result<(Lock, bool), Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        exists(caller, &at).await?;
        let LockRequest { is_shared, is_deep, about, time } = request;
        let (path, holder) = (at.path.as_bytes(), caller.identity.account.id);
        let new = NewLock { owner: at.owner, holder, path: path.to_vec(), is_shared, is_deep, about, time };
        let lock = self.0.auth.lock(caller.io(), new).await?;
        match self.create_if_missing(caller, (place, &at), &lock).await {
            Ok(is_created) => Ok((lock, is_created)),
            Err(error) => {
                // If this fails, too, the lock ends at its time.
                let ended = self.0.auth.unlock(caller.io(), (at.owner, holder), (path, &lock.id)).await;
                ended.unwrap_or_else(|error| tracing::warn!(%error, "a lock of no file was not ended"));
                Err(error)
            }
        }
    }

    /// Creates an empty file at the path of a lock, if there is nothing. Call it when the lock is held:
    /// before, another client may have removed the file. Returns whether it was created.
    async fn create_if_missing(
        &self,
        caller: &Caller,
        (place, at): (&HomePath, &Permitted),
        lock: &Lock,
    ) -> Result<bool, Error> {
        if exists(caller, at).await? {
            return Ok(false);
        }
        match self.create_locked(caller, place, lock).await {
            // Another client has created it meanwhile.
            Err(Error::Store(StoreError::Precondition | StoreError::AlreadyExists)) => Ok(false),
            created => created.map(|()| true),
        }
    }

    async fn create_locked(&self, caller: &Caller, place: &HomePath, lock: &Lock) -> Result<(), Error> {
        let ids = caller.lock_ids.iter().flat_map(|ids| ids.iter().cloned()).chain([lock.id.clone()]);
        let caller = caller.clone().with_locks(ids.collect());
        let (condition, expected) =
            (Condition::none().and_new(), Expected { bytes: Some(0), digests: Vec::new() });
        let upload = self.upload(&caller, (place, Parents::Needed), condition, expected).await?;
        upload.commit().await.map(drop)
    }

    /// Extends a lock of the caller on the resource at a place.
    ///
    /// # Errors
    /// [`AuthError::NotFound`] if it holds none of this id there.
    pub async fn refresh_lock(
        &self,
        caller: &Caller,
        place: &HomePath,
        id: &str,
        time: Duration,
    ) -> Result<Lock, Error> {
        let audit = self.begin_at(caller, Operation::Lock, place);
        audit.end(self.extend(caller, place, id, time).await)
    }

    async fn extend(
        &self,
        caller: &Caller,
        place: &HomePath,
        id: &str,
        time: Duration,
    ) -> Result<Lock, Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        let (by, of) = ((at.owner, caller.identity.account.id), (at.path.as_bytes(), id));
        Ok(self.0.auth.refresh_lock(caller.io(), by, of, time).await?)
    }

    /// Ends a lock on the resource at a place: one of the caller, or any in its own home.
    ///
    /// # Errors
    /// [`AuthError::NotFound`] if there is none of this id there. [`AuthError::LockOfAnother`].
    pub async fn unlock(&self, caller: &Caller, place: &HomePath, id: &str) -> Result<(), Error> {
        let audit = self.begin_at(caller, Operation::Unlock, place);
        audit.end(self.end_lock(caller, place, id).await)
    }

    async fn end_lock(&self, caller: &Caller, place: &HomePath, id: &str) -> Result<(), Error> {
        let at = self.permit(caller, place, &[AccessRight::Write]).await?;
        let (by, of) = ((at.owner, caller.identity.account.id), (at.path.as_bytes(), id));
        Ok(self.0.auth.unlock(caller.io(), by, of).await?)
    }

    /// Returns the state of a resource, for the conditions of a request. A place that the caller may not know
    /// about has none.
    ///
    /// # Errors
    /// [`AuthError::Busy`], [`AuthError::Unavailable`], and those of the store.
    pub async fn lock_state(&self, caller: &Caller, place: &HomePath) -> Result<LockState, Error> {
        // An account that writes without reading learns of its locks, and of no entity tag.
        let (may_read, at) = match self.permit(caller, place, &[AccessRight::Read]).await {
            Err(Error::NotPermitted(_)) => (false, self.permit(caller, place, &[AccessRight::Write]).await),
            at => (true, at),
        };
        let at = match at {
            Ok(at) if at.only.is_none() => at,
            Ok(_)
            | Err(
                Error::Store(StoreError::NotFound)
                | Error::NotPermitted(_)
                | Error::ReadOnlyShare
                | Error::NotShared,
            ) => {
                return Ok(LockState { locks: Vec::new(), stat: None });
            }
            Err(error) => return Err(error),
        };
        let known = self.0.auth.home_locks(caller.io(), at.owner).await?;
        let covering = known.held(caller.io().wall()).filter(|lock| lock.covers(at.path.as_bytes()));
        let locks = covering.map(|lock| lock.id.clone()).collect();
        let stat = if may_read { at.home.stat(caller.io(), &at.path).await.ok() } else { None };
        Ok(LockState { locks, stat })
    }

    /// Returns the locks of the home of a place, for `lockdiscovery`. `None` if the server has no locks, and
    /// above a share, where locks are not the caller's concern.
    ///
    /// # Errors
    /// As [`Operations::look`].
    pub async fn locks_at(&self, caller: &Caller, place: &HomePath) -> Result<Option<Arc<HomeLocks>>, Error> {
        let at = self.permit(caller, place, &[AccessRight::Read]).await?;
        if at.only.is_some() {
            return Ok(None);
        }
        let known = self.0.auth.home_locks(caller.io(), at.owner).await?;
        Ok(Some(known).filter(|known| known.are_available()))
    }
}

/// Returns whether there is something at a path.
async fn exists(caller: &Caller, at: &Permitted) -> Result<bool, Error> {
    match at.home.stat(caller.io(), &at.path).await {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Checks that no lock excludes a change at a path.
fn check(caller: &Caller, known: &HomeLocks, path: &Path, effect: Effect) -> Result<(), Error> {
    if known.is_empty() {
        return Ok(());
    }
    let held: Vec<&Lock> = known.held(caller.io().wall()).collect();
    let submitted: Vec<&Lock> = held.iter().copied().filter(|lock| is_submitted(caller, lock)).collect();
    // Of several shared locks, one suffices.
    let is_free = |path: &[u8]| submitted.iter().any(|lock| lock.covers(path));
    let path = path.as_bytes();
    let folder = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let folder = (effect != Effect::Contents && !path.is_empty()).then(|| &path[..folder]);
    // The resources that the change touches, unless the caller submits the token of a lock there.
    let touched: Vec<&[u8]> =
        [Some(path), folder].into_iter().flatten().filter(|path| !is_free(path)).collect();
    let excludes = |lock: &Lock| {
        touched.iter().any(|path| lock.covers(path))
            || (effect == Effect::Tree && lock.is_within(path) && !is_free(&lock.path))
    };
    match held.into_iter().find(|lock| excludes(lock)) {
        None => Ok(()),
        Some(lock) => {
            let (path, holder) = (lock.path.clone(), lock.holder_name.clone());
            Err(AuthError::Locked { path, holder }.into())
        }
    }
}

/// Whether the caller holds a lock and submits its token.
fn is_submitted(caller: &Caller, lock: &Lock) -> bool {
    let is_own = lock.holder == caller.identity.account.id && caller.identity.link().is_none();
    is_own && caller.submitted_locks().contains(&lock.id)
}
