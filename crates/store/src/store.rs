//! The data folder: its homes, and those of them that are open.
//!
//! It does not decide which accounts may have a home. Invariant: a home that two threads open is one home,
//! with one lock and one count.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use plimsoll_io::{File, Fs, Io, Work};

use crate::digest_slots::DigestSlots;
use crate::durability::{Durability, Syncs};
use crate::error::{Error, Result};
use crate::finished::Finished;
use crate::home::LocalHome;
use crate::known_digests::{KnownDigests, RunningDigests};
use crate::limits::{HOMES_CLOSED_PARTS, HOMES_OPEN_MAX, TRASH_TIME, UPLOAD_KEPT_TIME};
use crate::owner::{self, HomeOwner};
use crate::volumes::{StagingName, staging_in};
use crate::write::{BufferBudget, Recordings};

/// The folder, in the data folder, that has one folder for each account.
pub(crate) const ACCOUNTS: &[u8] = b"accounts";

/// The settings of a store.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The guarantee that a success response gives.
    pub durability: Durability,
    /// The time for which an interrupted upload stays resumable.
    pub upload_kept_time: Duration,
    /// The time for which removed entries stay in the trash; zero for no trash.
    pub trash_time: Duration,
    /// Homes whose folders are kept open while unused. Each takes two descriptors.
    pub homes_open_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            durability: Durability::Full,
            upload_kept_time: UPLOAD_KEPT_TIME,
            trash_time: TRASH_TIME,
            homes_open_max: HOMES_OPEN_MAX,
        }
    }
}

/// Homes on a local file system. Clones are the same store.
#[derive(Clone)]
pub(crate) struct LocalStore(Arc<Inner>);

struct Inner {
    accounts: File,
    common: Arc<Common>,
    /// By the account's number: a name may later belong to another account, with another home.
    open: Mutex<HashMap<i64, HomeCell>>,
    /// Held while the account of a home is looked up or written.
    claims: Mutex<()>,
}

/// A store, as its homes reach it: they do not keep it open.
#[derive(Clone, Default)]
pub(crate) struct WeakStore(Weak<Inner>);

impl WeakStore {
    pub(crate) fn upgrade(&self) -> Option<LocalStore> {
        self.0.upgrade().map(LocalStore)
    }
}

/// State that all homes of a store share.
pub(crate) struct Common {
    pub(crate) store: WeakStore,
    pub(crate) settings: Settings,
    /// [`Settings::trash_time`] in seconds, as it was last set.
    trash_seconds: AtomicU64,
    pub(crate) syncs: Syncs,
    pub(crate) finished: Finished,
    /// The memory that uploads take for buffered bytes.
    pub(crate) held: Arc<BufferBudget>,
    /// The recordings of uploads that are in progress.
    pub(crate) recordings: Recordings,
    /// The cached digests of files.
    pub(crate) known_digests: KnownDigests,
    /// The slots for computing digests of files.
    pub(crate) digest_slots: DigestSlots,
    /// The running digests of resumable uploads.
    pub(crate) running_digests: RunningDigests,
}

impl Common {
    pub(crate) fn new(settings: Settings, store: WeakStore) -> Common {
        let syncs = Syncs::new(settings.durability);
        Common {
            store,
            settings,
            trash_seconds: AtomicU64::new(settings.trash_time.as_secs()),
            syncs,
            finished: Finished::default(),
            held: Arc::default(),
            recordings: Recordings::default(),
            known_digests: KnownDigests::default(),
            digest_slots: DigestSlots::default(),
            running_digests: RunningDigests::default(),
        }
    }

    /// The time for which removed entries stay in the trash; zero for no trash.
    pub(crate) fn trash_time(&self) -> Duration {
        Duration::from_secs(self.trash_seconds.load(Ordering::Relaxed))
    }
}

/// A home, once it is open.
type HomeCell = Arc<Mutex<Option<LocalHome>>>;

impl LocalStore {
    /// Opens the data folder `root`, which the operator named, and creates missing folders in it.
    ///
    /// # Errors
    /// Any error of the file system.
    pub(crate) fn open(fs: &dyn Fs, root: &std::path::Path, settings: Settings) -> io::Result<LocalStore> {
        let root = fs.open_root(root)?;
        let accounts = folder_in(fs, &root, ACCOUNTS)?;
        Ok(LocalStore(Arc::new_cyclic(|store| {
            let common = Arc::new(Common::new(settings, WeakStore(store.clone())));
            Inner { accounts, common, open: Mutex::default(), claims: Mutex::default() }
        })))
    }

    /// Returns the home of the account of this number and name in this directory of accounts. Creates a
    /// missing one. `name` must be a valid folder name. A directory gives a number to one account only.
    ///
    /// # Errors
    /// Any error of opening the home.
    pub(crate) async fn home(&self, io: &Io, account: i64, name: &str, directory: &str) -> Result<LocalHome> {
        match self.known(account) {
            Some(home) => of(home, name, directory),
            // Boxed: rarely taken, and inlining it would enlarge every caller's future.
            None => Box::pin(self.home_anew(io, account, name, directory)).await,
        }
    }

    /// Sets the time for which removed entries stay in the trash, to the second.
    pub(crate) fn set_trash_time(&self, time: Duration) {
        self.0.common.trash_seconds.store(time.as_secs(), Ordering::Relaxed);
    }

    /// Returns the free bytes of the data folder's file system, if it reports them.
    pub(crate) fn free_bytes(&self, fs: &dyn Fs) -> Option<u64> {
        fs.space(&self.0.accounts).ok().map(|space| space.bytes)
    }

    /// Returns the same home if it is open, without blocking.
    pub(crate) fn try_home(&self, account: i64, name: &str, directory: &str) -> Option<LocalHome> {
        of(self.known(account)?, name, directory).ok()
    }

    async fn home_anew(&self, io: &Io, account: i64, name: &str, directory: &str) -> Result<LocalHome> {
        let owner = HomeOwner { account, name: name.to_owned(), directory: directory.to_owned() };
        owner.check()?;
        let (store, now, staging_name) = (self.clone(), io.wall(), StagingName::draw(io));
        let opened = io.offload(Work::Writes, move |fs| store.open_home(fs, &owner, staging_name, now));
        let (home, trees) = opened.await??;
        let home = of(home, name, directory)?;
        let cleared = home.clone();
        if !trees.is_empty()
            && io
                .hand_off(Work::Chores, move |fs| cleared.clear_trees(fs, cleared.pending(), &trees))
                .is_err()
        {
            tracing::warn!(
                home = home.name(),
                "files that were removed earlier are deleted at a later start"
            );
        }
        Ok(home)
    }

    fn known(&self, account: i64) -> Option<LocalHome> {
        // A thread that opens the home holds its cell. Other callers wait for it in `open_home`, where they
        // may block.
        self.lock().get(&account)?.try_lock().ok()?.clone()
    }

    /// Returns the home, and the trees in it that are to be removed. Waits if another thread is opening the
    /// same home, but for no other home.
    fn open_home(
        &self,
        fs: &dyn Fs,
        owner: &HomeOwner,
        staging_name: StagingName,
        now: SystemTime,
    ) -> Result<(LocalHome, Vec<Vec<u8>>)> {
        let home_cell = self.home_cell(owner.account);
        let mut home_cell = home_cell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = &*home_cell {
            return Ok((home.clone(), Vec::new()));
        }
        let folders = match self.folders(fs, owner, &staging_name) {
            // The limit of open files is reached: closes unused homes and tries again.
            Err(Error::Busy) => {
                self.close_idle(usize::MAX);
                self.folders(fs, owner, &staging_name)
            }
            opened => opened,
        };
        let home = LocalHome::open(fs, owner.clone(), folders?, staging_name, &self.0.common)?;
        let trees = home.sweep(fs, now)?;
        home.open_known_volumes(fs)?;
        *home_cell = Some(home.clone());
        Ok((home, trees))
    }

    /// Returns the cell of a home. Creates a missing one.
    fn home_cell(&self, account: i64) -> HomeCell {
        let most = self.0.common.settings.homes_open_max;
        if self.lock().len() >= most {
            self.close_idle((most / HOMES_CLOSED_PARTS).max(1));
        }
        Arc::clone(self.lock().entry(account).or_default())
    }

    /// Closes at most `most` unused homes: each must be counted again at its next use.
    fn close_idle(&self, most: usize) {
        let mut left = most;
        self.lock().retain(|_, home_cell| {
            let is_idle = Arc::strong_count(home_cell) == 1
                && home_cell.try_lock().is_ok_and(|home| home.as_ref().is_none_or(|home| !home.is_in_use()));
            let closes = is_idle && left > 0;
            left -= usize::from(closes);
            !closes
        });
    }

    /// Opens the folders of an account's files and of its pending uploads.
    fn folders(&self, fs: &dyn Fs, owner: &HomeOwner, staging_name: &StagingName) -> Result<(File, File)> {
        let folder = folder_in(fs, &self.0.accounts, owner.name.as_bytes())?;
        {
            // One at a time: a second thread could read a file that the first is still writing, and find no
            // owner.
            let _alone = self.0.claims.lock().unwrap_or_else(PoisonError::into_inner);
            owner::check(fs, &folder, owner)?;
        }
        let (files, pending) = (folder_in(fs, &folder, owner::FILES)?, folder_in(fs, &folder, b"pending")?);
        if fs.volume(&files)? == fs.volume(&pending)? {
            return Ok((files, pending));
        }
        // The files are a file system of their own.
        match staging_in(fs, &files, b"", &pending, staging_name) {
            Ok(staging) => Ok((files, staging)),
            // It can be read all the same. A change tries again.
            Err(error) if is_unwritable(&error) => Ok((files, pending)),
            Err(error) => Err(error.into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, HomeCell>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing can be created on a file system, which can be read all the same.
fn is_unwritable(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied | StorageFull | QuotaExceeded)
}

/// Returns the home if its name and directory match. Numbers are unique in one directory of accounts, but
/// not across two.
fn of(home: LocalHome, name: &str, directory: &str) -> Result<LocalHome> {
    let owner = home.owner();
    if owner.name == name && owner.directory == directory { Ok(home) } else { Err(owner::another(name)) }
}

/// Opens the folder `name` in `parent`. Creates a missing one. Syncs `parent` even if the folder exists: a
/// server may have been killed between creating and syncing it. It runs only at start and when a home is
/// opened, so it syncs with any durability setting.
pub(crate) fn folder_in(fs: &dyn Fs, parent: &File, name: &[u8]) -> io::Result<File> {
    match fs.make_folder(parent, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => fs.sync(parent)?,
    }
    fs.open_beneath(parent, name)
}
