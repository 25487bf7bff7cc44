//! Dropping entries of the trash: at their owner's request, when they expire, and the oldest ones when an
//! operation needs their space.
//!
//! Invariants: an entry is dropped with the home locked, by one rename into the staging folder, and for the
//! quota only once the operation that needs its space has changed the home. Its record is removed only after
//! that rename is synced. The deletion needs no lock, and opens one entry at a time.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use plimsoll_io::{Existing, File, FileKind, Fs, Instant, Io, Volume, Work};

use super::index::TrashItem;
use super::{TrashId, TrashIndex};
use crate::change::Removed;
use crate::error::{Error, Result};
use crate::home::{LocalHome, State};
use crate::limits::{
    DISK_ROOM_ATTEMPTS_MAX, DISK_ROOM_BYTES_MIN, TRASH_CLEANED_EVERY, TRASH_DROPPED_AT_ONCE,
};
use crate::sweep::clear_tree;
use crate::usage::{RoomNeeded, Usage};

/// A dropped entry, which remains to be deleted in the staging folder of its volume.
pub(crate) struct Dropped {
    id: TrashId,
    kind: FileKind,
    volume: Volume,
}

/// The need of a write for space on a disk.
#[derive(Clone, Copy)]
pub(crate) struct DiskNeed<'a> {
    /// A folder of the file system.
    pub(crate) folder: &'a File,
    /// Bytes of this write.
    pub(crate) bytes: u64,
    /// Bytes of this write and the later ones of its operation, as far as they are known.
    pub(crate) ahead: u64,
    /// As [`crate::Quota::keeps_trash`].
    pub(crate) keeps_trash: bool,
}

impl DiskNeed<'_> {
    /// The need of a small file, or of a name.
    pub(crate) fn small(folder: &File, keeps_trash: bool) -> DiskNeed<'_> {
        DiskNeed { folder, bytes: 1, ahead: 1, keeps_trash }
    }
}

impl LocalHome {
    /// As [`crate::Home::drop_trashed`].
    pub(crate) async fn drop_trashed(&self, io: &Io, id: Option<TrashId>) -> Result<Removed> {
        self.usage(io).await?;
        // Entries that are removed meanwhile stay. The clock does not tell which: it may have been set back.
        let newest = self.with_trash(|trash| trash.newest(None, 1)).unwrap_or_default();
        let newest = newest.first().map(|(id, _)| *id);
        let is_meant = move |other: TrashId, _: &TrashItem| match id {
            Some(id) => other == id,
            None => Some(other) <= newest,
        };
        let mut usage = Usage::default();
        loop {
            let home = self.clone();
            let batch = io.offload(Work::Chores, move |fs| home.drop_batch(fs, is_meant)).await??;
            let Some(dropped) = batch else { break };
            usage = usage.plus(dropped);
            if id.is_some() {
                return Ok(Removed { usage, trashed: None });
            }
        }
        if id.is_some() { Err(Error::NotFound) } else { Ok(Removed { usage, trashed: None }) }
    }

    /// Drops the oldest entries that `is_meant`, at most [`TRASH_DROPPED_AT_ONCE`], and deletes them. Returns
    /// their usage; none if there are none.
    fn drop_batch(
        &self,
        fs: &dyn Fs,
        is_meant: impl Fn(TrashId, &TrashItem) -> bool,
    ) -> Result<Option<Usage>> {
        let mut usage = None::<Usage>;
        {
            let state = self.lock();
            for _ in 0..TRASH_DROPPED_AT_ONCE {
                let Some(dropped) = self.drop_oldest(fs, &state, &is_meant)? else { break };
                usage = Some(usage.unwrap_or_default().plus(dropped));
            }
        }
        self.delete_dropped(fs)?;
        Ok(usage)
    }

    /// Drops the oldest entry that `is_wanted`; if that fails, the oldest one on another file system. Returns
    /// its usage; none if there is no such entry.
    fn drop_oldest(
        &self,
        fs: &dyn Fs,
        _: &State,
        is_wanted: impl Fn(TrashId, &TrashItem) -> bool,
    ) -> Result<Option<Usage>> {
        let mut failed = Vec::new();
        let mut none = Ok(None);
        loop {
            let can_be = |item: &TrashItem| !failed.contains(&item.volume);
            let take =
                |trash: &mut TrashIndex| trash.take_oldest(|id, item| can_be(item) && is_wanted(id, item));
            let Some((id, item)) = self.with_trash(take).flatten() else { return none };
            match self.move_to_staging(fs, id, item) {
                Ok(()) => self.note_dropped(Dropped { id, kind: item.kind, volume: item.volume }),
                // Another program has deleted it.
                Err(Error::NotFound) => {}
                Err(error) => {
                    self.with_trash(|trash| trash.insert(id, item));
                    failed.push(item.volume);
                    none = none.and(Err(error));
                    continue;
                }
            }
            self.takes_off(item.usage);
            return Ok(Some(item.usage));
        }
    }

    fn move_to_staging(&self, fs: &dyn Fs, id: TrashId, item: TrashItem) -> Result<()> {
        let trash = self.trash_on(fs, item.volume)?.ok_or(Error::NotFound)?;
        let (staging, name) = (self.staging_on(item.volume)?, id.name_in_staging(item.kind));
        Ok(fs.rename(&trash.folder, &id.entry_name(), &staging, &name, Existing::Kept)?)
    }

    /// Drops the oldest entries that free some of what is needed, after a change for which the quota needs
    /// their space. An error leaves the home above its quota, and is logged: the change is not undone.
    /// An entry that is being restored meanwhile stays, too.
    pub(crate) fn make_room(&self, fs: &dyn Fs, state: &State, needed: RoomNeeded) {
        let RoomNeeded(mut left) = needed;
        while left != Usage::default() {
            let helps = |_: TrashId, item: &TrashItem| left.minus(item.usage) != left;
            match self.drop_oldest(fs, state, helps) {
                Ok(Some(dropped)) => left = left.minus(dropped),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(home = self.name(), %error, "the trash could not make room");
                    return;
                }
            }
        }
    }

    /// Drops the oldest entry if there are more than `most`.
    pub(super) fn drop_surplus(&self, fs: &dyn Fs, state: &State, most: usize) {
        if self.trash_len() > most
            && let Err(error) = self.drop_oldest(fs, state, |_, _| true)
        {
            tracing::warn!(home = self.name(), %error, "the oldest entry of the trash was not dropped");
        }
    }

    /// Runs `write`. If the disk is full, the oldest entries of the trash are deleted there, and it runs
    /// again. Call it without the lock, and where the disk may be waited for.
    pub(crate) fn with_disk_room<T>(
        &self,
        fs: &dyn Fs,
        need: DiskNeed<'_>,
        mut write: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        for _ in 0..DISK_ROOM_ATTEMPTS_MAX {
            match write() {
                Err(Error::Full) if !need.keeps_trash && self.free_disk(fs, need)? => {}
                written => return written,
            }
        }
        write()
    }

    /// Deletes the oldest entries of the trash that are needed. Returns whether it deleted any.
    fn free_disk(&self, fs: &dyn Fs, DiskNeed { folder, bytes, ahead, .. }: DiskNeed<'_>) -> Result<bool> {
        // Those that were dropped for the quota may suffice.
        if self.delete_dropped(fs)? {
            return Ok(true);
        }
        let (volume, mut left) = (fs.volume(folder)?, bytes.max(DISK_ROOM_BYTES_MIN));
        let droppable = self.with_trash(|trash| trash.bytes_on(volume)).unwrap_or_default();
        if fs.space(folder)?.bytes.saturating_add(droppable) < ahead {
            // It would fail all the same.
            return Ok(false);
        }
        while left > 0 {
            let dropped = self.drop_oldest(fs, &self.lock(), |_, item| item.volume == volume)?;
            let Some(usage) = dropped else { break };
            left = left.saturating_sub(usage.bytes);
        }
        self.delete_dropped(fs)
    }

    /// Deletes the dropped entries. Returns whether it deleted any.
    ///
    /// # Errors
    /// Any error of making the drop durable. The entries of that file system are deleted later.
    fn delete_dropped(&self, fs: &dyn Fs) -> Result<bool> {
        let (mut has_deleted, mut later, mut synced) = (false, Vec::new(), Ok(()));
        loop {
            let mut batch = self.take_dropped(TRASH_DROPPED_AT_ONCE);
            while let Some(volume) = batch.first().map(|dropped| dropped.volume) {
                let (of_volume, others) = batch.into_iter().partition(|it: &Dropped| it.volume == volume);
                batch = others;
                match self.delete_on(fs, volume, &of_volume) {
                    Ok(()) => has_deleted = true,
                    Err(error) => {
                        later.extend(of_volume);
                        synced = Err(error);
                    }
                }
            }
            if !self.has_dropped() {
                break;
            }
        }
        later.into_iter().for_each(|dropped| self.note_dropped(dropped));
        synced.map(|()| has_deleted)
    }

    /// Deletes dropped entries of one volume.
    fn delete_on(&self, fs: &dyn Fs, volume: Volume, all: &Vec<Dropped>) -> Result<()> {
        let Some(trash) = self.trash_on(fs, volume)? else { return Ok(()) };
        let staging = self.staging_on(volume)?;
        self.sync(fs, &[&trash.folder])?;
        for Dropped { id, kind, .. } in all {
            trash.remove_record(fs, *id);
            let name = id.name_in_staging(*kind);
            let deleted = match kind {
                FileKind::Folder => clear_tree(fs, &staging, &name),
                _ => fs.remove_file(&staging, &name).map_err(Error::from),
            };
            if let Err(error) = deleted {
                tracing::warn!(home = self.name(), %error, "an entry of the trash was not deleted");
            }
        }
        Ok(())
    }

    /// Deletes dropped entries and drops expired ones, if it is time for it, as long-running work.
    pub(crate) fn tidy_trash(&self, io: &Io) {
        let (now, wall) = (io.now(), io.wall());
        if !self.has_dropped() && !self.is_cleanup_due(now) {
            return;
        }
        let home = self.clone();
        let handed = io.hand_off(Work::Chores, move |fs| {
            if let Err(error) = home.delete_dropped(fs) {
                tracing::warn!(home = home.name(), %error, "dropped entries of the trash were not deleted");
            }
            home.drop_expired(fs, wall);
        });
        if handed.is_err() {
            tracing::info!(home = self.name(), "the trash is cleaned up later");
        }
    }

    /// Whether the trash has entries, and was not searched for expired ones within the interval. Starts the
    /// next interval then.
    fn is_cleanup_due(&self, now: Instant) -> bool {
        let nanos = |at: Instant| u64::try_from(at.since_start().as_nanos()).unwrap_or(u64::MAX);
        let due = self.trash_due().load(Ordering::Relaxed);
        if nanos(now) < due || self.trash_len() == 0 {
            return false;
        }
        self.trash_due().store(nanos(now + TRASH_CLEANED_EVERY), Ordering::Relaxed);
        true
    }

    fn drop_expired(&self, fs: &dyn Fs, now: SystemTime) {
        let time = self.common().trash_time();
        let has_expired = |id: TrashId, _: &TrashItem| id.removed() + time <= now;
        loop {
            match self.drop_batch(fs, has_expired) {
                Ok(None) => return,
                Ok(Some(_)) => {}
                Err(error) => {
                    tracing::warn!(home = self.name(), %error, "expired entries of the trash stay");
                    return;
                }
            }
        }
    }
}
