//! The agent's folder, and the conditions that hold for the contenders in it.
//!
//! It starts no contender. Invariants: one set of conditions holds at a time; the folder is removed after
//! the conditions are undone, because images are mounted in it. The folder of a killed agent is removed by
//! the next agent with the same work folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::{FileSet, Folders, Location};
use crate::conditions::{AppliedConditions, Obstacle, PeriodicDrop, distinct_obstacles, recover};
use crate::experiment::conditions::{Cache, Settings};
use crate::own_path;

/// The beginning of the names of agents' folders, that of folders without a lock yet, and the name of the
/// lock file in each.
const PREFIX: &str = "plimsoll-lab.";
const NEW_PREFIX: &str = "new-plimsoll-lab.";
const LOCK: &str = "lock";

/// The folder and the conditions. The fields are dropped in their order.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Drops files from the page cache during a trial.
    dropping: Option<PeriodicDrop>,
    settings: Settings,
    applied: AppliedConditions,
    /// The folders of the last start of each contender.
    folders: BTreeMap<String, [PathBuf; 2]>,
    folder: LockedFolder,
}

/// An agent's folder, which is removed when this is dropped.
#[derive(Debug)]
struct LockedFolder {
    path: PathBuf,
    _lock: File,
}

impl Workspace {
    /// Creates a folder below `work`. Conditions that a killed agent has left behind are undone first.
    ///
    /// # Errors
    /// Another user could replace the folder, and so the files with which the agent's user starts servers.
    pub(super) fn create(work: &Path) -> Result<Workspace> {
        fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
        let work = &own_path::irreplaceable(work).context("--work")?;
        recover().context("an earlier agent was killed, and its conditions cannot be undone")?;
        remove_abandoned(work)?;
        let folder = LockedFolder::create(work)?;
        // Servers that drop root's rights must be able to read the files.
        fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o755))?;
        let settings = Settings::default();
        let applied = AppliedConditions::apply(&settings, &folder.path)?;
        let workspace = Workspace { dropping: None, settings, applied, folders: BTreeMap::new(), folder };
        workspace.create_root()?;
        Ok(workspace)
    }

    /// Returns the conditions of the list that this machine cannot set, each once.
    pub(super) fn obstacles(&self, all: &[Settings]) -> Vec<Obstacle> {
        distinct_obstacles(all, &self.folder.path)
    }

    /// Returns whether conditions hold already, apart from that of the page cache.
    pub(super) fn have(&self, settings: &Settings) -> bool {
        self.settings == of_machine(settings)
    }

    /// Undoes the conditions and sets others. On an error, none hold.
    pub(super) fn set(&mut self, settings: &Settings) -> Result<()> {
        self.dropping = None;
        let none = Settings::default();
        let before =
            std::mem::replace(&mut self.applied, AppliedConditions::apply(&none, &self.folder.path)?);
        self.settings = none;
        before.undo()?;
        self.applied = AppliedConditions::apply(settings, &self.folder.path)?;
        self.settings = of_machine(settings);
        self.create_root()
    }

    fn create_root(&self) -> Result<()> {
        let root = self.root();
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?)
    }

    pub(super) fn applied(&self) -> &AppliedConditions {
        &self.applied
    }

    /// Returns the folder that contenders serve.
    pub(super) fn root(&self) -> PathBuf {
        self.applied.root().join("files")
    }

    /// Describes the workspace. `is_new` tells whether contenders must be started again.
    pub(super) fn location(&self, is_new: bool) -> Location {
        Location { root: self.root(), address: self.applied.address(), is_new }
    }

    /// Creates the folders of a start of a contender, and removes those of its last one, whose processes must
    /// have ended. Its data is on the file system of the conditions.
    pub(super) fn new_folders(&mut self, name: &str) -> Result<Folders> {
        // Uploaded files of earlier starts would fill the disk.
        for former in self.folders.remove(name).into_iter().flatten() {
            remove(&former)?;
        }
        // Configuration files and scripts have the path, some without quotes.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let prefix: String =
            name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect::<String>() + ".";
        let new_in = |folder: &Path| -> Result<PathBuf> {
            Ok(tempfile::Builder::new().prefix(&prefix).tempdir_in(folder)?.keep())
        };
        let (control, data) = (new_in(&self.folder.path)?, new_in(self.applied.root())?);
        // Servers that drop root's rights must be able to read. No other user may write: commands of the
        // contender, and servers before they drop the rights, follow the paths in these folders as root.
        let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
        for folder in [&control, &data] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
        }
        self.folders.insert(name.to_owned(), [control.clone(), data.clone()]);
        Ok(Folders { control, data })
    }

    /// Prepares the page cache for a trial with the files of a set, and starts to drop them at the interval
    /// of the condition. Returns the bytes of the files that the page cache has, if they are known.
    pub(super) fn prepare_cache(&mut self, cache: Cache, set: &FileSet) -> Result<Option<u64>> {
        let files = self.root().join(&set.folder);
        self.dropping = None;
        let cached = self.applied.before_trial(cache, &files)?;
        if let Cache::Dropped(every) = cache {
            self.dropping = Some(PeriodicDrop::start(files, every));
        }
        Ok(cached)
    }

    /// Ends the dropping of files. Returns how often they were dropped; `None` if they were not to be.
    pub(super) fn end_dropping(&mut self) -> Result<Option<u64>> {
        self.dropping.take().map(PeriodicDrop::stop).transpose()
    }
}

impl LockedFolder {
    /// Creates a folder below `work`, with a lock that the agent holds until it ends. It is a lock of the
    /// process: with flock(2), a program that a killed agent had just begun to start would hold it, too.
    fn create(work: &Path) -> Result<LockedFolder> {
        let unlocked = tempfile::Builder::new().prefix(NEW_PREFIX).tempdir_in(work)?;
        let lock = File::create(unlocked.path().join(LOCK))?;
        fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Under its name, the folder is locked from its first moment: without a lock, it is abandoned.
        let name = unlocked.path().file_name().and_then(|name| name.to_str()?.strip_prefix("new-"));
        let path = work.join(name.context("the name of the folder")?);
        fs::rename(&unlocked, &path)?;
        // Its name has gone: there is nothing to remove.
        let _ = unlocked.keep();
        Ok(LockedFolder { path, _lock: lock })
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // The next agent removes what stays.
        let _ = remove(&self.path);
    }
}

/// Removes a folder, unless it went with the image that it was on.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Removes the folders of agents that were killed.
fn remove_abandoned(work: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(work)?.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|folder| folder.is_dir() && folder.uid() == own)
            && own_path::unwritable_by_others(&path).is_ok();
        if is_ours && is_abandoned(&path) {
            // Another agent that starts now may do the same.
            remove(&path)?;
        }
    }
    Ok(())
}

/// Returns whether no agent holds the lock of a folder that only this user can write. It has none any more if
/// its agent was killed while it removed the folder.
fn is_abandoned(folder: &Path) -> bool {
    match File::options().write(true).open(folder.join(LOCK)) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(lock) => fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
    }
}

/// Returns the conditions of the machine. The page cache is prepared for each trial.
fn of_machine(settings: &Settings) -> Settings {
    Settings { cache: Cache::default(), ..settings.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_agent_was_killed_during_its_removal_is_removed_by_the_next() {
        let work = tempfile::tempdir().unwrap();
        let left = work.path().join("plimsoll-lab.abcdef");
        fs::create_dir_all(left.join("folder")).unwrap();
        remove_abandoned(work.path()).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn an_agent_that_ends_removes_its_folder() {
        let work = tempfile::tempdir().unwrap();
        let folder = LockedFolder::create(work.path()).unwrap();
        let names = || fs::read_dir(work.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names().collect::<Vec<_>>(), [folder.path.file_name().unwrap()]);
        assert!(folder.path.file_name().unwrap().to_str().unwrap().starts_with(PREFIX));
        drop(folder);
        assert_eq!(names().count(), 0);
    }
}
