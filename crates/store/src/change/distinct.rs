//! Whether the two ends of a move or copy are one thing by another name: a link and its target, two names of
//! one file, or a folder that a link leads into.
//!
//! Paths alone do not tell ([`super::rename::check_paths`] compares those). Invariant: a move never destroys
//! what it moves.

use std::io;

use plimsoll_io::{File, FileKind, Fs, Stat};

use super::rename::LocalEnd;
use crate::error::{Error, Result};
use crate::home::ParentFolder;

/// The entry that is moved or copied.
pub(super) struct SourceEntry {
    /// The folder that has its name.
    pub(super) parent: File,
    /// The metadata of the file or folder that a reader finds; none for a dangling link.
    pub(super) found: Option<Stat>,
    /// That folder, open, if it is one.
    pub(super) folder: Option<File>,
    /// Whether it is a link that is moved itself, and not its target.
    pub(super) is_link: bool,
}

impl SourceEntry {
    /// Looks up the entry to move. `named` is the metadata of the name: if that is a link, of the link.
    pub(super) fn moved(
        fs: &dyn Fs,
        from: &LocalEnd,
        source: &ParentFolder<'_>,
        named: &Stat,
    ) -> Result<Self> {
        let is_link = named.kind == FileKind::Other;
        let opened = match named.kind {
            FileKind::File => None,
            _ => opened(fs.open_beneath(from.home.files(), &from.path.to_open()))?,
        };
        let found = match &opened {
            Some(file) => Some(fs.stat(file)?),
            None => Some(*named).filter(|_| !is_link),
        };
        let folder = opened.filter(|_| found.is_some_and(|stat| stat.kind == FileKind::Folder));
        Ok(SourceEntry { parent: source.folder.clone(), found, folder, is_link })
    }

    /// Looks up an entry that is to be copied: of a link, its target.
    pub(super) fn copied(fs: &dyn Fs, from: &LocalEnd) -> Result<Self> {
        let opened = fs.open_beneath(from.home.files(), &from.path.to_open())?;
        let stat = fs.stat(&opened)?;
        let folder = (stat.kind == FileKind::Folder).then_some(opened);
        // The home itself is in no folder, and all of its folders are below it.
        let parent = match from.home.place(fs, &from.path) {
            Err(Error::Home) => from.home.files().clone(),
            place => place?.folder,
        };
        Ok(SourceEntry { parent, found: Some(stat), folder, is_link: false })
    }

    /// Checks that neither this entry nor the entry `replaced` at `target` is the other, or lies within it.
    /// Call it with the states locked.
    ///
    /// # Errors
    /// [`Error::IntoItself`].
    pub(super) fn check_distinct(
        &self,
        fs: &dyn Fs,
        to: &LocalEnd,
        target: &ParentFolder<'_>,
        replaced: Option<&Stat>,
    ) -> Result<()> {
        if self.is_found_at(fs, to, replaced)?
            || self.holds(fs, &target.folder)?
            || self.is_held_by(fs, target, replaced)?
        {
            return Err(Error::IntoItself);
        }
        Ok(())
    }

    /// Whether a reader finds the same file or folder at `to`.
    fn is_found_at(&self, fs: &dyn Fs, to: &LocalEnd, replaced: Option<&Stat>) -> Result<bool> {
        let there = match replaced {
            Some(stat) if stat.kind == FileKind::Other => to.home.metadata_at(fs, &to.path)?,
            other => other.copied(),
        };
        let is_same = |(one, other): (Stat, Stat)| (one.device, one.inode) == (other.device, other.inode);
        Ok(self.found.zip(there).is_some_and(is_same))
    }

    /// Whether it is a folder that is `folder` or has it. A link may move into the folder that it leads to.
    fn holds(&self, fs: &dyn Fs, folder: &File) -> Result<bool> {
        match &self.folder {
            Some(source) if !self.is_link => Ok(fs.is_below(folder, source)?),
            _ => Ok(false),
        }
    }

    /// Whether it lies in the folder that is to be replaced.
    fn is_held_by(&self, fs: &dyn Fs, target: &ParentFolder<'_>, replaced: Option<&Stat>) -> Result<bool> {
        if replaced.is_none_or(|stat| stat.kind != FileKind::Folder) {
            return Ok(false);
        }
        let above = fs.open_beneath(&target.folder, target.name)?;
        Ok(fs.is_below(&self.parent, &above)?
            || self.folder.as_ref().map_or(Ok(false), |folder| fs.is_below(folder, &above))?)
    }

    /// Whether it is a link that named something before, and nothing now: a folder that was set aside since
    /// held its target.
    pub(super) fn has_lost_target(&self, fs: &dyn Fs, from: &LocalEnd) -> Result<bool> {
        Ok(self.is_link && self.found.is_some() && from.home.metadata_at(fs, &from.path)?.is_none())
    }
}

/// Returns an opened file; none if it does not exist.
fn opened(opened: io::Result<File>) -> Result<Option<File>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
