//! A disk in memory: what tests put on it, and the [`Fs`] that protocols read it through.
//!
//! It is not lossy and protocols cannot write to it yet: both come with the durable store, whose power cuts
//! need a record of what was synced. What must hold: `changed` grows with every change, and what is removed
//! stays readable for whoever has it open.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::Clock;
use super::tree::{Body, ROOT, Tree, Walk};
use crate::file::{Entry, File, Fs, Handle, Stat};

/// A tree of files, shared by a test, a host's engine and its offloaded jobs. Paths start at `/`.
pub struct SimDisk {
    clock: Arc<Clock>,
    state: Mutex<State>,
}

struct State {
    tree: Tree,
    last_change: Duration,
}

impl SimDisk {
    pub(super) fn new(clock: Arc<Clock>) -> Arc<SimDisk> {
        let now = clock.since_1970();
        Arc::new(SimDisk { clock, state: Mutex::new(State { tree: Tree::new(now), last_change: now }) })
    }

    /// Makes `path` a file of `bytes`, with the folders on the way; a file that is there keeps its number.
    ///
    /// # Errors
    /// [`io::ErrorKind::IsADirectory`], or [`io::ErrorKind::NotADirectory`] on the way.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        match self.find(path.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.add(path.as_ref(), Body::File(bytes))
            }
            Err(error) => Err(error),
            Ok(inode) => self.change(inode, |file| {
                *file = bytes;
            }),
        }
    }

    /// Makes `path` a folder, with those on the way. One that is there stays.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn mkdir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let now = self.tick();
        self.lock().folders_to(path.as_ref(), now).map(drop)
    }

    /// Makes `path` a link to `target`, which need not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn symlink(&self, path: impl AsRef<Path>, target: impl AsRef<OsStr>) -> io::Result<()> {
        self.add(path.as_ref(), Body::Link(target.as_ref().as_bytes().to_vec()))
    }

    /// Makes `path` something that is neither file nor folder: a pipe, a device.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn special(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.add(path.as_ref(), Body::Special)
    }

    /// Cuts or lengthens the file at `path`; new bytes are zero.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::IsADirectory`].
    pub fn truncate(&self, path: impl AsRef<Path>, len: usize) -> io::Result<()> {
        let inode = self.find(path.as_ref())?;
        self.change(inode, |file| file.resize(len, 0))
    }

    /// Takes the name `path` away, a folder with all that is in it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let now = self.tick();
        let (folder, name) = split(path.as_ref())?;
        let mut state = self.lock();
        let folder = state.find(folder)?;
        state.tree.unlink(folder, name, now)
    }

    /// Sets when `path` was last modified, as time since 1970.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn set_modified(&self, path: impl AsRef<Path>, modified: Duration) -> io::Result<()> {
        let now = self.tick();
        let mut state = self.lock();
        let inode = state.find(path.as_ref())?;
        let node = state.tree.node_mut(inode)?;
        (node.modified, node.changed) = (modified, now);
        Ok(())
    }

    /// Refuses to open `path` from now on: [`io::ErrorKind::PermissionDenied`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn forbid(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let now = self.tick();
        let mut state = self.lock();
        let inode = state.find(path.as_ref())?;
        let node = state.tree.node_mut(inode)?;
        (node.forbidden, node.changed) = (true, now);
        Ok(())
    }

    fn add(&self, path: &Path, body: Body) -> io::Result<()> {
        let now = self.tick();
        let (folder, name) = split(path)?;
        let mut state = self.lock();
        let folder = state.folders_to(folder, now)?;
        state.tree.add(folder, name, body, now).map(drop)
    }

    fn change(&self, inode: u64, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let now = self.tick();
        let mut state = self.lock();
        let node = state.tree.node_mut(inode)?;
        let Body::File(bytes) = &mut node.body else { return Err(io::ErrorKind::IsADirectory.into()) };
        change(bytes);
        (node.modified, node.changed) = (now, now);
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.lock().find(path)
    }

    /// The time of a change: the clock's, and later than that of every other change.
    fn tick(&self) -> Duration {
        let mut state = self.lock();
        state.last_change = self.clock.since_1970().max(state.last_change + Duration::from_nanos(1));
        state.last_change
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&self, path: &Path) -> io::Result<u64> {
        self.follow(vec![ROOT], path.as_os_str().as_bytes(), Walk::Anywhere)
    }

    fn follow(&self, way: Vec<u64>, name: &[u8], walk: Walk) -> io::Result<u64> {
        self.tree.walk(way, name, walk)?.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn open(&self, way: Vec<u64>, name: &[u8], walk: Walk) -> io::Result<File> {
        let inode = self.follow(way, name, walk)?;
        if self.tree.node(inode)?.forbidden {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(File::new(Handle::Simulated(inode)))
    }

    /// The folder at `path`, made with those on the way where there is none.
    fn folders_to(&mut self, path: &Path, now: Duration) -> io::Result<u64> {
        let mut way = vec![ROOT];
        for step in path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|step| !step.is_empty()) {
            way = match self.tree.walk(way.clone(), step, Walk::Anywhere) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let folder = way.last().copied().unwrap_or(ROOT);
                    way.push(self.tree.add(folder, step, Body::Folder(Default::default()), now)?);
                    way
                }
                walked => walked?,
            };
        }
        let folder = way.last().copied().unwrap_or(ROOT);
        self.tree.folder(folder).map(|_| folder)
    }
}

/// A path's folder and its last name.
fn split(path: &Path) -> io::Result<(&Path, &[u8])> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((path.parent().unwrap_or(Path::new("/")), name.as_bytes()))
}

fn inode_of(file: &File) -> io::Result<u64> {
    match file.handle() {
        Handle::Simulated(inode) => Ok(*inode),
        Handle::Descriptor(_) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

impl Fs for SimDisk {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        let state = self.lock();
        let root = state.open(vec![ROOT], path.as_os_str().as_bytes(), Walk::Anywhere)?;
        state.tree.folder(inode_of(&root)?)?;
        Ok(root)
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        self.lock().open(vec![inode_of(root)?], name, Walk::Beneath)
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        self.lock().tree.stat(inode_of(file)?)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        let state = self.lock();
        let folder = inode_of(&state.open(vec![inode_of(root)?], name, Walk::Beneath)?)?;
        let way = state.tree.walk(vec![inode_of(root)?], name, Walk::Beneath)?;
        let mut entries = Vec::new();
        for name in state.tree.folder(folder)?.keys() {
            let Ok(inode) = state.follow(way.clone(), name, Walk::Beneath) else { continue };
            if entries.len() == entries_max {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            entries.push(Entry { name: name.clone(), stat: state.tree.stat(inode)? });
        }
        Ok(entries)
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.lock();
        let Body::File(bytes) = &state.tree.node(inode_of(file)?)?.body else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }
}
