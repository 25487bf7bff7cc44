//! Requests about locks.
//!
//! It does not know whether a path exists. Invariants: two locks that exclude each other are never held at
//! once. A lock ends with the account that holds it, and with the share that its right comes from.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use plimsoll_io::Io;

use super::AccountService;
use crate::account::Account;
use crate::changes::Topic;
use crate::directory::{Directory, DirectoryError, LockBounds, ShareSelection, StoredLock};
use crate::error::Error;
use crate::limits::{
    LOCK_ATTEMPTS, LOCK_OWNER_BYTES_MAX, LOCK_PATH_BYTES_MAX, LOCK_TIME_MAX, LOCK_TIME_MIN,
    LOCKS_MEETING_MAX, LOCKS_OF_OTHERS_MAX, LOCKS_OF_OWNER_MAX, LOCKS_PER_HOLDER_MAX,
};
use crate::locks::{Lock, NewLock, draw_id};
use crate::request::AuthResponse;
use crate::shares::{Permission, Share, shared_path};
use plimsoll_rpc::time::{self, Millis, millis};

/// Returns the bounds for a lock.
fn bounds(row: &StoredLock) -> LockBounds {
    let holder = if row.holder == row.owner { LOCKS_OF_OWNER_MAX } else { LOCKS_PER_HOLDER_MAX };
    LockBounds { holder, others: LOCKS_OF_OTHERS_MAX, meeting: LOCKS_MEETING_MAX }
}

/// The locks of a home.
#[derive(Default)]
struct HeldLocks {
    locks: Vec<Lock>,
    /// The ids of locks whose holder is disabled, may not write, or has no share there any more.
    lapsed: Vec<String>,
}

impl AccountService {
    pub(super) async fn lock(&self, io: &Io, new: NewLock) -> Result<AuthResponse, Error> {
        let (path, now) = (shared_path(&new.path)?, time::now(io));
        if path.len() > LOCK_PATH_BYTES_MAX {
            return Err(Error::BadShare(
                "The path is too long to be locked. Lock a folder that it is in.".into(),
            ));
        }
        if new.about.len() > LOCK_OWNER_BYTES_MAX {
            return Err(Error::BadShare("The owner of the lock is too long. Send a shorter one.".into()));
        }
        let row = StoredLock {
            id: draw_id(io),
            owner: new.owner,
            holder: new.holder,
            path,
            shared: new.is_shared,
            deep: new.is_deep,
            about: new.about,
            created: stored(now),
            expires: stored(end(now, new.time)),
        };
        let outcome = self.directory(io, move |directory, changes| {
            let Some(right) = right(directory, &row, now)? else { return Ok(Err(Error::NotFound)) };
            let row = StoredLock { expires: right.end(row.expires), ..row };
            for _ in 0..LOCK_ATTEMPTS {
                let added = directory.add_lock(&row, bounds(&row));
                // A refused request must not make the commits of uploads start over.
                if !matches!(added, Ok(false)) {
                    changes.note(Topic::Locks(row.owner));
                }
                if added? {
                    return Ok(Ok(right.lock(&row)));
                }
                let found = held(directory, row.owner, now)?;
                if let Some(lock) = found.locks.iter().find(|lock| excludes(lock, &row)) {
                    let (path, holder) = (lock.path.clone(), lock.holder_name.clone());
                    return Ok(Err(Error::Locked { path, holder }));
                }
                remove_lapsed(directory, row.owner, &found.lapsed);
            }
            Ok(Err(Error::TooManyLocks))
        });
        outcome.await?.map(AuthResponse::Lock)
    }

    pub(super) async fn refresh_lock(
        &self,
        io: &Io,
        (owner, holder): (i64, i64),
        (path, id): (Vec<u8>, String),
        time: Duration,
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let refreshed = self.directory(io, move |directory, changes| {
            let row = directory.lock(owner, &id)?.filter(|row| row.holds(now) && row.covers(&path));
            let Some(row) = row.filter(|row| row.holder == holder) else { return Ok(None) };
            let Some(right) = right(directory, &row, now)? else { return Ok(None) };
            let expires = right.end(stored(end(now, time)));
            let set = directory.refresh_lock(owner, &id, u64::try_from(expires).unwrap_or(0));
            changes.note(Topic::LockEnds(owner));
            Ok(set?.then(|| right.lock(&StoredLock { expires, ..row })))
        });
        refreshed.await?.map(AuthResponse::Lock).ok_or(Error::NotFound)
    }

    pub(super) async fn unlock(
        &self,
        io: &Io,
        (owner, by): (i64, i64),
        (path, id): (Vec<u8>, String),
    ) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let ended = self.directory(io, move |directory, changes| {
            let row = directory.lock(owner, &id)?.filter(|row| row.holds(now) && row.covers(&path));
            let Some(row) = row else { return Ok(Err(Error::NotFound)) };
            if ![row.owner, row.holder].contains(&by) {
                return Ok(Err(Error::LockOfAnother));
            }
            let ended = directory.end_locks(owner, &[id]);
            changes.note(Topic::LockEnds(owner));
            Ok(if ended? { Ok(()) } else { Err(Error::NotFound) })
        });
        ended.await?.map(AuthResponse::Done)
    }

    /// Ends the locks of resources that were removed.
    pub(super) async fn end_locks(
        &self,
        io: &Io,
        owner: i64,
        ids: Vec<String>,
    ) -> Result<AuthResponse, Error> {
        let ended = self.directory(io, move |directory, changes| {
            let ended = directory.end_locks(owner, &ids);
            changes.note(Topic::LockEnds(owner));
            ended
        });
        ended.await?;
        Ok(AuthResponse::Done(()))
    }

    pub(super) async fn locks(&self, io: &Io, owner: i64) -> Result<AuthResponse, Error> {
        let now = time::now(io);
        let found = self.directory(io, move |directory, _| {
            let found = held(directory, owner, now)?;
            remove_lapsed(directory, owner, &found.lapsed);
            Ok(found.locks)
        });
        Ok(AuthResponse::Locks(found.await?))
    }
}

fn stored(number: Millis) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn end(now: Millis, time: Duration) -> Millis {
    now.saturating_add(millis(time.clamp(LOCK_TIME_MIN, LOCK_TIME_MAX)))
}

/// Whether a lock excludes a new one.
fn excludes(lock: &Lock, new: &StoredLock) -> bool {
    let meets = lock.covers(&new.path) || new.covers(&lock.path);
    meets && !(lock.is_shared && new.shared)
}

/// The right of an account to hold a lock.
struct LockRight {
    holder_name: String,
    /// When the share ends that the right comes from.
    until: Millis,
}

impl LockRight {
    /// Returns when a lock ends: with the right at the latest.
    fn end(&self, expires: i64) -> i64 {
        expires.min(stored(self.until))
    }

    fn lock(&self, row: &StoredLock) -> Lock {
        row.lock(&self.holder_name, u64::try_from(self.end(row.expires)).unwrap_or(0))
    }
}

/// Returns the right of a lock's holder; `None` if its account may not change the path.
fn right(
    directory: &mut dyn Directory,
    row: &StoredLock,
    now: Millis,
) -> Result<Option<LockRight>, DirectoryError> {
    let holder = directory.account_of(row.holder)?.map(|row| row.account);
    let Some(holder) = holder.filter(may_hold) else { return Ok(None) };
    let until = if row.holder == row.owner {
        Some(Millis::MAX)
    } else {
        let shares = directory.shares_around(row.owner, row.holder, &row.path, now)?;
        share_end(&shares, &row.path)
    };
    Ok(until.map(|until| LockRight { holder_name: holder.name, until }))
}

fn may_hold(holder: &Account) -> bool {
    holder.enabled && holder.permissions.write
}

/// Removes locks whose holders have lost the right to them. A failure is only logged: no response has these
/// locks, and a directory that cannot be written must not stop the changes of a home.
fn remove_lapsed(directory: &mut dyn Directory, owner: i64, lapsed: &[String]) {
    if !lapsed.is_empty()
        && let Err(error) = directory.end_locks(owner, lapsed)
    {
        tracing::warn!("locks of former holders were not removed: {error}");
    }
}

/// Reads the locks of a home. One request if there are none.
fn held(directory: &mut dyn Directory, owner: i64, now: Millis) -> Result<HeldLocks, DirectoryError> {
    let (mut found, rows) = (HeldLocks::default(), directory.locks(owner)?);
    let mut shares: BTreeMap<String, Vec<Share>> = BTreeMap::new();
    if rows.iter().any(|row| row.holder != owner) {
        for share in directory.shares(ShareSelection::By(owner), now)? {
            shares.entry(share.with.clone()).or_default().push(share);
        }
    }
    let mut names: BTreeMap<i64, Option<String>> = BTreeMap::new();
    for row in rows.into_iter().filter(|row| row.holds(now)) {
        let name = match names.entry(row.holder) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let holder = directory.account_of(row.holder)?.map(|row| row.account).filter(may_hold);
                unknown.insert(holder.map(|holder| holder.name))
            }
        };
        let right = name.clone().and_then(|holder_name| {
            let given = shares.get(&holder_name).map(Vec::as_slice).unwrap_or_default();
            let until = if row.holder == owner { Some(Millis::MAX) } else { share_end(given, &row.path) };
            Some(LockRight { holder_name, until: until? })
        });
        match right {
            Some(right) => found.locks.push(right.lock(&row)),
            None => found.lapsed.push(row.id),
        }
    }
    Ok(found)
}

/// Returns until when one of these shares permits changes of the path; `None` if none does.
fn share_end(shares: &[Share], path: &[u8]) -> Option<Millis> {
    let covering = shares.iter().filter(|share| share.permission == Permission::Write && share.covers(path));
    covering.map(|share| share.expires.map_or(Millis::MAX, time::since_1970)).max()
}
