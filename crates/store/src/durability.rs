//! Grouped syncs: callers that wait for the same folder share one sync.
//!
//! It does not decide what must be synced. Invariant: a call returns success only if a sync that began
//! after the call has succeeded; only [`Durability::None`] skips the sync.
//!
//! Each file is synced by the thread that wrote it, many at a time. The file system's journal groups those
//! syncs; queueing them here cost a third of the throughput and more (ext4, 8 and 64 writers). Folders
//! differ: uploads share them, so one sync serves all callers that wait for the same folder.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::{File, FileKind, Fs};

/// The guarantee that a success response gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Confirmed changes survive a power cut.
    #[default]
    Full,
    /// Confirmed changes survive the end of the server, but not that of the machine.
    None,
    /// As `Full`, with a sync for each file by itself: for benchmarks, to measure the gain of grouping.
    Each,
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        match text {
            "full" => Ok(Durability::Full),
            "none" => Ok(Durability::None),
            _ => Err(format!("{text:?} is no durability; write full or none")),
        }
    }
}

/// A folder on a file system: device and inode.
type FolderId = (u64, u64);

/// Groups of syncs, one for each folder that a caller waits for.
pub(crate) struct Syncs {
    durability: Durability,
    folders: Mutex<HashMap<FolderId, Arc<Folder>>>,
}

/// The callers that wait for one folder: while one group's sync runs, the next group gathers.
#[derive(Default)]
struct Folder {
    gathering: Mutex<Arc<Group>>,
    /// Held by the thread that syncs for a group.
    disk: Mutex<()>,
}

/// The result of a group's sync; none until it has ended.
#[derive(Default)]
struct Group(Mutex<Option<Result<(), Arc<io::Error>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Syncs {
    pub(crate) fn new(durability: Durability) -> Syncs {
        Syncs { durability, folders: Mutex::default() }
    }

    /// Whether any sync is performed.
    pub(crate) fn is_waiting(&self) -> bool {
        self.durability != Durability::None
    }

    /// Waits until the contents of files and the names in folders survive a power cut.
    pub(crate) fn sync(&self, fs: &dyn Fs, files: &[&File]) -> io::Result<()> {
        match self.durability {
            Durability::None => Ok(()),
            Durability::Each => files.iter().try_for_each(|file| fs.sync(file)),
            Durability::Full => files.iter().try_for_each(|file| self.sync_one(fs, file)),
        }
    }

    fn sync_one(&self, fs: &dyn Fs, file: &File) -> io::Result<()> {
        let stat = fs.stat(file)?;
        if stat.kind != FileKind::Folder {
            return fs.sync(file);
        }
        let id = (stat.device, stat.inode);
        let folder = Arc::clone(lock(&self.folders).entry(id).or_default());
        let synced = folder.sync(fs, file);
        self.forget(id, folder);
        synced
    }

    /// Drops a folder that no other caller waits for.
    fn forget(&self, id: FolderId, folder: Arc<Folder>) {
        let mut folders = lock(&self.folders);
        drop(folder);
        if let Entry::Occupied(entry) = folders.entry(id)
            && Arc::strong_count(entry.get()) == 1
        {
            entry.remove();
        }
    }
}

impl Folder {
    fn sync(&self, fs: &dyn Fs, file: &File) -> io::Result<()> {
        let group = Arc::clone(&lock(&self.gathering));
        let _disk = lock(&self.disk);
        let mut ended = lock(&group.0);
        if ended.is_none() {
            // The first of its group at the disk syncs. Later callers gather in another group.
            *lock(&self.gathering) = Arc::default();
            *ended = Some(fs.sync(file).map_err(Arc::new));
        }
        match &*ended {
            Some(Err(error)) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_io::sim::{Call, Faults, Sim};

    use super::*;

    const WAITERS: usize = 16;

    fn folder_of(syncs: &Syncs, fs: &dyn Fs, folder: &File) -> Arc<Folder> {
        let stat = fs.stat(folder).unwrap();
        Arc::clone(lock(&syncs.folders).entry((stat.device, stat.inode)).or_default())
    }

    #[test]
    fn callers_that_wait_for_one_folder_share_its_syncs() {
        let sim = Sim::new(0, Faults::none());
        let disk = sim.host("server").disk().clone();
        let (syncs, root) = (Syncs::new(Durability::Full), disk.open_root(Path::new("/")).unwrap());
        let folder = folder_of(&syncs, &*disk, &root);
        let held = lock(&folder.disk);
        let gathered = || Arc::strong_count(&lock(&folder.gathering));
        std::thread::scope(|scope| {
            for _ in 0..WAITERS {
                scope.spawn(|| syncs.sync(&*disk, &[&root]).unwrap());
            }
            while gathered() < WAITERS + 1 {
                std::thread::yield_now();
            }
            drop(held);
        });
        assert_eq!(disk.calls(), 1);
        drop(folder);
        syncs.sync(&*disk, &[&root]).unwrap();
        assert_eq!(disk.calls(), 2, "who comes later has a sync of their own");
        assert!(lock(&syncs.folders).is_empty());
    }

    #[test]
    fn a_sync_that_fails_fails_for_all_who_waited_for_it() {
        let sim = Sim::new(0, Faults::none());
        let disk = sim.host("server").disk().clone();
        let (syncs, root) = (Syncs::new(Durability::Full), disk.open_root(Path::new("/")).unwrap());
        disk.fail_next(Call::Sync, io::ErrorKind::Other);
        let folder = folder_of(&syncs, &*disk, &root);
        let held = lock(&folder.disk);
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..2).map(|_| scope.spawn(|| syncs.sync(&*disk, &[&root]).is_err())).collect();
            while Arc::strong_count(&lock(&folder.gathering)) < 3 {
                std::thread::yield_now();
            }
            drop(held);
            assert!(waiting.into_iter().all(|waiter| waiter.join().unwrap()));
        });
    }

    #[test]
    fn nothing_is_synced_where_nothing_is_promised() {
        let sim = Sim::new(0, Faults::none());
        let disk = sim.host("server").disk().clone();
        let root = disk.open_root(Path::new("/")).unwrap();
        Syncs::new(Durability::None).sync(&*disk, &[&root]).unwrap();
        assert_eq!(disk.calls(), 0);
    }
}
