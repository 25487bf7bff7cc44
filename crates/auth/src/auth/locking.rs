//! The handle's methods for locks, and its cache of them.
//!
//! Invariant: the locks of a home are cached until one changes, so that a change of a file sends no request.
//! A cached list is valid under the same conditions as a cached grant of a share.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use plimsoll_io::Io;

use super::Auth;
use crate::changes::{Stamp, Topic};
use crate::error::Error;
use crate::limits::CLOCK_SKEW_MAX;
use crate::locks::{Lock, NewLock};
use crate::request::AuthRequest;
use plimsoll_rpc::Key;
use plimsoll_rpc::time::{self, Millis, millis};

/// The locks of a home, as of a moment.
#[derive(Debug)]
pub struct HomeLocks {
    owner: i64,
    /// `None` if there are no locks here.
    locks: Option<Vec<Lock>>,
    /// The change counter before the locks were read.
    stamp: Stamp,
    since: Millis,
}

impl HomeLocks {
    /// Returns the locks that have not ended at this time.
    pub fn held(&self, now: SystemTime) -> impl Iterator<Item = &Lock> {
        self.locks.iter().flatten().filter(move |lock| lock.expires > now)
    }

    /// Whether no lock was held when they were read.
    pub fn is_empty(&self) -> bool {
        self.locks.as_ref().is_none_or(Vec::is_empty)
    }

    /// Whether accounts can take locks here.
    pub fn are_available(&self) -> bool {
        self.locks.is_some()
    }

    pub(super) fn locks_if_known(&self) -> Result<Vec<Lock>, Error> {
        self.locks.clone().ok_or(Error::NotAllowed)
    }
}

fn key(owner: i64) -> Key {
    let mut key = Key::default();
    key[..8].copy_from_slice(&owner.to_le_bytes());
    key
}

impl Auth {
    /// Returns whether accounts can take locks here. They cannot if another system has the accounts.
    pub async fn has_locks(&self, io: &Io) -> bool {
        if !self.is_remote() {
            return true;
        }
        if self.shared.has_locks.load(Ordering::Relaxed) {
            return true;
        }
        // There is no account 0: the response only says whether the server knows the request.
        match self.home_locks(io, 0).await {
            Ok(known) => {
                // Only remembered if it has: a server without locks may be upgraded.
                self.shared.has_locks.store(known.are_available(), Ordering::Relaxed);
                known.are_available()
            }
            // Clients ask when they connect: if an outage meant no locks, they would do without until they
            // connect again.
            Err(_) => true,
        }
    }

    /// Takes a lock. The caller has checked that its account may write there.
    ///
    /// # Errors
    /// [`Error::Locked`] if another lock excludes it, [`Error::TooManyLocks`], [`Error::NoLocks`].
    pub async fn lock(&self, io: &Io, new: NewLock) -> Result<Lock, Error> {
        self.ask(io, AuthRequest::Lock(new)).await.map_err(none_here)
    }

    /// Extends a lock of this account that covers a path in the home of `owner`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it holds none of this id there.
    pub async fn refresh_lock(
        &self,
        io: &Io,
        (owner, holder): (i64, i64),
        (path, id): (&[u8], &str),
        time: Duration,
    ) -> Result<Lock, Error> {
        let (path, id) = (path.to_vec(), id.to_owned());
        let request = AuthRequest::RefreshLock { owner, holder, path, id, time };
        self.ask(io, request).await.map_err(none_here)
    }

    /// Ends a lock that covers a path in the home of `owner`, for its holder or for the owner.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this id there; [`Error::LockOfAnother`].
    pub async fn unlock(
        &self,
        io: &Io,
        (owner, by): (i64, i64),
        (path, id): (&[u8], &str),
    ) -> Result<(), Error> {
        let (path, id) = (path.to_vec(), id.to_owned());
        self.ask(io, AuthRequest::Unlock { owner, by, path, id }).await.map_err(none_here)
    }

    /// Ends locks of resources that were removed from the home of `owner`.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`], [`Error::Full`].
    pub async fn end_locks(&self, io: &Io, owner: i64, ids: Vec<String>) -> Result<(), Error> {
        self.ask(io, AuthRequest::EndLocks { owner, ids }).await
    }

    /// Returns the locks of a home.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Unavailable`].
    pub async fn home_locks(&self, io: &Io, owner: i64) -> Result<Arc<HomeLocks>, Error> {
        if let Some(known) = self.try_home_locks(io, owner) {
            return Ok(known);
        }
        // Boxed: rarely taken, and inlining it would enlarge the future of every change.
        Box::pin(self.read_home_locks(io, owner)).await
    }

    async fn read_home_locks(&self, io: &Io, owner: i64) -> Result<Arc<HomeLocks>, Error> {
        let moment = self.moment(io).await?;
        // The refresh alone may have been overdue.
        if let Some(known) = self.try_home_locks(io, owner) {
            return Ok(known);
        }
        let locks = match self.ask(io, AuthRequest::Locks(owner)).await {
            Ok(locks) => Some(locks),
            // Another system's authentication server knows no locks.
            Err(Error::NotAllowed) => None,
            Err(error) => return Err(error),
        };
        let known = Arc::new(HomeLocks { owner, locks, stamp: moment.stamp, since: moment.now });
        self.shared.home_locks.put(key(owner), Arc::clone(&known), |known| known.since);
        Ok(known)
    }

    /// Returns the locks of a home if they are cached and known to be unchanged. Starts a poll for other
    /// processes' changes if that is due. Never waits.
    pub fn try_home_locks(&self, io: &Io, owner: i64) -> Option<Arc<HomeLocks>> {
        let (poll_ahead, is_trusted, now) = (self.poll_ahead(io), self.is_trusted(io), time::now(io));
        let known = self.shared.home_locks.get(&key(owner), |known| Arc::clone(known))?;
        // If the clock was set back, they seem to come from the future: then they are read again.
        let is_in_time = known.since <= now.saturating_add(millis(CLOCK_SKEW_MAX));
        (poll_ahead && is_trusted && is_in_time && self.are_unchanged(&known)).then_some(known)
    }

    /// Returns whether no change of these locks was noted since they were read.
    fn are_unchanged(&self, known: &HomeLocks) -> bool {
        let holders = known.locks.iter().flatten().map(|lock| Topic::Account(lock.holder));
        let (owner, changes) = (known.owner, self.changes());
        let topics =
            [Topic::Locks(owner), Topic::LockEnds(owner), Topic::Shares(owner), Topic::Account(owner)];
        topics.into_iter().chain(holders).all(|topic| changes.is_current(topic, known.stamp))
    }

    /// Returns whether no lock was added in the home since these were read. Uses neither clock nor directory,
    /// so it can be called from any thread that must not block.
    pub fn has_no_new_lock(&self, known: &HomeLocks) -> bool {
        self.changes().is_current(Topic::Locks(known.owner), known.stamp)
    }
}

/// Another system's authentication server knows no locks.
fn none_here(error: Error) -> Error {
    if error == Error::NotAllowed { Error::NoLocks } else { error }
}
