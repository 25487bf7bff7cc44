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

/// The usage of a home, or the usage that a change adds to it.
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
}

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
    /// Checks whether a home may change from `before` to `after`. A value that does not grow is always
    /// allowed, even above the quota, which may have been lowered.
    pub(crate) fn allows(&self, before: Usage, after: Usage) -> Result<()> {
        let fits = |most: Option<u64>, before: u64, after: u64| {
            after <= before || most.is_none_or(|most| after <= most)
        };
        let all = fits(self.bytes, before.bytes, after.bytes)
            && fits(self.files, before.files, after.files)
            && fits(self.files, before.folders, after.folders);
        if all { Ok(()) } else { Err(Error::Quota) }
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
        let quota = Quota { bytes: Some(100), files: Some(2) };
        assert!(quota.allows(of(0, 0), of(100, 2)).is_ok());
        assert!(matches!(quota.allows(of(0, 0), of(101, 1)), Err(Error::Quota)));
        assert!(matches!(quota.allows(of(0, 2), of(0, 3)), Err(Error::Quota)));
        assert!(quota.allows(of(500, 9), of(400, 8)).is_ok(), "it shrinks");
        assert!(quota.allows(of(500, 9), of(500, 9)).is_ok());
        assert!(Quota::default().allows(of(0, 0), of(u64::MAX, u64::MAX)).is_ok());
    }
}
