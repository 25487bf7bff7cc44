//! The files beside the database. One, of fixed size, lists revoked sessions whose rows could not be
//! deleted yet. The other is a probe for free disk space.
//!
//! A log-out must not need space: on a full disk, SQLite can delete no row. The file is allocated when
//! the database is opened and is written in place. It is a set of session numbers; a session in it has
//! ended, even if its row is still there. Each entry has a number and its hash, so that a torn write is an
//! empty entry. Invariant: a number is removed only after the database has committed that the session's
//! row is gone. A copy-on-write file system (btrfs, ZFS) may still need space for it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::limits::{DIRECTORY_PROBE_BYTES, REVOKED_SESSIONS_MAX};
use crate::sessions::SessionId;

const NUMBER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 2 * NUMBER_BYTES;
const EMPTY: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];

/// The revoked sessions of one database. Other processes may have the same file open.
pub(super) struct Revoked {
    path: PathBuf,
    /// None if there was no space to allocate it.
    file: Option<File>,
    sessions: BTreeSet<SessionId>,
}

/// Holds the lock that processes share, until it is dropped.
struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

fn lock(file: &File) -> io::Result<Locked<'_>> {
    flock(file, FlockOperation::LockExclusive)?;
    Ok(Locked(file))
}

/// Writes as many bytes beside the database as a change may need, and frees them.
pub(super) fn probe(database: &Path) -> io::Result<()> {
    let mut path = database.as_os_str().to_owned();
    path.push("-probe");
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&*path, flags, Mode::RUSR | Mode::WUSR)?);
    // Unlinked while it is written: a server that is killed leaves nothing behind.
    std::fs::remove_file(&path)?;
    file.write_all(&[1; DIRECTORY_PROBE_BYTES])
}

impl Revoked {
    /// Opens the file that belongs to the database at `database`, and allocates it if it is new.
    pub(super) fn open(database: &Path) -> Revoked {
        let mut revoked = Revoked { path: path_of(database), file: None, sessions: BTreeSet::new() };
        revoked.allocate();
        revoked.refresh();
        revoked
    }

    /// Reads the file that belongs to the database at `database`, if there is one, and allocates none.
    pub(super) fn recorded(database: &Path) -> Revoked {
        let sessions = recorded(database).unwrap_or_default();
        Revoked { path: path_of(database), file: None, sessions }
    }

    /// Allocates the file, unless that is done. Without it, a log-out on a full disk is refused.
    pub(super) fn allocate(&mut self) {
        if self.file.is_none() {
            match allocated(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) => {
                    let file = self.path.display();
                    tracing::warn!(%error, %file, "no space is reserved for logouts on a full disk");
                }
            }
        }
    }

    pub(super) fn contains(&self, session: SessionId) -> bool {
        self.sessions.contains(&session)
    }

    pub(super) fn all(&self) -> Vec<SessionId> {
        self.sessions.iter().copied().collect()
    }

    /// Adds a session, and syncs the file.
    pub(super) fn add(&mut self, session: SessionId) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::StorageFull)?;
        let _locked = lock(file)?;
        let entries = entries(file)?;
        if !entries.iter().any(|entry| number(entry) == Some(session)) {
            let free = entries.iter().position(|entry| number(entry).is_none());
            let free = free.ok_or(io::ErrorKind::StorageFull)?;
            file.write_all_at(&entry(session), offset(free))?;
        }
        file.sync_data()?;
        self.sessions.insert(session);
        Ok(())
    }

    /// Removes sessions whose rows are gone. Not synced: a number that reappears after a crash revokes
    /// nothing more.
    pub(super) fn remove(&mut self, gone: &[SessionId]) {
        let removed = self.file.as_ref().map(|file| clear(file, gone));
        if matches!(removed, Some(Ok(()))) {
            self.sessions.retain(|session| !gone.contains(session));
        }
    }

    /// Reads changes by other processes. Returns whether a session was added.
    pub(super) fn refresh(&mut self) -> bool {
        let Some(Ok(entries)) = self.file.as_ref().map(entries) else { return false };
        let before = std::mem::replace(&mut self.sessions, entries.iter().filter_map(number).collect());
        !self.sessions.is_subset(&before)
    }
}

/// Returns the sessions that the file of the database at `database` lists, and creates no file.
pub(super) fn recorded(database: &Path) -> io::Result<BTreeSet<SessionId>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path_of(database), flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(BTreeSet::new()),
        opened => match entries(&File::from(opened?)) {
            // A server is allocating it, and no session can be in it yet.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(BTreeSet::new()),
            entries => Ok(entries?.iter().filter_map(number).collect()),
        },
    }
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-revoked");
    path.into()
}

/// Opens the file with all of its blocks allocated. Zeros are written, because not every file system can
/// allocate without that.
fn allocated(path: &Path) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let locked = lock(&file)?;
    let length = offset(REVOKED_SESSIONS_MAX);
    let had = file.metadata()?.len();
    if had < length {
        let missing = usize::try_from(length - had).unwrap_or(usize::MAX);
        file.write_all_at(&vec![0; missing], had)?;
        file.sync_all()?;
    }
    drop(locked);
    Ok(file)
}

fn entries(file: &File) -> io::Result<Vec<[u8; ENTRY_BYTES]>> {
    let mut bytes = vec![0; ENTRY_BYTES * REVOKED_SESSIONS_MAX];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.as_chunks().0.to_vec())
}

fn clear(file: &File, gone: &[SessionId]) -> io::Result<()> {
    let _locked = lock(file)?;
    for (at, entry) in entries(file)?.iter().enumerate() {
        if number(entry).is_some_and(|session| gone.contains(&session)) {
            file.write_all_at(&EMPTY, offset(at))?;
        }
    }
    Ok(())
}

fn offset(entry: usize) -> u64 {
    (entry * ENTRY_BYTES) as u64
}

fn entry(session: SessionId) -> [u8; ENTRY_BYTES] {
    let mut entry = EMPTY;
    entry[..NUMBER_BYTES].copy_from_slice(&session.0);
    entry[NUMBER_BYTES..].copy_from_slice(blake3::hash(&session.0).as_bytes());
    entry
}

/// Returns the session of an entry, unless it is empty or torn.
fn number(stored: &[u8; ENTRY_BYTES]) -> Option<SessionId> {
    let (number, _) = stored.split_first_chunk::<NUMBER_BYTES>()?;
    Some(SessionId(*number)).filter(|session| entry(*session) == *stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u8) -> SessionId {
        SessionId([number; NUMBER_BYTES])
    }

    #[test]
    fn revoked_sessions_are_there_for_the_next_process_until_they_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("d.sqlite");
        let (mut one, mut other) = (Revoked::open(&database), Revoked::open(&database));
        one.add(session(1)).unwrap();
        one.add(session(2)).unwrap();
        assert!(!other.contains(session(1)));
        assert!(other.refresh() && other.contains(session(1)) && !other.refresh());
        other.remove(&[session(1)]);
        assert_eq!(Revoked::open(&database).all(), [session(2)]);
    }

    #[test]
    fn an_entry_that_was_written_in_half_revokes_nothing_and_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut revoked = Revoked::open(&folder.path().join("d.sqlite"));
        let half = &entry(session(7))[..NUMBER_BYTES + 1];
        revoked.file.as_ref().unwrap().write_all_at(half, 0).unwrap();
        assert!(!revoked.refresh() && revoked.all().is_empty());
        revoked.add(session(8)).unwrap();
        assert_eq!(number(&entries(revoked.file.as_ref().unwrap()).unwrap()[0]), Some(session(8)));
    }

    #[test]
    fn a_full_file_refuses_one_more_and_takes_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut revoked = Revoked::open(&folder.path().join("d.sqlite"));
        let numbered = |number: usize| SessionId(*blake3::hash(&number.to_le_bytes()).as_bytes());
        for at in 0..REVOKED_SESSIONS_MAX {
            revoked.add(numbered(at)).unwrap();
        }
        assert!(revoked.add(numbered(REVOKED_SESSIONS_MAX)).is_err());
        revoked.remove(&[numbered(3)]);
        revoked.add(numbered(REVOKED_SESSIONS_MAX)).unwrap();
        let length = revoked.file.as_ref().unwrap().metadata().unwrap().len();
        assert_eq!(length, offset(REVOKED_SESSIONS_MAX));
    }
}
