//! The cache's folder: how it is recognised, and the part of it that stays open.
//!
//! It knows no objects. Invariants: nothing is removed from a folder without the marker, which is written
//! into an empty folder only, or into one that has nothing but a cache of an earlier version. While the
//! folder is used, the process's claim on it is held.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_io::{Entry, File, FileKind, Fs};

use super::disk::Checksums;
use super::stored_file::sequence_of;

pub(super) const PENDING: &[u8] = b"pending";
pub(super) const OBJECTS: &[u8] = b"objects";
/// The name of the file that marks a cache.
const MARKER: &[u8] = b"plimsoll-cache";
const MARKER_TEXT: &[u8] =
    b"This folder is the cache of a plimsoll proxy, which removes files in objects and pending.\n";
/// The name of the file by which a process locks the folder.
const LOCK: &[u8] = b"lock";
/// A folder that file systems have at their top.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// The claim of a process on the folder, such as a lock, until it is dropped.
pub type Claim = Box<dyn Any + Send>;

/// Claims the folder for this process. It may create the folder.
pub type Claimant = Box<dyn Fn(&Path) -> io::Result<Claim> + Send + Sync>;

/// The settings of the cache's folder, and the claim on it.
pub struct CacheFolder {
    path: PathBuf,
    checksums: Checksums,
    claimant: Option<Claimant>,
    claim: Mutex<Option<Claim>>,
}

/// The open folders.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    pub(super) root: File,
    pub(super) pending: File,
    pub(super) objects: File,
}

impl std::fmt::Debug for CacheFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CacheFolder").field(&self.path).finish()
    }
}

impl CacheFolder {
    /// Creates the settings of a folder that no other process uses. It opens nothing.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Arc<CacheFolder> {
        CacheFolder::with(path, Checksums::On, None)
    }

    /// Creates the settings of a folder that `claimant` claims whenever it is opened. It opens nothing.
    #[must_use]
    pub fn with(
        path: impl Into<PathBuf>,
        checksums: Checksums,
        claimant: Option<Claimant>,
    ) -> Arc<CacheFolder> {
        Arc::new(CacheFolder { path: path.into(), checksums, claimant, claim: Mutex::default() })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::cache) fn checksums(&self) -> Checksums {
        self.checksums
    }

    /// Claims the folder, unless it is claimed. Fails if it is not a cache.
    ///
    /// # Errors
    /// The error of the claimant, or as [`mark`].
    pub fn claim(&self, fs: &dyn Fs) -> io::Result<()> {
        self.take(fs).map(drop)
    }

    /// Claims and opens the folder, and creates it if it is missing.
    pub(super) fn take(&self, fs: &dyn Fs) -> io::Result<File> {
        let mut claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(claimant)) = (&*claim, &self.claimant) {
            *claim = Some(claimant(&self.path)?);
        }
        let root = open_or_make_root(fs, &self.path)?;
        mark(fs, &root)?;
        Ok(root)
    }

    /// As [`CacheFolder::take`], after the folder was removed, and the claim on it is void.
    pub(super) fn retake(&self, fs: &dyn Fs) -> io::Result<File> {
        *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.take(fs)
    }
}

impl Folders {
    /// Opens the folders of a cache, and creates those that are missing.
    pub(super) fn open(fs: &dyn Fs, root: File) -> io::Result<Folders> {
        let open = |name| {
            match fs.make_folder(&root, name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let folder = fs.open_beneath(&root, name)?;
            match fs.stat(&folder)?.kind {
                FileKind::Folder => Ok(folder),
                _ => Err(io::ErrorKind::NotADirectory.into()),
            }
        };
        let (pending, objects) = (open(PENDING)?, open(OBJECTS)?);
        Ok(Folders { root, pending, objects })
    }
}

/// Checks that an open folder is a cache, or may become one. Returns whether it has the marker.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the folder has other files; the operating system's error.
pub fn check(fs: &dyn Fs, root: &File) -> io::Result<bool> {
    match fs.stat_name(root, MARKER) {
        Ok(stat) if stat.kind == FileKind::File => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(_) => return Err(foreign(MARKER)),
        Err(error) => return Err(error),
    }
    for entry in read_all_names(fs, root, b"")? {
        let is_own = match (&*entry.name, entry.stat.kind) {
            (LOCK, FileKind::File) => entry.stat.size == 0,
            (PENDING | OBJECTS, FileKind::Folder) => {
                let files = read_all_names(fs, root, &entry.name)?;
                if let Some(other) = files.iter().find(|file| !is_own_file(file)) {
                    return Err(foreign(&other.name));
                }
                true
            }
            (LOST_AND_FOUND, FileKind::Folder) => true,
            _ => false,
        };
        if !is_own {
            return Err(foreign(&entry.name));
        }
    }
    Ok(false)
}

/// Writes the marker into an empty folder, or into a cache of an earlier version.
///
/// # Errors
/// As [`check`].
pub fn mark(fs: &dyn Fs, root: &File) -> io::Result<()> {
    if check(fs, root)? {
        return Ok(());
    }
    let marker = match fs.create(root, MARKER) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        created => created?,
    };
    // The name alone marks the folder. The text is for people.
    let _ = fs.write_at(&marker, MARKER_TEXT, 0);
    fs.sync(root)
}

/// Whether an entry of `objects` or `pending` is a file of the cache.
pub(super) fn is_own_file(entry: &Entry) -> bool {
    entry.stat.kind == FileKind::File && sequence_of(&entry.name).is_some()
}

fn foreign(name: &[u8]) -> io::Error {
    let name = String::from_utf8_lossy(name);
    let text = format!("{name:?} in it is no file of a cache; choose a new or an empty folder");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Returns the entries of a folder. A link is not followed, so that none is overlooked.
pub(super) fn read_all_names(fs: &dyn Fs, root: &File, folder: &[u8]) -> io::Result<Vec<Entry>> {
    fs.names(&fs.open_beneath(root, folder)?, usize::MAX)
}

fn open_or_make_root(fs: &dyn Fs, path: &Path) -> io::Result<File> {
    match fs.open_root(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = open_or_make_root(fs, parent.unwrap_or(Path::new(".")))?;
    match fs.make_folder(&parent, name.as_encoded_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs.open_root(path)
}

#[cfg(test)]
mod tests {
    use plimsoll_io::sim::{Faults, Sim, SimDisk};

    use super::*;

    const ROOT: &str = "/cache";

    fn disk() -> Arc<SimDisk> {
        Arc::clone(Sim::new(0, Faults::none()).host("one").disk())
    }

    fn taken(disk: &SimDisk) -> io::Result<()> {
        CacheFolder::new(ROOT).claim(disk)
    }

    fn refusal(disk: &SimDisk) -> String {
        taken(disk).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_folder_gets_the_marker_and_is_a_cache_from_then_on() {
        for is_there in [false, true] {
            let disk = disk();
            if is_there {
                disk.mkdir("/cache/lost+found").unwrap();
            }
            taken(&disk).unwrap();
            assert_eq!(disk.read("/cache/plimsoll-cache").unwrap(), MARKER_TEXT);
            disk.write("/cache/notes.txt", "x").unwrap();
            taken(&disk).unwrap();
        }
    }

    #[test]
    fn a_folder_with_other_files_is_refused_and_unchanged() {
        for path in ["notes.txt", "objects/precious.doc", "pending/1", "objects/0000000000000001/x", "lock/x"]
        {
            let disk = disk();
            disk.write(format!("{ROOT}/{path}"), "precious").unwrap();
            disk.mkdir("/cache/objects").unwrap();
            disk.mkdir("/cache/pending").unwrap();
            assert!(refusal(&disk).contains("choose a new or an empty folder"), "{path}");
            assert_eq!(disk.read(format!("{ROOT}/{path}")).unwrap(), b"precious");
            assert!(disk.read("/cache/plimsoll-cache").is_err(), "{path}");
        }
        let disk = disk();
        disk.symlink("/cache/lock", "/elsewhere").unwrap();
        assert!(refusal(&disk).contains("\"lock\""));
        disk.remove("/cache/lock").unwrap();
        disk.mkdir("/cache/plimsoll-cache").unwrap();
        assert!(refusal(&disk).contains("\"plimsoll-cache\""));
    }

    #[test]
    fn a_cache_of_an_earlier_version_is_adopted() {
        let disk = disk();
        for path in ["lock", "objects/0000000000000001", "pending/00000000000000ff"] {
            disk.write(format!("{ROOT}/{path}"), "").unwrap();
        }
        taken(&disk).unwrap();
        assert!(disk.read("/cache/plimsoll-cache").is_ok());
    }

    #[test]
    fn the_folder_is_claimed_once_and_again_after_it_was_removed() {
        let disk = disk();
        let count = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&count);
        let claimant: Claimant = Box::new(move |_| {
            *counted.lock().unwrap() += 1;
            Ok(Box::new(()))
        });
        let folder = CacheFolder::with(ROOT, Checksums::On, Some(claimant));
        folder.claim(&*disk).unwrap();
        folder.take(&*disk).unwrap();
        assert_eq!(*count.lock().unwrap(), 1);
        disk.remove(ROOT).unwrap();
        folder.retake(&*disk).unwrap();
        assert_eq!(*count.lock().unwrap(), 2);
    }
}
