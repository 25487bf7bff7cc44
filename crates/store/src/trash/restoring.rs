//! Restoring an entry of the trash.
//!
//! Invariants: nothing is replaced. The entry has its record until its new name is synced.

use std::io;

use plimsoll_io::{Existing, FileKind, Fs, Io, Volume, Work};

use super::index::TrashItem;
use super::{TrashId, record};
use crate::change::check_tree_depth;
use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;
use crate::usage::Quota;

/// An entry that is being restored. It counts in the home's usage, and is not in the index: no other
/// operation touches it until this is dropped.
struct Restoring<'a> {
    home: &'a LocalHome,
    id: TrashId,
    item: Option<TrashItem>,
}

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        if let Some(item) = self.item {
            self.home.with_trash(|trash| trash.insert(self.id, item));
        }
    }
}

impl LocalHome {
    /// As [`crate::Home::restore`].
    pub(crate) async fn restore(&self, io: &Io, id: TrashId, to: Option<Path>, quota: Quota) -> Result<Path> {
        loop {
            self.usage(io).await?;
            let (home, to) = (self.clone(), to.clone());
            let restored = io.offload(Work::Writes, move |fs| home.restore_now(fs, id, to, quota)).await?;
            match restored {
                // The count was given up meanwhile, and with it the index of the trash.
                Err(Error::NotFound) if self.with_trash(|_| ()).is_none() => {}
                restored => return restored,
            }
        }
    }

    /// Returns the volume of the nearest folder above `path` that exists.
    fn volume_above(&self, fs: &dyn Fs, path: &Path) -> Result<Volume> {
        for folder in std::iter::successors(path.parent(), Path::parent) {
            match fs.open_beneath(self.files(), &folder.to_open()) {
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                opened => return Ok(fs.volume(&opened?)?),
            }
        }
        Ok(fs.volume(self.files())?)
    }

    fn restore_now(&self, fs: &dyn Fs, id: TrashId, to: Option<Path>, quota: Quota) -> Result<Path> {
        let item = self.with_trash(|trash| trash.take(id)).flatten().ok_or(Error::NotFound)?;
        let mut restoring = Restoring { home: self, id, item: Some(item) };
        let trash = self.trash_on(fs, item.volume)?.ok_or(Error::NotFound)?;
        let original = record::read(fs, &trash.folder, id)?.map(|record| record.path);
        let is_elsewhere = to.is_some() && to != original;
        let to = to.or(original).map_or_else(|| id.recovered_path(), Ok)?;
        // Before folders are created, for which entries may be dropped.
        if to.is_root() {
            return Err(Error::Home);
        }
        if matches!(self.metadata_at(fs, &to), Ok(Some(_))) {
            return Err(Error::AlreadyExists);
        }
        if is_elsewhere && item.kind == FileKind::Folder {
            check_tree_depth(fs, &trash.folder, id.entry_name(), to.depth())?;
        }
        if self.volume_above(fs, &to)? != item.volume {
            return Err(Error::OtherDisk);
        }
        self.make_parents(fs, &to, quota)?;
        self.open_volume(fs, &to)?;
        let state = self.change();
        let place = self.place(fs, &to)?;
        if place.stat(fs)?.is_some() {
            return Err(Error::AlreadyExists);
        }
        if is_elsewhere {
            place.check_new(None)?;
        }
        if fs.volume(&place.folder)? != item.volume {
            return Err(Error::OtherDisk);
        }
        fs.rename(&trash.folder, &id.entry_name(), &place.folder, place.name, Existing::Kept)?;
        restoring.item = None;
        // A count of the home meanwhile may have found it in the trash.
        self.with_trash(|trash| trash.take(id));
        // With the lock held, so that nothing is stored in a folder whose name is not synced.
        self.sync(fs, &[&place.folder, &trash.folder])?;
        drop(state);
        trash.remove_record(fs, id);
        Ok(to)
    }
}
