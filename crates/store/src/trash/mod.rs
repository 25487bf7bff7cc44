//! The trash of a home: removed entries, kept for a while, and restored or dropped.
//!
//! It holds removed entries only: nothing of what an upload, a move or a copy replaces. Each entry is moved
//! there by one rename, however large it is, into the folder `trash` of the staging folder of its own file
//! system. That folder is created at the first removal. The entry's name there is its [`TrashId`], which has
//! the time of its removal.
//!
//! Invariants: the [record] with an entry's path is synced before the entry is moved, and removed only
//! after the entry's end in the trash is synced. So an entry has its record after any crash, and a record
//! without an entry is a leftover. The trash counts in the usage of its home. An entry leaves it under the
//! home's lock by one rename; a dropped one is deleted later, without the lock.

mod dropping;
mod id;
mod index;
mod listing;
mod record;
mod removal;
mod restoring;

use std::collections::HashSet;
use std::io;

use plimsoll_io::{File, FileKind, Fs, Stat, Volume};

pub(crate) use dropping::{DiskNeed, Dropped};
pub use id::TrashId;
pub(crate) use index::TrashIndex;
use index::TrashItem;
pub use listing::{TrashInfo, TrashPage, TrashedEntry};
#[cfg(feature = "fuzzing")]
pub use record::check_trash_record;

use crate::change::subtree;
use crate::error::{Error, Result};
use crate::home::{LocalHome, ParentFolder, weight};
use crate::store::folder_in;
use crate::usage::Usage;

/// The folder of the trash in a staging folder. No upload has this name.
pub(crate) const TRASH: &[u8] = b"trash";

/// The trash of a home on one file system.
struct TrashFolder {
    folder: File,
    volume: Volume,
}

impl LocalHome {
    /// The number of entries that no operation is moving.
    fn trash_len(&self) -> usize {
        self.with_trash(|trash| trash.len()).unwrap_or_default()
    }

    /// Opens the trash on a volume; none if nothing was removed there.
    fn trash_on(&self, fs: &dyn Fs, volume: Volume) -> Result<Option<TrashFolder>> {
        match fs.open_beneath(&self.staging_on(volume)?, TRASH) {
            Ok(folder) => Ok(Some(TrashFolder { folder, volume })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`LocalHome::trash_on`]. Creates a missing folder.
    fn make_trash(&self, fs: &dyn Fs, volume: Volume) -> Result<TrashFolder> {
        if let Some(trash) = self.trash_on(fs, volume)? {
            return Ok(trash);
        }
        Ok(TrashFolder { folder: folder_in(fs, &self.staging_on(volume)?, TRASH)?, volume })
    }

    /// Returns the entries of the trash on a volume. `is_first` removes leftovers of an earlier server: no
    /// removal may be in progress.
    pub(crate) fn read_trash(&self, fs: &dyn Fs, volume: Volume, is_first: bool) -> Result<TrashIndex> {
        let mut index = TrashIndex::default();
        let Some(trash) = self.trash_on(fs, volume)? else { return Ok(index) };
        let mut records = HashSet::new();
        for entry in fs.names(&trash.folder, usize::MAX)? {
            if let Some(id) = TrashId::parse(&entry.name) {
                let (kind, usage) = (entry.stat.kind, trash.usage_of(fs, id, &entry.stat)?);
                index.insert(id, TrashItem { kind, usage, volume });
            } else if let Some(id) = entry.name.get(..32).and_then(TrashId::parse)
                && entry.name == id.record_name()
            {
                records.insert(id);
            }
        }
        records.retain(|id| index.get(*id).is_none());
        if is_first && !records.is_empty() {
            // The entries may have been dropped without a sync.
            self.sync(fs, &[&trash.folder])?;
            records.into_iter().for_each(|id| trash.remove_record(fs, id));
        }
        Ok(index)
    }
}

/// Counts the entries of a trash that a running server may change meanwhile.
pub(crate) fn count_entries(fs: &dyn Fs, trash: &File) -> Result<Usage> {
    let mut usage = Usage::default();
    for entry in fs.names(trash, usize::MAX)? {
        if TrashId::parse(&entry.name).is_none() {
            continue;
        }
        let place = ParentFolder { folder: trash.clone(), name: &entry.name };
        match subtree(fs, &place, &entry.stat) {
            Err(Error::NotFound) => {}
            counted => usage = usage.plus(counted?),
        }
    }
    Ok(usage)
}

impl TrashIndex {
    /// Adds the entries of another volume.
    pub(crate) fn extend(&mut self, more: &TrashIndex) {
        more.newest(None, usize::MAX).into_iter().for_each(|(id, item)| self.insert(id, item));
    }
}

impl TrashFolder {
    /// Returns the usage of an entry. A tree is counted only if its record does not have the usage, which is
    /// then added.
    fn usage_of(&self, fs: &dyn Fs, id: TrashId, stat: &Stat) -> Result<Usage> {
        if stat.kind != FileKind::Folder {
            return Ok(weight(stat));
        }
        match record::read(fs, &self.folder, id)?.and_then(|record| record.usage) {
            Some(usage) => Ok(usage),
            None => self.count_tree(fs, id, stat),
        }
    }

    /// Counts a tree, and adds its usage to its record.
    fn count_tree(&self, fs: &dyn Fs, id: TrashId, stat: &Stat) -> Result<Usage> {
        let tree = ParentFolder { folder: self.folder.clone(), name: &id.entry_name() };
        let usage = subtree(fs, &tree, stat)?;
        if let Err(error) = record::add_usage(fs, &self.folder, id, usage) {
            tracing::info!(%id, %error, "a folder in the trash is counted again after the next start");
        }
        Ok(usage)
    }

    /// Removes the record of an entry that is gone. If that fails, the next server removes it.
    fn remove_record(&self, fs: &dyn Fs, id: TrashId) {
        match fs.remove_file(&self.folder, &id.record_name()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%id, %error, "the record of an entry of the trash was not removed");
            }
            _ => {}
        }
    }
}
