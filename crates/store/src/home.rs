//! A home: one account's files, its uploads, and the lock under which all of them change.
//!
//! It does not write contents ([`crate::write`] does). What must hold: every change of a name in the home is
//! made with [`State`] locked, and so are the conditions it depends on; what changes a file that people see
//! holds a [`Change`].

use std::collections::HashMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::SystemTime;

use plimsoll_io::{File, FileKind, Fs, Io, Stat, Work};

use crate::edition::{Current, Edition};
use crate::error::{Error, Result};
use crate::finished::Completed;
use crate::known_digests::{KnownDigests, RunningDigests};
use crate::limits::COPIES_PER_HOME_MAX;
use crate::owner::Whose;
use crate::path::Path;
use crate::store::{Common, Settings};
use crate::usage::{self, Quota, Usage};
use crate::write::written::Written;
use crate::write::{HeldTogether, Recordings, UploadId};

/// The files of one account. Clones are the same home.
#[derive(Clone)]
pub(crate) struct Home(Arc<Inner>);

struct Inner {
    whose: Whose,
    files: File,
    pending: File,
    common: Arc<Common>,
    state: Mutex<State>,
    edition: Current,
    /// What it holds; none until it is counted. Apart from the state, which is held while the disk is waited
    /// for: this one is locked for a moment only, also on a loop. It is changed by what comes and goes, never
    /// set: what is cleared away is taken off it while others hold the state.
    usage: Mutex<Option<Usage>>,
    /// Uploads that were broken off when nothing more could be waited for: whoever changes the home next
    /// clears them away.
    abandoned: Mutex<Vec<UploadId>>,
    /// Copies to it that are under way or wait for their turn.
    copies: AtomicUsize,
}

/// A copy that is under way or waits for its turn.
pub(crate) struct CopyingTo(Home);

impl Drop for CopyingTo {
    fn drop(&mut self) {
        self.0.0.copies.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A home while something that people see in it is changed: its state, locked. When it is let go, also on the
/// way out of an error, the home is in another edition.
pub(crate) struct Change<'a> {
    home: &'a Home,
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
        // The lock goes after this.
        self.home.0.edition.raise();
    }
}

/// What is known of a home.
pub(crate) struct State {
    /// The uploads under way and kept, and the bytes that each may come to.
    pub(crate) uploads: HashMap<UploadId, Upcoming>,
}

/// An upload, for those who count.
pub(crate) struct Upcoming {
    pub(crate) bytes: u64,
    /// Whether somebody is writing to it.
    pub(crate) in_use: bool,
    /// Its file, if it is kept or will be, and somebody is writing to it.
    pub(crate) slot: Weak<Mutex<Option<Written>>>,
    /// What it is found by, if its path is enough.
    pub(crate) by_path: Option<ByPath>,
}

/// An upload that its owner may resume by its path alone, as over FTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByPath {
    pub(crate) to: Path,
    pub(crate) created: SystemTime,
}

impl Upcoming {
    pub(crate) fn new(bytes: u64, in_use: bool) -> Upcoming {
        Upcoming { bytes, in_use, slot: Weak::new(), by_path: None }
    }
}

/// A name and the folder it is in, open.
pub(crate) struct Place<'a> {
    pub(crate) folder: File,
    pub(crate) name: &'a [u8],
}

impl Home {
    pub(crate) fn open(whose: Whose, files: File, pending: File, common: &Arc<Common>) -> Home {
        let state = Mutex::new(State { uploads: HashMap::new() });
        let common = Arc::clone(common);
        let (usage, abandoned, copies) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        let edition = Current::draw();
        Home(Arc::new(Inner { whose, files, pending, common, state, edition, usage, abandoned, copies }))
    }

    /// Whose it is.
    pub(crate) fn whose(&self) -> &Whose {
        &self.0.whose
    }

    /// The account's name.
    pub(crate) fn name(&self) -> &str {
        &self.0.whose.name
    }

    /// The folder that its paths begin at, to open files for reading beneath.
    pub(crate) fn files(&self) -> &File {
        &self.0.files
    }

    /// The edition that its files are in.
    pub(crate) fn edition(&self) -> Edition {
        self.0.edition.get()
    }

    pub(crate) fn pending(&self) -> &File {
        &self.0.pending
    }

    pub(crate) fn settings(&self) -> Settings {
        self.0.common.settings
    }

    /// Remembers for a while that a kept upload is in its place.
    pub(crate) fn note_completed(&self, id: UploadId, at: SystemTime, completed: Completed) {
        self.0.common.finished.note(&self.0.whose, id, at, completed);
    }

    /// A kept upload that came into its place a while ago.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for one that is still kept, and after a while.
    pub(crate) fn completed(&self, io: &Io, id: UploadId) -> Result<Completed> {
        self.0.common.finished.of(&self.0.whose, id, io.wall()).ok_or(Error::NotFound)
    }

    /// Whether what is confirmed has been waited for.
    pub(crate) fn is_synced(&self) -> bool {
        self.0.common.syncs.is_waiting()
    }

    /// What the uploads to it and to other homes hold.
    pub(crate) fn held_together(&self) -> Arc<HeldTogether> {
        Arc::clone(&self.0.common.held)
    }

    /// The recordings in progress, of uploads to all homes of the store.
    pub(crate) fn recordings(&self) -> &Recordings {
        &self.0.common.recordings
    }

    /// The digests that are known of files in all homes of the store.
    pub(crate) fn known_digests(&self) -> &KnownDigests {
        &self.0.common.known_digests
    }

    /// The running digests of resumable uploads to all homes of the store.
    pub(crate) fn running_digests(&self) -> &RunningDigests {
        &self.0.common.running_digests
    }

    /// Whether it is the same home.
    pub(crate) fn is(&self, other: &Home) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether anybody but the store has it.
    pub(crate) fn is_in_use(&self) -> bool {
        // Whoever holds the lock or an upload has a clone too.
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Home::lock`], if nobody has it; whoever has it may be waiting for the disk.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.0.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// As [`Home::lock`], to change what people see.
    pub(crate) fn change(&self) -> Change<'_> {
        Change { home: self, state: self.lock() }
    }

    /// Waits until files and folders survive a power cut.
    pub(crate) fn sync(&self, fs: &dyn Fs, files: &[&File]) -> Result<()> {
        // What was written may be gone after a failed sync: nothing can be promised of it any more.
        self.0.common.syncs.sync(fs, files).map_err(Error::Failed)
    }

    /// What is known of what a reader finds at `path`.
    pub(crate) async fn look_up(&self, io: &Io, path: &Path) -> Result<Stat> {
        let (files, path) = (self.0.files.clone(), path.clone());
        Ok(io.files(move |fs| fs.stat(&fs.open_beneath(&files, &path.to_open())?)).await?)
    }

    /// What it holds.
    ///
    /// # Errors
    /// What keeps it from being counted.
    pub(crate) async fn usage(&self, io: &Io) -> Result<Usage> {
        if let Some(usage) = self.known_usage() {
            return Ok(usage);
        }
        let home = self.clone();
        // A large home takes a while: not among the writes, which would wait for it one by one.
        io.offload(Work::Chores, move |fs| home.count(fs, &home.lock())).await?
    }

    fn known_usage(&self) -> Option<Usage> {
        *self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `more` in the place of `less`, after [`Home::allows`] and with the state locked since.
    pub(crate) fn replaces(&self, _: &State, less: Usage, more: Usage) {
        let mut usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        *usage = usage.map(|before| before.minus(less).plus(more));
    }

    /// Takes off what is gone from it, which needs no lock: nobody else can count it any more.
    pub(crate) fn takes_off(&self, gone: Usage) {
        let mut usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        *usage = usage.map(|before| before.minus(gone));
    }

    /// What it holds; counted if it was not. With the state locked.
    fn count(&self, fs: &dyn Fs, _: &State) -> Result<Usage> {
        if let Some(usage) = self.known_usage() {
            return Ok(usage);
        }
        let usage = usage::count(fs, &self.0.files)?;
        *self.0.usage.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
        Ok(usage)
    }

    /// Takes a place among the copies to it: each may take as long as it likes, so one home has a few.
    pub(crate) fn begin_copy(&self) -> Result<CopyingTo> {
        let before = self.0.copies.fetch_add(1, Ordering::Relaxed);
        let copying = CopyingTo(self.clone());
        if before < COPIES_PER_HOME_MAX { Ok(copying) } else { Err(Error::Busy) }
    }

    /// Leaves an upload's files to whoever changes the home next.
    pub(crate) fn abandon(&self, id: UploadId) {
        self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Whether something is left to whoever comes next.
    pub(crate) fn has_abandoned(&self) -> bool {
        !self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Clears away what was left to whoever comes next.
    pub(crate) fn clear_abandoned(&self, fs: &dyn Fs) {
        let ids = std::mem::take(&mut *self.0.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        ids.into_iter().for_each(|id| self.remove_upload(fs, id));
    }

    /// Whether `more` may take the place of `less`.
    pub(crate) fn allows(
        &self,
        fs: &dyn Fs,
        state: &State,
        quota: Quota,
        less: Usage,
        more: Usage,
    ) -> Result<()> {
        let before = self.count(fs, state)?;
        quota.allows(before, before.minus(less).plus(more))
    }

    /// The folder that a path's last name is in, opened. To be called with the state locked: a folder that
    /// is moved away afterwards would take along what is put into it.
    pub(crate) fn place<'a>(&self, fs: &dyn Fs, path: &'a Path) -> Result<Place<'a>> {
        // The home itself is no name in any folder.
        let (folder, name) = path.split_last().ok_or(Error::Home)?;
        let folder = fs.open_beneath(&self.0.files, &folder).map_err(no_folder)?;
        if fs.stat(&folder)?.kind != FileKind::Folder {
            return Err(Error::NoFolder);
        }
        Ok(Place { folder, name })
    }

    /// What a reader of `path` finds there.
    pub(crate) fn seen(&self, fs: &dyn Fs, path: &Path) -> Result<Option<Stat>> {
        match fs.open_beneath(&self.0.files, &path.to_open()).and_then(|file| fs.stat(&file)) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Place<'_> {
    /// What the name itself stands for.
    pub(crate) fn stat(&self, fs: &dyn Fs) -> Result<Option<Stat>> {
        match fs.stat_name(&self.folder, self.name) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What went wrong on the way to a name is about the folder that the name would be in.
fn no_folder(error: io::Error) -> Error {
    match error.into() {
        Error::NotFound | Error::NotFolder => Error::NoFolder,
        other => other,
    }
}

/// What one name counts for: links and devices count nothing.
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

    #[test]
    fn what_is_taken_off_while_another_change_is_made_is_not_put_back_by_it() {
        let sim = Sim::new(0, Faults::none());
        let disk = sim.host("server").disk().clone();
        let root = disk.open_root(std::path::Path::new("/")).unwrap();
        let common = Arc::new(Common::new(Settings::default()));
        let whose = Whose { account: 1, name: "alice".to_owned(), directory: String::new() };
        let home = Home::open(whose, root.clone(), root, &common);
        let state = home.lock();
        home.count(&*disk, &state).unwrap();
        home.replaces(&state, Usage::default(), Usage::file(100));
        // A folder is cleared away between the question and the change.
        home.allows(&*disk, &state, Quota::default(), Usage::default(), Usage::file(7)).unwrap();
        home.takes_off(Usage::file(100));
        home.replaces(&state, Usage::default(), Usage::file(7));
        assert_eq!(home.known_usage(), Some(Usage::file(7)));
    }
}
