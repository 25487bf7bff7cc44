//! A consistent copy of the database's file, while servers use it.
//!
//! It changes nothing in the original and migrates nothing: the copy belongs to the version that made the
//! original. Invariants: the copy is of one moment. A session that was revoked before the copy is not in it,
//! even if its row could not be deleted yet.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{failed, make_private, one, revoked, run};
use crate::directory::DirectoryError;
use crate::limits::DIRECTORY_BUSY_TIME;
use crate::sessions::SessionId;

/// The contents of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedDirectory {
    /// Accounts.
    pub accounts: u64,
    /// Sessions, expired ones included.
    pub sessions: u64,
    /// Shares, expired ones included.
    pub shares: u64,
    /// Sessions that were revoked while the disk was full, and that the copy therefore lacks.
    pub revoked: u64,
}

/// Copies the database at `from` to the new file `to`, which only its owner can read. This blocks.
///
/// # Errors
/// The error of the kernel or of SQLite, or that the copy is not intact.
pub fn copy_file(from: &Path, to: &Path) -> Result<CopiedDirectory, DirectoryError> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: DirectoryError| DirectoryError::Failed(format!("{path}: {error}"))
    };
    let recorded = || revoked::recorded(from).map_err(|error| at(from)(unreadable(&error)));
    // A session leaves the list as soon as its row is deleted, so the list before the copy counts. The list
    // after it has the sessions that were revoked meanwhile.
    let mut ended = recorded()?;
    copy_rows(from, to).map_err(at(from))?;
    ended.extend(recorded()?);
    without(to, &ended).map_err(at(to))
}

fn unreadable(error: &std::io::Error) -> DirectoryError {
    DirectoryError::Failed(format!("the list of revoked sessions cannot be read: {error}"))
}

fn copy_rows(from: &Path, to: &Path) -> Result<(), DirectoryError> {
    let name = to.to_str().ok_or_else(|| {
        DirectoryError::Failed(format!("{} is not UTF-8, which SQLite needs", to.display()))
    })?;
    make_private(to)?;
    let original = connect(from)?;
    original.execute("VACUUM INTO ?1", [name]).map(drop).map_err(failed)
}

fn connect(path: &Path) -> Result<Connection, DirectoryError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    connection.busy_timeout(DIRECTORY_BUSY_TIME).map_err(failed)?;
    Ok(connection)
}

/// Deletes the sessions `ended` from a copy, and checks and counts the rest.
fn without(copy: &Path, ended: &BTreeSet<SessionId>) -> Result<CopiedDirectory, DirectoryError> {
    let copy = connect(copy)?;
    let mut revoked = 0;
    for session in ended {
        revoked += run(&copy, "DELETE FROM sessions WHERE id = ?1", [session.0])? as u64;
    }
    let intact = one(&copy, "PRAGMA integrity_check", (), |row| row.get::<_, String>(0))?;
    if intact.as_deref() != Some("ok") {
        let found = intact.unwrap_or_default();
        return Err(DirectoryError::Failed(format!("SQLite finds the copy damaged: {found}")));
    }
    let count = |table: &str| -> Result<u64, DirectoryError> {
        let sql = format!("SELECT count(*) FROM {table}");
        Ok(one(&copy, &sql, (), |row| row.get::<_, i64>(0))?.unwrap_or(0).unsigned_abs())
    };
    Ok(CopiedDirectory {
        accounts: count("accounts")?,
        sessions: count("sessions")?,
        shares: count("shares")?,
        revoked,
    })
}

/// Ends all sessions of the database at `path`, which no server uses. Returns their number. This blocks.
///
/// # Errors
/// The error of SQLite.
pub fn end_all_sessions(path: &Path) -> Result<u64, DirectoryError> {
    Ok(run(&connect(path)?, "DELETE FROM sessions", ())? as u64)
}

/// Ends all public links of the database at `path`, which no server uses. Returns their number; zero if an
/// earlier version made the database, which had none. This blocks.
///
/// # Errors
/// The error of SQLite.
pub fn end_all_links(path: &Path) -> Result<u64, DirectoryError> {
    let database = connect(path)?;
    let has_links = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'links'";
    match one(&database, has_links, (), |row| row.get::<_, i64>(0))? {
        Some(1..) => Ok(run(&database, "DELETE FROM links", ())? as u64),
        _ => Ok(0),
    }
}
