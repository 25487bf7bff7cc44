//! The right that a transfer uses, checked periodically while the transfer lasts.
//!
//! The check itself is in [`crate::permit`]. Invariants: a transfer ends soon after its right does,
//! even if its client neither sends nor receives a byte. Nothing is committed under a right that has
//! ended. A transfer that never waits pays only for a comparison of two times.
//!
//! Design: docs/design/rights.md.

use std::pin::pin;

use plimsoll_auth::{Error as AuthError, FileVersion};
use plimsoll_io::{Deadline, Either, Instant, select};
use plimsoll_store::CommitGuard;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::home_path::HomePath;
use crate::limits::{RIGHT_CHECK_TIME, RIGHT_UNVERIFIED_TIME};
use crate::locking::CheckedLocks;
use crate::permit::{AccessRight, Shared};

/// A right in use by a transfer.
pub struct Permit {
    operations: Operations,
    caller: Caller,
    place: HomePath,
    rights: &'static [AccessRight],
    shared: Option<Shared>,
    /// The locks, for an upload.
    locks: Option<CheckedLocks>,
    /// The time of the last successful check.
    verified: Instant,
    /// The time of the next check.
    due: Instant,
    deadline: Deadline,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({:?} at {})", self.rights, self.place)
    }
}

impl Permit {
    /// Creates a permit for a right that was just verified.
    pub(crate) fn new(
        operations: &Operations,
        caller: &Caller,
        place: &HomePath,
        rights: &'static [AccessRight],
        shared: Option<Shared>,
    ) -> Permit {
        let now = caller.io().now();
        Permit {
            operations: operations.clone(),
            caller: caller.clone(),
            place: place.clone(),
            rights,
            shared,
            locks: None,
            verified: now,
            due: now + RIGHT_CHECK_TIME,
            deadline: caller.io().deadline(),
        }
    }

    /// Adds the locks that an upload was checked against.
    pub(crate) fn with_locks(self, locks: CheckedLocks) -> Permit {
        Permit { locks: Some(locks), ..self }
    }

    /// The right to read the caller's own files, just verified.
    pub(crate) fn to_read_own(operations: &Operations, caller: &Caller, place: &HomePath) -> Permit {
        Permit::new(operations, caller, place, &[AccessRight::Read], None)
    }

    /// Runs `work` while the right holds. Checks the right every [`RIGHT_CHECK_TIME`], counted over all
    /// uses of the permit.
    ///
    /// # Errors
    /// The reason why the right has ended; [`AuthError::Unavailable`] or [`AuthError::Busy`] if the right
    /// could not be verified for [`RIGHT_UNVERIFIED_TIME`].
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut work = pin!(work);
        loop {
            self.deadline.set(self.due);
            if let Ok(done) = self.deadline.within(work.as_mut()).await {
                return Ok(done);
            }
            // Boxed: rare, and inlining it would enlarge every transfer's future.
            match select(work.as_mut(), Box::pin(self.check())).await {
                Either::Left(done) => return Ok(done),
                Either::Right(checked) => self.allow_unverified(checked)?,
            }
        }
    }

    /// Checks the right if [`RIGHT_CHECK_TIME`] has passed since the last check. For loops of short work,
    /// in which [`Permit::during`] alone would never check, because it checks only while it waits.
    ///
    /// # Errors
    /// As [`Permit::during`].
    pub(crate) async fn check_if_due(&mut self) -> Result<(), Error> {
        if self.caller.io().now() < self.due {
            return Ok(());
        }
        let checked = Box::pin(self.check()).await;
        self.allow_unverified(checked)
    }

    /// Checks the right now.
    ///
    /// # Errors
    /// The reason why the right has ended, or why it could not be verified.
    pub async fn check(&mut self) -> Result<(), Error> {
        let Permit { operations, caller, place, rights, shared, locks, .. } = self;
        let mut checked = operations.check_again(caller, place, rights, shared.as_mut()).await;
        if let (Ok(()), Some(locks)) = (&checked, locks) {
            checked = operations.check_locks_again(caller, locks).await;
        }
        let now = self.caller.io().now();
        self.due = now + RIGHT_CHECK_TIME;
        if checked.is_ok() {
            self.verified = now;
        }
        checked
    }

    /// Counts an upload of so many bytes, if the caller is a visitor of a public link.
    pub(crate) async fn count_link_upload(&self, bytes: u64) -> Result<(), Error> {
        let Permit { operations, caller, place, .. } = self;
        let Some(link) = caller.identity.link() else { return Ok(()) };
        let file = FileVersion { path: place.path.as_bytes().to_vec(), etag: String::new() };
        operations.0.auth.use_link(caller.io(), &link.id, (file, bytes), None).await?;
        Ok(())
    }

    /// Returns a guard for a commit's last step: it fails if anything has changed since the last check.
    pub(crate) fn guard(&self) -> CommitGuard {
        self.operations.guard(&self.caller, self.shared.as_ref(), self.locks.as_ref())
    }

    /// Treats a right that cannot be verified as valid, for a limited time.
    fn allow_unverified(&self, checked: Result<(), Error>) -> Result<(), Error> {
        match checked {
            Err(Error::Auth(AuthError::Unavailable | AuthError::Busy { .. }))
                if self.caller.io().now() - self.verified < RIGHT_UNVERIFIED_TIME =>
            {
                Ok(())
            }
            checked => checked,
        }
    }
}
