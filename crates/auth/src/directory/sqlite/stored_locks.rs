//! Adds and ends locks of the directory in SQLite.
//!
//! It does not begin or commit: its caller does. Invariant: conflicts and bounds are evaluated in the
//! transaction that inserts.

use rusqlite::Connection;

use super::stored_rows::insert_lock;
use super::{one, run};
use crate::directory::values::signed;
use crate::directory::{DirectoryError, LockBounds, StoredLock};

/// The locks of the home of ?1 that meet the path ?2, which is deep if ?3 is. A blob cannot be joined with a
/// text and remain a blob.
const MEETING: &str = "FROM locks WHERE owner = ?1 AND (
    path = ?2
    OR (deep AND (length(path) = 0 OR (
        substr(?2, 1, length(path)) = path AND substr(?2, length(path) + 1, 1) = x'2f')))
    OR (?3 AND (length(?2) = 0 OR (
        substr(path, 1, length(?2)) = ?2 AND substr(path, length(?2) + 1, 1) = x'2f')))
)";

/// As [`Directory::add_lock`](crate::Directory::add_lock).
pub(super) fn add(
    transaction: &Connection,
    new: &StoredLock,
    bounds: LockBounds,
) -> Result<bool, DirectoryError> {
    let ended = "DELETE FROM locks WHERE owner = ?1 AND expires <= ?2";
    run(transaction, ended, (new.owner, new.created))?;
    let room = "SELECT 1 FROM accounts o, accounts h WHERE o.id = ?1 AND h.id = ?2
        AND ?3 > (SELECT count(*) FROM locks WHERE owner = ?1 AND holder = ?2)
        AND (?1 = ?2 OR ?4 > (SELECT count(*) FROM locks WHERE owner = ?1 AND holder <> ?1))";
    let counts = (new.owner, new.holder, signed(bounds.holder as u64), signed(bounds.others as u64));
    let is_room = one(transaction, room, counts, |_| Ok(()))?.is_some();
    let met = format!("SELECT count(*) < ?4 AND coalesce(sum(NOT (shared AND ?5)), 0) = 0 {MEETING}");
    let place = (new.owner, &new.path, new.deep, signed(bounds.meeting as u64), new.shared);
    let is_free = one(transaction, &met, place, |row| row.get(0))?.unwrap_or(false);
    if is_room && is_free {
        insert_lock(transaction, new)?;
    }
    Ok(is_room && is_free)
}

/// Ends locks of a home. Returns whether there were any.
pub(super) fn end(transaction: &Connection, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
    let mut is_any = false;
    for id in ids {
        is_any |= run(transaction, "DELETE FROM locks WHERE owner = ?1 AND id = ?2", (owner, id))? > 0;
    }
    Ok(is_any)
}
