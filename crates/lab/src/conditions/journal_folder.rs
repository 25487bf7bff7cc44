//! The folder of the undo journals, which only this user can write.
//!
//! It knows no undo step. Invariants: all access is relative to the folder as it was opened and checked, and
//! follows no link; only regular files of this user are read; each wait for the lock has an end.

use std::ffi::CStr;
use std::fs::{DirBuilder, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, openat, unlinkat,
};
use rustix::io::Errno;

use super::limits::{JOURNAL_BYTES_MAX, LOCK_TIME_MAX, RETRY_INTERVAL};
use crate::own_path;

/// The folder. It is empty after a restart of the machine, as are the changes.
const FOLDER: &str = "/run/plimsoll-lab";
const EXTENSION: &str = ".journal";
const LOCK: &str = "lock";

/// The opened folder of the journals.
#[derive(Debug)]
pub(super) struct JournalFolder {
    path: PathBuf,
    folder: OwnedFd,
}

/// The name and the modification time of a journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JournalName {
    modified: SystemTime,
    pub(super) name: String,
}

impl JournalFolder {
    /// Opens the folder, if there is one. Users other than root set no conditions, so they have none to undo.
    ///
    /// # Errors
    /// Another user can write to the folder or has made it.
    pub(super) fn existing() -> Result<Option<JournalFolder>> {
        if !rustix::process::geteuid().is_root() || Path::new(FOLDER).symlink_metadata().is_err() {
            return Ok(None);
        }
        JournalFolder::open(Path::new(FOLDER)).map(Some)
    }

    /// Opens the folder, after creating it if it is missing.
    ///
    /// # Errors
    /// Another user can write to the folder, or this user cannot create it.
    pub(super) fn create() -> Result<JournalFolder> {
        JournalFolder::create_at(Path::new(FOLDER))
    }

    /// As [`create`](Self::create), at another path.
    ///
    /// # Errors
    /// As those of [`create`](Self::create).
    pub(super) fn create_at(path: &Path) -> Result<JournalFolder> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.with_context(|| {
            format!("cannot create {}, where the laboratory notes changes", path.display())
        })?;
        JournalFolder::open(path)
    }

    fn open(path: &Path) -> Result<JournalFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder =
            openat(CWD, path, flags, Mode::empty()).with_context(|| format!("{}", path.display()))?;
        let found = fstat(&folder)?;
        ensure!(
            found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o022 == 0,
            "{}, where the laboratory notes changes, can be written by another user: remove it",
            path.display()
        );
        own_path::unwritable_by_others(path)?;
        // Earlier versions let other users open the files in it, and so lock them.
        fchmod(&folder, Mode::RWXU).with_context(|| format!("{}", path.display()))?;
        Ok(JournalFolder { path: path.to_owned(), folder })
    }

    /// Returns the path of a file, for messages.
    pub(super) fn display_path(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// Returns the journals, the newest first: it may have changed a value that an older one had changed
    /// before.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn journals(&self) -> Result<Vec<JournalName>> {
        let mut journals = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let Some(name) = journal_name(entry.file_name()) else { continue };
            match rustix::fs::statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => journals.push(JournalName { modified: modified(&found), name }),
                // Its process has removed it meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error).with_context(|| self.display_path(&name)),
            }
        }
        journals.sort_by(|one, other| other.cmp(one));
        Ok(journals)
    }

    /// Creates a journal; returns `None` if there is one of this name.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn new_journal(&self, stem: &str) -> Result<Option<(String, File)>> {
        let name = format!("{stem}{EXTENSION}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Some((name, file.into()))),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(error).with_context(|| self.display_path(&name)),
        }
    }

    /// Reads a journal; returns an empty one if it was removed meanwhile.
    ///
    /// # Errors
    /// It is no regular file of this user, or it cannot be read.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        // Without O_NONBLOCK, a fifo would be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(String::new()),
            file => file.with_context(|| self.display_path(name))?,
        };
        self.check_file(&file, name)?;
        let mut text = String::new();
        File::from(file)
            .take(JOURNAL_BYTES_MAX)
            .read_to_string(&mut text)
            .with_context(|| self.display_path(name))?;
        Ok(text)
    }

    /// Removes a journal, if it is there.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| self.display_path(name)),
        }
    }

    /// Waits for the lock that serialises recovery, new journals and the choice of addresses. Dropping the
    /// file releases it.
    ///
    /// # Errors
    /// Another process has held the lock for too long.
    pub(super) fn lock(&self) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = openat(&self.folder, LOCK, flags, Mode::RUSR | Mode::WUSR);
        let lock = lock.with_context(|| self.display_path(LOCK))?;
        self.check_file(&lock, LOCK)?;
        let until = Instant::now() + LOCK_TIME_MAX;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock.into()),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(RETRY_INTERVAL),
                Err(Errno::WOULDBLOCK) => bail!(
                    "another process has held {} for {} s: end it",
                    self.display_path(LOCK),
                    LOCK_TIME_MAX.as_secs()
                ),
                Err(error) => return Err(error).with_context(|| self.display_path(LOCK)),
            }
        }
    }

    fn check_file(&self, file: &OwnedFd, name: &str) -> Result<()> {
        let found = fstat(file)?;
        let is_own = found.st_uid == rustix::process::geteuid().as_raw();
        ensure!(
            is_own && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile,
            "{} is no regular file of this user: remove it",
            self.display_path(name)
        );
        Ok(())
    }
}

fn journal_name(name: &CStr) -> Option<String> {
    name.to_str().ok().filter(|name| name.ends_with(EXTENSION)).map(str::to_owned)
}

fn modified(found: &Stat) -> SystemTime {
    let seconds = u64::try_from(found.st_mtime).unwrap_or_default();
    let nanoseconds = u32::try_from(found.st_mtime_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + std::time::Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_no_folder_of_journals() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("journals");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
        let refused = JournalFolder::create_at(&path).unwrap_err().to_string();
        assert!(refused.contains("can be written by another user"), "{refused}");
        let link = above.path().join("link");
        symlink(above.path(), &link).unwrap();
        assert!(JournalFolder::create_at(&link).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        JournalFolder::create_at(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn links_and_fifos_are_neither_followed_nor_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let target = above.path().join("target");
        let path = above.path().join("journals");
        let folder = JournalFolder::create_at(&path).unwrap();
        symlink(&target, path.join("lock")).unwrap();
        assert!(folder.lock().is_err() && !target.exists());
        fs::remove_file(path.join("lock")).unwrap();
        fs::write(&target, "{}").unwrap();
        symlink(&target, path.join("a.journal")).unwrap();
        assert!(folder.read("a.journal").is_err());
        rustix::fs::mknodat(CWD, path.join("b.journal"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let refused = folder.read("b.journal").unwrap_err().to_string();
        assert!(refused.contains("is no regular file"), "{refused}");
        assert_eq!(folder.new_journal("a").unwrap().map(|(name, _)| name), None);
    }

    #[test]
    fn journals_are_listed_newest_first() {
        let above = tempfile::tempdir().unwrap();
        let folder = JournalFolder::create_at(above.path()).unwrap();
        for (name, seconds) in [("a", 2), ("b", 3), ("c", 1)] {
            let (_, file) = folder.new_journal(name).unwrap().unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
        fs::write(above.path().join("other"), "").unwrap();
        let names: Vec<String> = folder.journals().unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["b.journal", "a.journal", "c.journal"]);
    }
}
