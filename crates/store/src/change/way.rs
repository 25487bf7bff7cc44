//! Making way for what is moved or copied onto something that a rename cannot replace by itself.
//!
//! A file that takes a file's place needs none of this. What must hold: what is set aside comes back if the
//! rename after it fails, and nothing can happen in between, since the home is locked.

use plimsoll_io::{Existing, FileKind, Fs, Stat};

use super::remove::subtree;
use crate::error::Result;
use crate::home::{Home, Place, weight};
use crate::sweep::tree_name;
use crate::write::UploadId;

/// What was set aside, in `pending`.
pub(super) struct Aside {
    name: Vec<u8>,
    was: Stat,
}

impl Aside {
    /// Sets aside what has the name of `target`, if something of the kind `coming` cannot replace it.
    pub(super) fn set(
        fs: &dyn Fs,
        home: &Home,
        target: &Place<'_>,
        replaced: Option<&Stat>,
        coming: FileKind,
        id: UploadId,
    ) -> Result<Option<Aside>> {
        let Some(was) = replaced.copied() else { return Ok(None) };
        let name = match (was.kind, coming) {
            (FileKind::Folder, _) => tree_name(id),
            (_, FileKind::Folder) => id.data_name(),
            _ => return Ok(None),
        };
        fs.rename(&target.folder, target.name, home.pending(), &name, Existing::Kept)?;
        Ok(Some(Aside { name, was }))
    }

    /// Puts it back where it was.
    pub(super) fn put_back(self, fs: &dyn Fs, home: &Home, target: &Place<'_>) {
        if let Err(error) = fs.rename(home.pending(), &self.name, &target.folder, target.name, Existing::Kept)
        {
            tracing::error!(home = home.name(), %error, "what was to be replaced could not be put back");
        }
    }

    /// It is replaced: takes it off what the home holds. Tells whether a tree is left to be cleared away.
    /// Without the lock: nobody can reach it any more.
    pub(super) fn forget(self, fs: &dyn Fs, home: &Home) -> Result<bool> {
        if self.was.kind != FileKind::Folder {
            home.takes_off(weight(&self.was));
            fs.remove_file(home.pending(), &self.name)?;
            return Ok(false);
        }
        let tree = Place { folder: home.pending().clone(), name: &self.name };
        home.takes_off(subtree(fs, &tree, &self.was)?);
        Ok(true)
    }
}
