//! Moving a removed entry into the trash.
//!
//! It deletes nothing. Invariant: one rename takes the entry from its folder to the trash, so that a crash
//! leaves it in one of both.

use plimsoll_io::{Existing, FileKind, Fs, Io, Stat, Volume, Work};

use super::index::TrashItem;
use super::{DiskNeed, TrashFolder, TrashId, record};
use crate::backend::Removal;
use crate::change::{Disposal, Removed};
use crate::error::{Error, Result};
use crate::home::{LocalHome, weight};
use crate::limits::TRASH_ENTRIES_MAX;

/// The result of an attempt to move an entry into the trash.
enum Trashing {
    Moved(Removed),
    /// It is a folder, and stays: its removal takes as long as it is large.
    IsFolder,
    /// There can be no trash on its file system, or no space for a record, and it stays.
    NoTrash,
}

impl LocalHome {
    /// Whether removed entries go to the trash.
    pub(crate) fn has_trash(&self) -> bool {
        !self.common().trash_time().is_zero()
    }

    /// Removes an entry to the trash. None if that is impossible on its file system, or if that is full and
    /// the trash on it is empty: to free some space, the entry has to go for good.
    pub(crate) async fn remove_to_trash(&self, io: &Io, removal: &Removal) -> Result<Option<Removed>> {
        let id = TrashId::draw(io);
        let (home, asked) = (self.clone(), removal.clone());
        let moved = io.offload(Work::Writes, move |fs| home.move_to_trash(fs, &asked, id, false));
        let moved = match moved.await?? {
            Trashing::IsFolder => {
                let (home, asked) = (self.clone(), removal.clone());
                io.offload(Work::Chores, move |fs| home.move_to_trash(fs, &asked, id, true)).await??
            }
            moved => moved,
        };
        match moved {
            Trashing::Moved(removed) => Ok(Some(removed)),
            Trashing::IsFolder => Err(Error::IsFolder),
            Trashing::NoTrash => Ok(None),
        }
    }

    fn move_to_trash(
        &self,
        fs: &dyn Fs,
        removal: &Removal,
        id: TrashId,
        with_folders: bool,
    ) -> Result<Trashing> {
        let Removal { path, what, condition, disposal } = removal;
        let is_of_another = *disposal == Disposal::TrashOfAnother;
        // Another account than the owner removes nothing for good.
        let impossible = |error| if is_of_another { Err(error) } else { no_trash(error) };
        if let Err(error) = self.open_volume(fs, path) {
            return impossible(error);
        }
        let volume = {
            let _state = self.lock();
            let (place, stat) = self.removable(fs, path, *what, condition)?;
            if stat.kind == FileKind::Folder && !with_folders {
                return Ok(Trashing::IsFolder);
            }
            if is_of_another && self.trash_len() >= TRASH_ENTRIES_MAX {
                return Err(Error::Quota);
            }
            fs.volume(&place.folder)?
        };
        let staging = self.staging_on(volume)?;
        let recorded = self.with_disk_room(fs, DiskNeed::small(&staging, is_of_another), || {
            let trash = self.make_trash(fs, volume)?;
            record::write(fs, self, &trash, id, path)?;
            Ok(trash)
        });
        match recorded {
            Ok(trash) => self.move_recorded(fs, removal, &trash, id).map(Trashing::Moved),
            // Other writers have used what was dropped.
            Err(Error::Full) if self.has_trash_on(volume) => Err(Error::Full),
            Err(error) => impossible(error),
        }
    }

    /// Whether the trash has something on a volume whose deletion would free space.
    fn has_trash_on(&self, volume: Volume) -> bool {
        self.with_trash(|trash| trash.bytes_on(volume) > 0).unwrap_or_default()
    }

    /// Moves an entry whose record is synced.
    fn move_recorded(
        &self,
        fs: &dyn Fs,
        Removal { path, what, condition, disposal }: &Removal,
        trash: &TrashFolder,
        id: TrashId,
    ) -> Result<Removed> {
        let state = self.change();
        let moved = self.removable(fs, path, *what, condition).and_then(|(place, stat)| {
            fs.rename(&place.folder, place.name, &trash.folder, &id.entry_name(), Existing::Kept)?;
            Ok((place.folder, stat))
        });
        let (from, stat) = moved.inspect_err(|_| trash.remove_record(fs, id))?;
        // The target first: on a file system that writes both at different times, the entry has a name.
        let sync = || self.sync(fs, &[&trash.folder, &from]);
        if stat.kind == FileKind::Folder {
            // With the lock held, so that the name is not used again before.
            let synced = sync();
            drop(state);
            let counted = self.note_trashed_tree(fs, trash, id, &stat);
            if *disposal == Disposal::Trash {
                self.drop_surplus(fs, &self.lock(), TRASH_ENTRIES_MAX);
            }
            return synced.and(counted);
        }
        let usage = weight(&stat);
        self.note_trashed(id, TrashItem { kind: stat.kind, usage, volume: trash.volume });
        if *disposal == Disposal::Trash {
            self.drop_surplus(fs, &state, TRASH_ENTRIES_MAX);
        }
        drop(state);
        sync()?;
        Ok(Removed { usage, trashed: Some(id) })
    }

    /// Counts a tree in the trash. It needs no lock: until it is noted, no other thread can find the tree.
    fn note_trashed_tree(
        &self,
        fs: &dyn Fs,
        trash: &TrashFolder,
        id: TrashId,
        stat: &Stat,
    ) -> Result<Removed> {
        let counted = trash.count_tree(fs, id, stat).inspect_err(|_| self.forget_usage());
        let usage = counted?;
        self.note_trashed(id, TrashItem { kind: stat.kind, usage, volume: trash.volume });
        Ok(Removed { usage, trashed: Some(id) })
    }

    fn note_trashed(&self, id: TrashId, item: TrashItem) {
        self.with_trash(|trash| trash.insert(id, item));
    }
}

/// Returns [`Trashing::NoTrash`] if the error says that no record can be written where the entry is.
fn no_trash(error: Error) -> Result<Trashing> {
    match error {
        Error::Full | Error::Denied(_) | Error::ReadOnlyDisk => Ok(Trashing::NoTrash),
        error => Err(error),
    }
}
