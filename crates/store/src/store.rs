//! The data folder: where homes are, and those that are open.
//!
//! It does not say who may have a home. What must hold: a home that two threads ask for is one home, with one
//! lock and one count.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use plimsoll_io::{File, Fs, Io, Work};

use crate::durability::{Durability, Syncs};
use crate::error::{Error, Result};
use crate::finished::Finished;
use crate::home::Home;
use crate::known_digests::{KnownDigests, RunningDigests};
use crate::limits::{HOMES_CLOSED_PARTS, HOMES_OPEN_MAX, UPLOAD_KEPT_TIME};
use crate::owner::{self, Whose};
use crate::write::{HeldTogether, Recordings};

/// The folder, in the data folder, of which each account has one.
pub(crate) const ACCOUNTS: &[u8] = b"accounts";

/// How a store works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What an answer of success promises.
    pub durability: Durability,
    /// How long an upload that was broken off is kept for its owner to go on with.
    pub upload_kept_time: std::time::Duration,
    /// Homes whose folders are kept open while nobody uses them. Each takes two descriptors.
    pub homes_open_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            durability: Durability::Full,
            upload_kept_time: UPLOAD_KEPT_TIME,
            homes_open_max: HOMES_OPEN_MAX,
        }
    }
}

/// Homes on a local file system. Clones are the same store.
#[derive(Clone)]
pub(crate) struct Store(Arc<Inner>);

struct Inner {
    accounts: File,
    common: Arc<Common>,
    /// By the account's number: a name may come to be another account's, whose home is another folder.
    open: Mutex<HashMap<i64, Slot>>,
    /// Held while the account of a home is looked up or written.
    claims: Mutex<()>,
}

/// What its homes have in common.
pub(crate) struct Common {
    pub(crate) settings: Settings,
    pub(crate) syncs: Syncs,
    pub(crate) finished: Finished,
    pub(crate) held: Arc<HeldTogether>,
    pub(crate) recordings: Recordings,
    pub(crate) known_digests: KnownDigests,
    pub(crate) running_digests: RunningDigests,
}

impl Common {
    pub(crate) fn new(settings: Settings) -> Common {
        let syncs = Syncs::new(settings.durability);
        Common {
            settings,
            syncs,
            finished: Finished::default(),
            held: Arc::default(),
            recordings: Recordings::default(),
            known_digests: KnownDigests::default(),
            running_digests: RunningDigests::default(),
        }
    }
}

/// A home, once it is open.
type Slot = Arc<Mutex<Option<Home>>>;

impl Store {
    /// Opens the data folder `root`, which the operator named, and makes what is missing in it.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(fs: &dyn Fs, root: &std::path::Path, settings: Settings) -> io::Result<Store> {
        let root = fs.open_root(root)?;
        let accounts = folder_in(fs, &root, ACCOUNTS)?;
        let common = Arc::new(Common::new(settings));
        let (open, claims) = (Mutex::default(), Mutex::default());
        Ok(Store(Arc::new(Inner { accounts, common, open, claims })))
    }

    /// The home of the account of this number and name in this directory of accounts, made if there is none.
    /// `name` must be fit for a folder's name; a directory gives a number to one account alone.
    ///
    /// # Errors
    /// What keeps the home from being opened.
    pub(crate) async fn home(&self, io: &Io, account: i64, name: &str, directory: &str) -> Result<Home> {
        match self.known(account) {
            Some(home) => of(home, name, directory),
            // Apart, because it is rare.
            None => Box::pin(self.home_anew(io, account, name, directory)).await,
        }
    }

    /// The same home, if it is open.
    pub(crate) fn home_at_hand(&self, account: i64, name: &str, directory: &str) -> Option<Home> {
        of(self.known(account)?, name, directory).ok()
    }

    async fn home_anew(&self, io: &Io, account: i64, name: &str, directory: &str) -> Result<Home> {
        let whose = Whose { account, name: name.to_owned(), directory: directory.to_owned() };
        let (store, now) = (self.clone(), io.wall());
        let opened = io.offload(Work::Writes, move |fs| store.open_home(fs, &whose, now));
        let (home, trees) = opened.await??;
        let home = of(home, name, directory)?;
        let cleared = home.clone();
        if !trees.is_empty() && io.hand_off(Work::Chores, move |fs| cleared.clear_trees(fs, &trees)).is_err()
        {
            tracing::warn!(home = home.name(), "what was removed before is cleared away at another start");
        }
        Ok(home)
    }

    fn known(&self, account: i64) -> Option<Home> {
        // Whoever opens it holds its slot; who comes meanwhile waits where that may be.
        self.lock().get(&account)?.try_lock().ok()?.clone()
    }

    /// The home, and what is to be cleared away in it. One that is opened by somebody else is waited for; no
    /// other home is.
    fn open_home(&self, fs: &dyn Fs, whose: &Whose, now: SystemTime) -> Result<(Home, Vec<Vec<u8>>)> {
        let slot = self.slot(whose.account);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = &*slot {
            return Ok((home.clone(), Vec::new()));
        }
        let folders = match self.folders(fs, whose) {
            // No more may be open: those that nobody uses make room.
            Err(Error::Busy) => {
                self.close_idle(usize::MAX);
                self.folders(fs, whose)
            }
            opened => opened,
        };
        let (files, pending) = folders?;
        let home = Home::open(whose.clone(), files, pending, &self.0.common);
        let trees = home.sweep(fs, now)?;
        *slot = Some(home.clone());
        Ok((home, trees))
    }

    /// Where a home is, or is to be.
    fn slot(&self, account: i64) -> Slot {
        let most = self.0.common.settings.homes_open_max;
        if self.lock().len() >= most {
            self.close_idle((most / HOMES_CLOSED_PARTS).max(1));
        }
        Arc::clone(self.lock().entry(account).or_default())
    }

    /// Closes homes that nobody uses, at most so many: each is to be counted anew when somebody does.
    fn close_idle(&self, most: usize) {
        let mut left = most;
        self.lock().retain(|_, slot| {
            let is_idle = Arc::strong_count(slot) == 1
                && slot.try_lock().is_ok_and(|home| home.as_ref().is_none_or(|home| !home.is_in_use()));
            let closes = is_idle && left > 0;
            left -= usize::from(closes);
            !closes
        });
    }

    /// The files of an account, and its pending uploads.
    fn folders(&self, fs: &dyn Fs, whose: &Whose) -> Result<(File, File)> {
        let folder = folder_in(fs, &self.0.accounts, whose.name.as_bytes())?;
        {
            // One at a time: a second thread would read a file that the first is writing as one with no
            // owner.
            let _alone = self.0.claims.lock().unwrap_or_else(PoisonError::into_inner);
            owner::check(fs, &folder, whose)?;
        }
        Ok((folder_in(fs, &folder, owner::FILES)?, folder_in(fs, &folder, b"pending")?))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Slot>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The home, if it is theirs: numbers of one directory of accounts are never another account's, those of two
/// may be.
fn of(home: Home, name: &str, directory: &str) -> Result<Home> {
    let whose = home.whose();
    if whose.name == name && whose.directory == directory { Ok(home) } else { Err(owner::another(name)) }
}

/// The folder `name` in `parent`, made if there is none, and synced: also one that is there, which a server
/// may have made that was killed before it synced. At start and when a home is opened, so whatever the
/// durability.
fn folder_in(fs: &dyn Fs, parent: &File, name: &[u8]) -> io::Result<File> {
    match fs.make_folder(parent, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => fs.sync(parent)?,
    }
    fs.open_beneath(parent, name)
}
