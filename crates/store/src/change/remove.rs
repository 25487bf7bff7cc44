//! Removing a file, an empty folder, or a folder with all its contents.
//!
//! With a [trash](crate::trash), entries go there, unless the caller asks for their removal for good.
//! Invariant: a folder is removed as a whole. It must leave the home at once, by a rename; its contents are
//! removed afterwards.

use serde::{Deserialize, Serialize};
use std::io;

use plimsoll_io::{Existing, File, FileKind, Fs, Io, Stat, Work};

use crate::backend::Removal;
use crate::condition::Condition;
use crate::error::{Error, Result};
use crate::home::{LocalHome, ParentFolder, weight};
use crate::limits::COUNT_SLICE_ENTRIES;
use crate::path::Path;
use crate::sweep::tree_name;
use crate::trash::TrashId;
use crate::usage::{self, Usage};
use crate::write::UploadId;

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The usage of all removed entries.
    pub usage: Usage,
    /// The entry of the trash that they are, if they are there.
    pub trashed: Option<TrashId>,
}

/// Where a removed entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disposal {
    /// To the trash of its home, if it has one. Its oldest entry goes if there are too many.
    Trash,
    /// As `Trash`, at the request of another account than the home's: no entry goes for it.
    TrashOfAnother,
    /// It is deleted for good.
    Deleted,
}

/// The kind of entry that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemovalKind {
    /// Any entry; a folder with all its contents.
    Any,
    /// A file or a link.
    File,
    /// A folder that no listing shows an entry of.
    EmptyFolder,
}

impl LocalHome {
    /// As [`crate::Home::remove`].
    pub(crate) async fn remove(&self, io: &Io, removal: Removal) -> Result<Removed> {
        self.usage(io).await?;
        let to_trash = removal.disposal != Disposal::Deleted && self.has_trash();
        // A folder without contents is not worth an entry: a restored file has it created again.
        if to_trash
            && removal.what != RemovalKind::EmptyFolder
            && let Some(removed) = self.remove_to_trash(io, &removal).await?
        {
            return Ok(removed);
        }
        let Removal { path, what: kind, condition, .. } = removal.clone();
        let (home, asked, when) = (self.clone(), path.clone(), condition.clone());
        let removed = io.offload(Work::Writes, move |fs| home.remove_now(fs, &asked, kind, &when)).await??;
        if let Some(usage) = removed {
            return Ok(Removed { usage, trashed: None });
        }
        // It has dangling links.
        if to_trash
            && kind == RemovalKind::EmptyFolder
            && let Some(removed) = self.remove_to_trash(io, &removal).await?
        {
            return Ok(removed);
        }
        // Counting the removed entries takes as long as the folder is large.
        let (home, id) = (self.clone(), UploadId::draw(io));
        let (usage, staging) =
            io.offload(Work::Chores, move |fs| home.remove_folder(fs, &path, kind, &condition, id)).await??;
        self.clear_later(io, staging, id);
        Ok(Removed { usage, trashed: None })
    }

    /// As [`crate::Home::check_removal`].
    pub(crate) async fn check_removal(
        &self,
        io: &Io,
        path: Path,
        kind: RemovalKind,
        condition: Condition,
    ) -> Result<()> {
        let home = self.clone();
        let checked = io.offload(Work::Writes, move |fs| {
            let _state = home.lock();
            home.removable(fs, &path, kind, &condition).map(drop)
        });
        checked.await?
    }

    /// Returns the place and the metadata of an entry that may be removed. Call it with the state locked.
    pub(crate) fn removable<'a>(
        &self,
        fs: &dyn Fs,
        path: &'a Path,
        kind: RemovalKind,
        condition: &Condition,
    ) -> Result<(ParentFolder<'a>, Stat)> {
        let place = self.place(fs, path).map_err(|error| match error {
            // For a removal, a missing parent folder is the same as a missing entry.
            Error::NoFolder => Error::NotFound,
            other => other,
        })?;
        let stat = place.stat(fs)?.ok_or(Error::NotFound)?;
        if stat.kind == FileKind::Folder && place.is_mount(fs)? {
            return Err(Error::OtherDisk);
        }
        kind.check(&stat)?;
        if kind == RemovalKind::EmptyFolder && !self.lists_empty(fs, path)? {
            return Err(Error::NotEmpty);
        }
        if condition.holds(self.metadata_at(fs, path)?.as_ref()) {
            Ok((place, stat))
        } else {
            Err(Error::Precondition)
        }
    }

    /// Whether no listing of the home's owner shows an entry of the folder `path`: neither dangling links nor
    /// devices are shown.
    fn lists_empty(&self, fs: &dyn Fs, path: &Path) -> Result<bool> {
        let mut folder = fs.read_folder(self.files(), path.as_bytes())?;
        loop {
            let entries = folder.read(COUNT_SLICE_ENTRIES)?;
            if entries.is_empty() {
                return Ok(true);
            }
            if entries.iter().any(|entry| entry.stat.kind != FileKind::Other) {
                return Ok(false);
            }
        }
    }

    /// Removes a file or an empty folder at once. None for a folder that may have contents, which stays.
    fn remove_now(
        &self,
        fs: &dyn Fs,
        path: &Path,
        kind: RemovalKind,
        condition: &Condition,
    ) -> Result<Option<Usage>> {
        let state = self.change();
        let (place, stat) = self.removable(fs, path, kind, condition)?;
        match (stat.kind, kind) {
            (FileKind::Folder, RemovalKind::EmptyFolder) => {
                match fs.remove_folder(&place.folder, place.name) {
                    // Dangling links, which no listing shows: they go with the folder.
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(None),
                    removed => removed?,
                }
                self.takes_off(weight(&stat));
                // With the lock held, so that the name is not used again before.
                self.sync(fs, &[&place.folder])?;
            }
            (FileKind::Folder, _) => return Ok(None),
            _ => {
                fs.remove_file(&place.folder, place.name)?;
                self.takes_off(weight(&stat));
                drop(state);
                self.sync(fs, &[&place.folder])?;
            }
        }
        Ok(Some(weight(&stat)))
    }

    /// Moves a folder out of the home. Returns its usage, and the folder in which it is to be deleted.
    fn remove_folder(
        &self,
        fs: &dyn Fs,
        path: &Path,
        kind: RemovalKind,
        condition: &Condition,
        id: UploadId,
    ) -> Result<(Usage, File)> {
        self.open_volume(fs, path)?;
        let state = self.change();
        let (place, _) = self.removable(fs, path, kind, condition)?;
        let staging = self.staging_for(fs, &place.folder)?;
        fs.rename(&place.folder, place.name, &staging, &tree_name(id), Existing::Kept)?;
        // With the lock held, so that the name is not used again before.
        self.sync(fs, &[&place.folder])?;
        drop(state);
        // Without the lock: no other thread can reach the tree any more.
        let tree = ParentFolder { folder: staging.clone(), name: &tree_name(id) };
        let usage = subtree(fs, &tree, &fs.stat_name(&staging, &tree_name(id))?)?;
        self.takes_off(usage);
        Ok((usage, staging))
    }

    /// Removes a tree in a staging folder later, as long-running work.
    pub(super) fn clear_later(&self, io: &Io, staging: File, id: UploadId) {
        let home = self.clone();
        let cleared = io.hand_off(Work::Chores, move |fs| home.clear_trees(fs, &staging, &[tree_name(id)]));
        if cleared.is_err() {
            tracing::warn!(home = self.name(), "a removed folder is deleted at the next start");
        }
    }
}

impl RemovalKind {
    /// Checks that the entry is of this kind.
    fn check(self, stat: &Stat) -> Result<()> {
        match (self, stat.kind) {
            (RemovalKind::File, FileKind::Folder) => Err(Error::IsFolder),
            (RemovalKind::EmptyFolder, FileKind::File | FileKind::Other) => Err(Error::NotFolder),
            _ => Ok(()),
        }
    }
}

/// The usage of an entry and all below it.
pub(crate) fn subtree(fs: &dyn Fs, place: &ParentFolder<'_>, stat: &Stat) -> Result<Usage> {
    if stat.kind != FileKind::Folder {
        return Ok(weight(stat));
    }
    let folder = fs.open_beneath(&place.folder, place.name)?;
    Ok(usage::count(fs, &folder)?.plus(Usage::FOLDER))
}
