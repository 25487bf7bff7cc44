//! The usage of a home, and its quota.
//!
//! The usage is not stored: it is counted at its first use, and updated by every later change. Invariant: a
//! fresh count always agrees.

use std::ops::ControlFlow;

use plimsoll_io::{File, FileKind, Fs};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::LEVELS_MAX;
use crate::volumes::STAGING;

/// The usage of a home, with its trash, or the usage that a change adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes in files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Folders, the home itself not among them.
    pub folders: u64,
}

/// The most that a home may hold. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Bytes in files. Uploads in progress may take as much again.
    pub bytes: Option<u64>,
    /// Files. As many folders are allowed in addition.
    pub files: Option<u64>,
    /// Whether no entry of the trash is dropped to make room: for a request of another account than the
    /// home's, which could otherwise delete for good what the owner can still restore.
    #[serde(default)]
    pub keeps_trash: bool,
}

/// The usage that must leave the trash so that a change fits into the quota.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoomNeeded(pub(crate) Usage);

impl Usage {
    /// One file of `bytes`.
    pub(crate) fn file(bytes: u64) -> Usage {
        Usage { bytes, files: 1, folders: 0 }
    }

    /// One empty folder.
    pub(crate) const FOLDER: Usage = Usage { bytes: 0, files: 0, folders: 1 };

    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
            folders: self.folders.saturating_add(other.folders),
        }
    }

    pub(crate) fn minus(self, other: Usage) -> Usage {
        Usage {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
            folders: self.folders.saturating_sub(other.folders),
        }
    }
}

impl Quota {
    /// Checks whether a home may change from `before` to `after`, if entries of the trash with a usage of
    /// `trash` can make room. A value that does not grow is always allowed, even above the quota, which may
    /// have been lowered. Returns the usage that must leave the trash.
    pub(crate) fn allows(&self, before: Usage, after: Usage, trash: Usage) -> Result<RoomNeeded> {
        let surplus = |most: Option<u64>, before: u64, after: u64| match most {
            Some(most) if after > before => after.saturating_sub(most),
            _ => 0,
        };
        let needed = Usage {
            bytes: surplus(self.bytes, before.bytes, after.bytes),
            files: surplus(self.files, before.files, after.files),
            folders: surplus(self.files, before.folders, after.folders),
        };
        let trash = if self.keeps_trash { Usage::default() } else { trash };
        let is_enough =
            needed.bytes <= trash.bytes && needed.files <= trash.files && needed.folders <= trash.folders;
        if is_enough { Ok(RoomNeeded(needed)) } else { Err(Error::Quota) }
    }
}

/// Counts the contents of a folder, without the folder itself. Links and devices count nothing.
pub(crate) fn count(fs: &dyn Fs, folder: &File) -> Result<Usage> {
    let mut counting = Counting::new(folder.clone());
    while counting.advance(fs, usize::MAX)?.is_continue() {}
    Ok(counting.usage)
}

/// A count of a folder's contents, done in slices.
pub(crate) struct Counting {
    /// The count so far.
    pub(crate) usage: Usage,
    /// Levels of folders that were found.
    pub(crate) levels: usize,
    /// Folders to be counted: by name in their parent, so that few are open at a time.
    ahead: Vec<(File, Vec<u8>, usize)>,
}

impl Counting {
    pub(crate) fn new(folder: File) -> Counting {
        Counting { usage: Usage::default(), levels: 0, ahead: vec![(folder, Vec::new(), 0)] }
    }

    /// Counts about `entries` more, or up to the end.
    pub(crate) fn advance(&mut self, fs: &dyn Fs, entries: usize) -> Result<ControlFlow<()>> {
        let mut seen = 0;
        while seen < entries {
            let Some((parent, name, level)) = self.ahead.pop() else { return Ok(ControlFlow::Break(())) };
            let Some(folder) = subfolder(fs, &parent, &name)? else { continue };
            for entry in fs.names(&folder, usize::MAX)? {
                seen += 1;
                match entry.stat.kind {
                    FileKind::File => self.usage = self.usage.plus(Usage::file(entry.stat.size)),
                    FileKind::Folder if entry.name == STAGING => {}
                    FileKind::Folder => {
                        self.usage = self.usage.plus(Usage::FOLDER);
                        self.levels = self.levels.max(level + 1);
                        if level < LEVELS_MAX {
                            self.ahead.push((folder.clone(), entry.name, level + 1));
                        }
                    }
                    FileKind::Other => {}
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Opens a folder in an open one, or that one itself if `name` is empty; none if it no longer exists.
fn subfolder(fs: &dyn Fs, parent: &File, name: &[u8]) -> Result<Option<File>> {
    match fs.open_beneath(parent, name) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64, files: u64) -> Usage {
        Usage { bytes, files, folders: 0 }
    }

    #[test]
    fn a_quota_bounds_what_grows_and_nothing_else() {
        let quota = Quota { bytes: Some(100), files: Some(2), keeps_trash: false };
        let allows = |before, after| quota.allows(before, after, Usage::default());
        assert!(allows(of(0, 0), of(100, 2)).is_ok());
        assert!(matches!(allows(of(0, 0), of(101, 1)), Err(Error::Quota)));
        assert!(matches!(allows(of(0, 2), of(0, 3)), Err(Error::Quota)));
        assert!(allows(of(500, 9), of(400, 8)).is_ok(), "it shrinks");
        assert!(allows(of(500, 9), of(500, 9)).is_ok());
        assert!(Quota::default().allows(of(0, 0), of(u64::MAX, u64::MAX), Usage::default()).is_ok());
    }

    #[test]
    fn the_trash_makes_room_as_far_as_it_suffices_in_each_value() {
        let quota = Quota { bytes: Some(100), files: Some(2), keeps_trash: false };
        let needed = |after, trash| quota.allows(of(90, 2), after, trash).map(|needed| needed.0);
        assert_eq!(needed(of(100, 2), of(50, 1)).unwrap(), of(0, 0));
        assert_eq!(needed(of(120, 3), of(50, 1)).unwrap(), of(20, 1));
        assert!(matches!(needed(of(141, 2), of(40, 1)), Err(Error::Quota)));
        assert!(matches!(needed(of(95, 4), of(50, 1)), Err(Error::Quota)));
        let of_another = Quota { keeps_trash: true, ..quota };
        assert!(matches!(of_another.allows(of(90, 2), of(120, 2), of(50, 1)), Err(Error::Quota)));
        assert!(of_another.allows(of(90, 2), of(100, 2), of(50, 1)).is_ok());
    }
}
