//! Setting aside an entry that is to be replaced by a move or copy, but that a rename cannot replace.
//!
//! A file that replaces a file needs none of this. Invariants: the entry is put back if the later rename
//! fails. Nothing happens in between, because the home is locked.

use plimsoll_io::{Existing, File, FileKind, Fs, Stat};

use super::remove::subtree;
use crate::error::Result;
use crate::home::{LocalHome, ParentFolder, weight};
use crate::sweep::tree_name;
use crate::write::UploadId;

/// An entry that is set aside in a staging folder.
pub(super) struct DisplacedEntry {
    staging: File,
    name: Vec<u8>,
    was: Stat,
}

impl DisplacedEntry {
    /// Sets aside the entry at `target`, if a rename of an entry of the kind `coming` cannot replace it.
    pub(super) fn set(
        fs: &dyn Fs,
        home: &LocalHome,
        target: &ParentFolder<'_>,
        replaced: Option<&Stat>,
        coming: FileKind,
        id: UploadId,
    ) -> Result<Option<DisplacedEntry>> {
        let Some(was) = replaced.copied() else { return Ok(None) };
        let name = match (was.kind, coming) {
            (FileKind::Folder, _) => tree_name(id),
            (_, FileKind::Folder) => id.data_name(),
            _ => return Ok(None),
        };
        let staging = home.staging_for(fs, &target.folder)?;
        fs.rename(&target.folder, target.name, &staging, &name, Existing::Kept)?;
        Ok(Some(DisplacedEntry { staging, name, was }))
    }

    /// Puts the entry back.
    pub(super) fn put_back(self, fs: &dyn Fs, home: &LocalHome, target: &ParentFolder<'_>) {
        if let Err(error) = fs.rename(&self.staging, &self.name, &target.folder, target.name, Existing::Kept)
        {
            tracing::error!(home = home.name(), %error, "a replaced file could not be restored");
        }
    }

    /// Ends the replacement: subtracts the entry from the home's usage. Returns the folder with a tree that
    /// remains to be removed. It needs no lock: no other thread can reach the entry any more.
    pub(super) fn forget(self, fs: &dyn Fs, home: &LocalHome) -> Result<Option<File>> {
        if self.was.kind != FileKind::Folder {
            home.takes_off(weight(&self.was));
            fs.remove_file(&self.staging, &self.name)?;
            return Ok(None);
        }
        let tree = ParentFolder { folder: self.staging.clone(), name: &self.name };
        home.takes_off(subtree(fs, &tree, &self.was)?);
        Ok(Some(self.staging))
    }
}
