//! A right that a transfer uses, checked again for as long as the transfer lasts.
//!
//! What is checked is [`crate::permit`]'s. What must hold: a transfer ends soon after its right does, also
//! if its peer neither sends nor takes a byte; nothing is committed by a right that has ended; a transfer
//! that never waits costs a comparison of two times.

use std::pin::pin;

use plimsoll_auth::Error as AuthError;
use plimsoll_io::{Deadline, Either, Instant, select};
use plimsoll_store::CommitGuard;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::limits::{RIGHT_CHECK_TIME, RIGHT_UNVERIFIED_TIME};
use crate::permit::{Right, Shared};
use crate::place::Place;

/// A right that is in use.
pub struct Permit {
    operations: Operations,
    caller: Caller,
    place: Place,
    rights: &'static [Right],
    shared: Option<Shared>,
    /// When it was last found to hold.
    verified: Instant,
    /// When it is to be checked again.
    due: Instant,
    deadline: Deadline,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({:?} at {})", self.rights, self.place)
    }
}

impl Permit {
    /// A right that was just found to hold.
    pub(crate) fn new(
        operations: &Operations,
        caller: &Caller,
        place: &Place,
        rights: &'static [Right],
        shared: Option<Shared>,
    ) -> Permit {
        let now = caller.io().now();
        Permit {
            operations: operations.clone(),
            caller: caller.clone(),
            place: place.clone(),
            rights,
            shared,
            verified: now,
            due: now + RIGHT_CHECK_TIME,
            deadline: caller.io().deadline(),
        }
    }

    /// The right to read one's own files, which was just found to hold.
    pub(crate) fn to_read_own(operations: &Operations, caller: &Caller, place: &Place) -> Permit {
        Permit::new(operations, caller, place, &[Right::Read], None)
    }

    /// Does `work` for as long as the right holds. The right is checked every [`RIGHT_CHECK_TIME`], counted
    /// over all that it is used for.
    ///
    /// # Errors
    /// Why the right has ended; [`AuthError::Unavailable`] or [`AuthError::Busy`] if that could not be found
    /// out for [`RIGHT_UNVERIFIED_TIME`].
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

    /// As [`Permit::during`], for work that does not wait for long, but is done again and again.
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
    /// Why it has ended, or why that could not be found out.
    pub async fn check(&mut self) -> Result<(), Error> {
        let Permit { operations, caller, place, rights, shared, .. } = self;
        let checked = operations.check_again(caller, place, rights, shared.as_mut()).await;
        let now = self.caller.io().now();
        self.due = now + RIGHT_CHECK_TIME;
        if checked.is_ok() {
            self.verified = now;
        }
        checked
    }

    /// What a commit asks at its last moment: whether anything has changed since the last check.
    pub(crate) fn guard(&self) -> CommitGuard {
        self.operations.guard(&self.caller, self.shared.as_ref())
    }

    /// Takes a right that cannot be verified for one that holds, for a while.
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
