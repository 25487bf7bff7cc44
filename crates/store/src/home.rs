//! A home: one account's files, its uploads, and the lock under which all of them change.
//!
//! It does not write contents ([`crate::write`] does). Invariants: every change of a name in the home is
//! made with [`State`] locked, and so is the check of its conditions. A change of visible files holds a
//! [`Change`].

use std::collections::HashMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::SystemTime;

use plimsoll_io::{File, FileKind, Fs, Io, Stat, Volume, Work};

use crate::error::{Error, Result};
use crate::finished::Completed;
use crate::generation::{Generation, GenerationCounter};
use crate::limits::COPIES_PER_HOME_MAX;
use crate::owner::HomeOwner;
use crate::path::{Path, check_new_name};
use crate::store::Common;
use crate::trash::{Dropped, TrashIndex};
use crate::usage::{self, Quota, RoomNeeded, Usage};
use crate::volumes::{StagingName, Volumes};
use crate::write::{SharedUpload, UploadId};

/// The files of one account. Clones are the same home.
#[derive(Clone)]
pub(crate) struct LocalHome(Arc<Inner>);

struct Inner {
    owner: HomeOwner,
    files: File,
    pending: File,
    /// The volume of `pending`.
    volume: Volume,
    /// Whether `files` is another one: it could not be written when the home was opened.
    is_divided: bool,
    /// The other volumes in the home.
    volumes: Volumes,
    /// Whether both folders are on a file system in memory, where nothing waits for a disk.
    is_in_memory: bool,
    common: Arc<Common>,
    state: Mutex<State>,
    generation: GenerationCounter,
    /// The home's usage; none until it is counted. It has a lock of its own, which is held only for a
    /// moment, so an event loop may take it too. The state, in contrast, stays locked while the disk is
    /// waited for. After the count it is only adjusted, never set: removed trees are subtracted while other
    /// threads hold the state.
    usage: Mutex<Option<CountedUsage>>,
    /// Whether the trash was read since the home was opened.
    has_read_trash: AtomicBool,
    /// When the trash is searched for expired entries next, in nanoseconds of the engine's clock.
    trash_due: AtomicU64,
    /// Entries that were dropped from the trash, and remain to be deleted.
    dropped: Mutex<Vec<Dropped>>,
    /// Uploads that were interrupted when no work could be queued. The next change of the home removes
    /// their files.
    abandoned: Mutex<Vec<UploadId>>,
    /// Copies to it that are running or queued.
    copies: AtomicUsize,
}

/// The usage of a home once it is counted.
struct CountedUsage {
    /// All of it, with the trash.
    total: Usage,
    /// The entries of the trash, except those that are being moved.
    trash: TrashIndex,
}

/// The slot of a copy that is running or queued. Dropping it releases the slot.
pub(crate) struct CopyingTo(LocalHome);

impl Drop for CopyingTo {
    fn drop(&mut self) {
        self.0.0.copies.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The locked state of a home while a visible file is changed. Dropping it, also after an error, advances
/// the home's generation.
pub(crate) struct Change<'a> {
    home: &'a LocalHome,
    state: MutexGuard<'a, State>,
}

impl Deref for Change<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Change<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        // The lock is released after this.
        self.home.0.generation.raise();
    }
}

/// The state that a home's lock protects.
pub(crate) struct State {
    /// The uploads in progress and the resumable ones, with the bytes reserved for each.
    pub(crate) uploads: HashMap<UploadId, UploadEntry>,
}

/// An upload's entry in the state of its home.
pub(crate) struct UploadEntry {
    pub(crate) bytes: u64,
    /// Whether a connection is writing to it.
    pub(crate) in_use: bool,
    /// Its buffer and file, if a connection is writing to it, and it is resumable or will be.
    pub(crate) shared: Weak<SharedUpload>,
    /// The path that identifies it, if it can be resumed by path.
    pub(crate) by_path: Option<ByPath>,
}

/// An upload that its owner may resume by its path alone, as over FTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByPath {
    pub(crate) to: Path,
    pub(crate) created: SystemTime,
}

impl UploadEntry {
    pub(crate) fn new(bytes: u64, in_use: bool) -> UploadEntry {
        UploadEntry { bytes, in_use, shared: Weak::new(), by_path: None }
    }
}

/// A name and its parent folder, open.
pub(crate) struct ParentFolder<'a> {
    pub(crate) folder: File,
    pub(crate) name: &'a [u8],
}

impl LocalHome {
    /// Creates the home of two open folders, on one volume if that can be written.
    ///
    /// # Errors
    /// Any error of the file system.
    pub(crate) fn open(
        fs: &dyn Fs,
        owner: HomeOwner,
        (files, pending): (File, File),
        staging_name: StagingName,
        common: &Arc<Common>,
    ) -> io::Result<LocalHome> {
        let volume = fs.volume(&pending)?;
        let is_divided = fs.volume(&files)? != volume;
        let is_in_memory = fs.is_in_memory(&files) && fs.is_in_memory(&pending);
        let state = Mutex::new(State { uploads: HashMap::new() });
        let common = Arc::clone(common);
        let (usage, abandoned, copies) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        let generation = GenerationCounter::draw();
        Ok(LocalHome(Arc::new(Inner {
            owner,
            files,
            pending,
            volume,
            is_divided,
            volumes: Volumes::new(staging_name),
            is_in_memory,
            common,
            state,
            generation,
            usage,
            has_read_trash: AtomicBool::new(false),
            trash_due: AtomicU64::new(0),
            dropped: Mutex::default(),
            abandoned,
            copies,
        })))
    }

    /// The home's account.
    pub(crate) fn owner(&self) -> &HomeOwner {
        &self.0.owner
    }

    /// The account's name.
    pub(crate) fn name(&self) -> &str {
        &self.0.owner.name
    }

    /// The folder that its paths begin at, for opening files to read beneath it.
    pub(crate) fn files(&self) -> &File {
        &self.0.files
    }

    /// The generation of its files.
    pub(crate) fn generation(&self) -> Generation {
        self.0.generation.get()
    }

    pub(crate) fn pending(&self) -> &File {
        &self.0.pending
    }

    /// The volume of `pending`.
    pub(crate) fn volume(&self) -> Volume {
        self.0.volume
    }

    /// Whether `files` and `pending` are on different volumes.
    pub(crate) fn is_divided(&self) -> bool {
        self.0.is_divided
    }

    pub(crate) fn volumes(&self) -> &Volumes {
        &self.0.volumes
    }

    /// Whether short work on it is done in place: no operation, and no holder of its lock, waits for a disk.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.0.is_in_memory
    }

    /// Runs `work` without waiting for a disk. Returns `None` if `work` does, because it would have to wait.
    pub(crate) fn try_without_blocking<T>(
        &self,
        io: &Io,
        work: impl FnOnce(&dyn Fs) -> Option<T>,
    ) -> Option<T> {
        if self.is_in_memory() { io.in_memory(work) } else { io.nonblocking(work) }
    }

    /// The state that all homes of its store share.
    pub(crate) fn common(&self) -> &Common {
        &self.0.common
    }

    /// Remembers for a while that a resumable upload is committed.
    pub(crate) fn note_completed(&self, id: UploadId, at: SystemTime, completed: Completed) {
        self.0.common.finished.note(&self.0.owner, id, at, completed);
    }

    /// As [`crate::Home::completed_upload`].
    pub(crate) fn completed_upload(&self, io: &Io, id: UploadId) -> Result<Completed> {
        self.0.common.finished.of(&self.0.owner, id, io.wall()).ok_or(Error::NotFound)
    }

    /// Whether confirmed changes are synced.
    pub(crate) fn is_synced(&self) -> bool {
        self.0.common.syncs.is_waiting()
    }

    /// Returns the home of `owner` in the same store.
    ///
    /// # Errors
    /// Any error of opening it; [`Error::Busy`] if the store is closed.
    pub(crate) async fn of_same_store(&self, io: &Io, owner: &HomeOwner) -> Result<LocalHome> {
        if owner == self.owner() {
            return Ok(self.clone());
        }
        let store = self.0.common.store.upgrade().ok_or(Error::Busy)?;
        store.home(io, owner.account, &owner.name, &owner.directory).await
    }

    /// Whether `other` is the same home.
    pub(crate) fn is(&self, other: &LocalHome) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it has users other than the store.
    pub(crate) fn is_in_use(&self) -> bool {
        // A holder of the lock or of an upload has a clone too.
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`LocalHome::lock`], if the lock is free; its holder may be waiting for the disk.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.0.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// As [`LocalHome::lock`], for a change of visible files.
    pub(crate) fn change(&self) -> Change<'_> {
        Change { home: self, state: self.lock() }
    }

    /// Waits until files and folders survive a power cut.
    pub(crate) fn sync(&self, fs: &dyn Fs, files: &[&File]) -> Result<()> {
        // After a failed sync, earlier writes may be lost: a later sync would prove nothing.
        self.0.common.syncs.sync(fs, files).map_err(Error::Failed)
    }

    /// As [`crate::Home::stat`].
    pub(crate) async fn look_up(&self, io: &Io, path: &Path) -> Result<Stat> {
        let (files, path) = (self.0.files.clone(), path.clone());
        Ok(io.files(move |fs| fs.stat(&fs.open_beneath(&files, &path.to_open())?)).await?)
    }

    /// As [`crate::Home::usage`]. Counts it if needed.
    pub(crate) async fn usage(&self, io: &Io) -> Result<Usage> {
        if let Some(usage) = self.known_usage() {
            return Ok(usage);
        }
        let home = self.clone();
        // Counting a large home takes long: not among the writes, which would wait for it one by one.
        io.offload(Work::Chores, move |fs| home.count(fs, &home.lock())).await?
    }

    fn counted(&self) -> MutexGuard<'_, Option<CountedUsage>> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_usage(&self) -> Option<Usage> {
        self.counted().as_ref().map(|counted| counted.total)
    }

    /// Changes the usage, if it is counted.
    fn adjust(&self, change: impl FnOnce(Usage) -> Usage) {
        if let Some(counted) = &mut *self.counted() {
            counted.total = change(counted.total);
        }
    }

    /// Adds `more` and subtracts `less`, after [`LocalHome::allows`] and with the state locked since. Then
    /// drops entries of the trash whose space is needed.
    pub(crate) fn replaces(&self, fs: &dyn Fs, state: &State, needed: RoomNeeded, less: Usage, more: Usage) {
        self.adjust(|before| before.minus(less).plus(more));
        self.make_room(fs, state, needed);
    }

    /// Subtracts removed entries. Needs no lock of the state: no other thread can count them any more.
    pub(crate) fn takes_off(&self, gone: Usage) {
        self.adjust(|before| before.minus(gone));
    }

    /// Makes the next use of the usage count it again.
    pub(crate) fn forget_usage(&self) {
        *self.counted() = None;
    }

    /// Runs `work` on the entries of the trash; none if the home is not counted yet. The lock is held only
    /// for a moment.
    pub(crate) fn with_trash<T>(&self, work: impl FnOnce(&mut TrashIndex) -> T) -> Option<T> {
        self.counted().as_mut().map(|counted| work(&mut counted.trash))
    }

    /// Adds the trash of a volume that was opened. Call it with the state locked.
    pub(crate) fn add_trash(&self, _: &State, more: &TrashIndex) {
        if let Some(counted) = &mut *self.counted() {
            counted.total = counted.total.plus(more.usage());
            counted.trash.extend(more);
        }
    }

    /// When the trash is searched for expired entries next, in nanoseconds of the engine's clock.
    pub(crate) fn trash_due(&self) -> &AtomicU64 {
        &self.0.trash_due
    }

    /// Notes an entry that was dropped from the trash, and remains to be deleted.
    pub(crate) fn note_dropped(&self, dropped: Dropped) {
        self.dropped().push(dropped);
    }

    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped().is_empty()
    }

    /// Takes at most `most` dropped entries, to delete them.
    pub(crate) fn take_dropped(&self, most: usize) -> Vec<Dropped> {
        let mut dropped = self.dropped();
        let kept = dropped.len().saturating_sub(most);
        dropped.split_off(kept)
    }

    fn dropped(&self) -> MutexGuard<'_, Vec<Dropped>> {
        self.0.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its usage. Counts it if needed. Call it with the state locked.
    fn count(&self, fs: &dyn Fs, _: &State) -> Result<Usage> {
        if let Some(usage) = self.known_usage() {
            return Ok(usage);
        }
        let files = usage::count(fs, &self.0.files)?;
        let mut trash = TrashIndex::default();
        for volume in self.opened_volumes() {
            // Leftovers on a mounted volume are removed when that is opened.
            let is_first = volume == self.volume() && !self.0.has_read_trash.load(Ordering::Relaxed);
            trash.extend(&self.read_trash(fs, volume, is_first)?);
        }
        self.0.has_read_trash.store(true, Ordering::Relaxed);
        let total = files.plus(trash.usage());
        *self.counted() = Some(CountedUsage { total, trash });
        Ok(total)
    }

    /// Takes a slot for a copy to the home. A copy may take long, so each home has a few slots.
    pub(crate) fn begin_copy(&self) -> Result<CopyingTo> {
        let before = self.0.copies.fetch_add(1, Ordering::Relaxed);
        let copying = CopyingTo(self.clone());
        if before < COPIES_PER_HOME_MAX { Ok(copying) } else { Err(Error::Busy) }
    }

    /// Leaves an upload's files to be removed by the next change of the home.
    pub(crate) fn abandon(&self, id: UploadId) {
        self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Whether abandoned uploads have files to be removed.
    pub(crate) fn has_abandoned(&self) -> bool {
        !self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Removes the files of abandoned uploads.
    pub(crate) fn clear_abandoned(&self, fs: &dyn Fs) {
        let ids = std::mem::take(&mut *self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        ids.into_iter().for_each(|id| self.remove_upload(fs, id));
    }

    /// Checks whether the quota allows `more` in the place of `less`. It drops nothing of the trash:
    /// [`LocalHome::replaces`] does, with the result, once the home has changed.
    pub(crate) fn allows(
        &self,
        fs: &dyn Fs,
        state: &State,
        quota: Quota,
        less: Usage,
        more: Usage,
    ) -> Result<RoomNeeded> {
        let before = self.count(fs, state)?;
        let trash = self.with_trash(|trash| trash.usage()).unwrap_or_default();
        quota.allows(before, before.minus(less).plus(more), trash)
    }

    /// Whether a new file of `bytes` could need space of the trash, which may take long.
    pub(crate) fn may_need_room(&self, fs: &dyn Fs, quota: Quota, bytes: u64) -> bool {
        let Some(counted) = &*self.counted() else { return true };
        let after = counted.total.plus(Usage::file(bytes));
        let fits = quota.allows(counted.total, after, Usage::default()).is_ok();
        let has_space = || fs.space(&self.0.files).is_ok_and(|space| space.bytes > bytes.saturating_mul(2));
        counted.trash.usage() != Usage::default() && !(fits && has_space())
    }

    /// Opens the parent folder of a path's last name. Call it with the state locked: a folder that is moved
    /// away afterwards would take along new entries.
    pub(crate) fn place<'a>(&self, fs: &dyn Fs, path: &'a Path) -> Result<ParentFolder<'a>> {
        // The home itself is no name in any folder.
        let (folder, name) = path.split_last().ok_or(Error::Home)?;
        if folder.is_empty() {
            // Open already, and never moved.
            return Ok(ParentFolder { folder: self.0.files.clone(), name });
        }
        let folder = fs.open_beneath(&self.0.files, &folder).map_err(no_folder)?;
        if fs.stat(&folder)?.kind != FileKind::Folder {
            return Err(Error::NoFolder);
        }
        Ok(ParentFolder { folder, name })
    }

    /// Returns the metadata of the entry that a reader of `path` finds.
    pub(crate) fn metadata_at(&self, fs: &dyn Fs, path: &Path) -> Result<Option<Stat>> {
        match fs.open_beneath(&self.0.files, &path.to_open()).and_then(|file| fs.stat(&file)) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl ParentFolder<'_> {
    /// Returns the metadata of the name itself; a link is not followed.
    pub(crate) fn stat(&self, fs: &dyn Fs) -> Result<Option<Stat>> {
        match fs.stat_name(&self.folder, self.name) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks whether the name may be given to a new entry, unless it has one: `before` is its metadata.
    pub(crate) fn check_new(&self, before: Option<&Stat>) -> Result<()> {
        if before.is_some() { Ok(()) } else { Ok(check_new_name(self.name)?) }
    }

    /// Whether the name is that of a folder on which another file system is mounted.
    pub(crate) fn is_mount(&self, fs: &dyn Fs) -> Result<bool> {
        let inner = fs.open_beneath(&self.folder, self.name)?;
        Ok(fs.volume(&inner)? != fs.volume(&self.folder)?)
    }
}

/// Maps an error of opening a parent folder: one that does not exist is [`Error::NoFolder`].
fn no_folder(error: io::Error) -> Error {
    match error.into() {
        Error::NotFound | Error::NotFolder => Error::NoFolder,
        other => other,
    }
}

/// The usage of one entry: links and devices count nothing.
pub(crate) fn weight(stat: &Stat) -> Usage {
    match stat.kind {
        FileKind::File => Usage::file(stat.size),
        FileKind::Folder => Usage::FOLDER,
        FileKind::Other => Usage::default(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_io::sim::{Faults, Sim};

    use super::*;
    use crate::store::{Settings, WeakStore};

    #[test]
    fn a_removal_during_another_change_is_not_undone_by_it() {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let disk = host.disk().clone();
        let root = disk.open_root(std::path::Path::new("/")).unwrap();
        let common = Arc::new(Common::new(Settings::default(), WeakStore::default()));
        let owner = HomeOwner { account: 1, name: "alice".to_owned(), directory: String::new() };
        let name = StagingName::draw(&host.io());
        let home = LocalHome::open(&*disk, owner, (root.clone(), root), name, &common).unwrap();
        let state = home.lock();
        home.count(&*disk, &state).unwrap();
        home.replaces(&*disk, &state, RoomNeeded::default(), Usage::default(), Usage::file(100));
        // A folder is removed between the check and the change.
        let needed = home.allows(&*disk, &state, Quota::default(), Usage::default(), Usage::file(7)).unwrap();
        home.takes_off(Usage::file(100));
        home.replaces(&*disk, &state, needed, Usage::default(), Usage::file(7));
        assert_eq!(home.known_usage(), Some(Usage::file(7)));
    }
}
