//! Changes that a test makes to a disk from outside, by path: all durable at once.
//!
//! Protocols and stores use [`super::files`] instead. These changes are not counted. Invariant: nothing
//! of them is lost at a power cut.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::journal::{Change, Edit};
use super::tree::{Body, Node, ROOT, Walk};
use super::{SimDisk, State};

impl SimDisk {
    /// Makes `path` a file of `bytes`, and creates the folders above it; an existing file keeps its
    /// inode number.
    ///
    /// # Errors
    /// [`io::ErrorKind::IsADirectory`], or [`io::ErrorKind::NotADirectory`] for a component of the path.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let (path, bytes) = (path.as_ref(), bytes.into());
        let mut state = self.powered()?;
        match state.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                state.plant(path, Body::File(Arc::new(bytes)))
            }
            Err(error) => Err(error),
            Ok(inode) => state.replant(inode, bytes.len(), |file| *file = bytes),
        }
    }

    /// Makes `path` a folder, and creates those above it. An existing folder is kept.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn mkdir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.powered()?.folders_to(path.as_ref()).map(drop)
    }

    /// Makes `path` a link to `target`, which need not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn symlink(&self, path: impl AsRef<Path>, target: impl AsRef<OsStr>) -> io::Result<()> {
        self.powered()?.plant(path.as_ref(), Body::Link(target.as_ref().as_bytes().to_vec()))
    }

    /// Gives the file at `of` the name `path` too, as a hard link does.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn hard_link(&self, path: impl AsRef<Path>, of: impl AsRef<Path>) -> io::Result<()> {
        let (folder, name) = split(path.as_ref())?;
        let mut state = self.powered()?;
        let (inode, folder) = (state.find(of.as_ref())?, state.folders_to(folder)?);
        state.name(Edit::new(folder, name, Some(inode)))
    }

    /// Makes `path` a special file, like a pipe or a device.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`] if a file is in the way.
    pub fn special(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.powered()?.plant(path.as_ref(), Body::Special)
    }

    /// Makes the folder `path` and all below it a file system of its own, mounted there.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn mount(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut state = self.powered()?;
        let folder = state.find(path.as_ref())?;
        state.tree.mount(folder)
    }

    /// Truncates or extends the file at `path`; new bytes are zero.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::IsADirectory`].
    pub fn truncate(&self, path: impl AsRef<Path>, len: usize) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.find(path.as_ref())?;
        state.replant(inode, len, |_| ())
    }

    /// Removes the name `path`; of a folder, with its contents.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (folder, name) = split(path.as_ref())?;
        let mut state = self.powered()?;
        let folder = state.find(folder)?;
        state.tree.child(folder, name)?;
        state.name(Edit::new(folder, name, None))
    }

    /// Sets the modification time of `path`, as time since 1970.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn set_modified(&self, path: impl AsRef<Path>, modified: Duration) -> io::Result<()> {
        self.touch(path.as_ref(), |node| node.modified = modified)
    }

    /// Makes opening `path` fail from now on with [`io::ErrorKind::PermissionDenied`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn forbid(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.touch(path.as_ref(), |node| node.forbidden = true)
    }

    /// Makes reading `path` fail from `offset` on, as bad blocks do. Its metadata stay as they are.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    pub fn damage(&self, path: impl AsRef<Path>, offset: u64) -> io::Result<()> {
        let mut state = self.powered()?;
        let inode = state.find(path.as_ref())?;
        state.damaged.insert(inode, offset);
        Ok(())
    }

    /// Returns the contents of the file at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::IsADirectory`].
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let state = self.powered()?;
        let inode = state.find(path.as_ref())?;
        Ok(state.tree.node(inode)?.bytes()?.to_vec())
    }

    fn touch(&self, path: &Path, touch: impl FnOnce(&mut Node)) -> io::Result<()> {
        let mut state = self.powered()?;
        let now = state.tick();
        let inode = state.find(path)?;
        let node = state.tree.node_mut(inode)?;
        touch(node);
        node.changed = now;
        state.sync(inode)
    }
}

impl State {
    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.follow(vec![ROOT], path.as_os_str().as_bytes(), Walk::Anywhere)
    }

    fn plant(&mut self, path: &Path, body: Body) -> io::Result<()> {
        let (folder, name) = split(path)?;
        let folder = self.folders_to(folder)?;
        self.plant_in(folder, name, body).map(drop)
    }

    fn plant_in(&mut self, folder: u64, name: &[u8], body: Body) -> io::Result<u64> {
        self.tree.folder(folder)?;
        let now = self.tick();
        let inode = self.tree.add(folder, body, now);
        self.name(Edit::new(folder, name, Some(inode)))?;
        self.sync(inode)?;
        Ok(inode)
    }

    fn replant(&mut self, inode: u64, len: usize, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let now = self.tick();
        self.change_bytes(inode, len as u64, now, change)?;
        self.sync(inode)
    }

    fn name(&mut self, edit: Edit) -> io::Result<()> {
        let (folder, now) = (edit.folder, self.tick());
        self.change_names(Change { edits: vec![edit], ends: None, moves_folder: false }, now)?;
        self.sync(folder)
    }

    /// Returns the folder at `path`, and creates it and those above it if they are missing.
    fn folders_to(&mut self, path: &Path) -> io::Result<u64> {
        let mut inodes = vec![ROOT];
        for step in path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|step| !step.is_empty()) {
            inodes = match self.tree.walk(inodes.clone(), step, Walk::Anywhere) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let folder = inodes.last().copied().unwrap_or(ROOT);
                    inodes.push(self.plant_in(folder, step, Body::Folder(Default::default()))?);
                    inodes
                }
                walked => walked?,
            };
        }
        let folder = inodes.last().copied().unwrap_or(ROOT);
        self.tree.folder(folder).map(|_| folder)
    }
}

/// Splits a path into its folder and its last name.
fn split(path: &Path) -> io::Result<(&Path, &[u8])> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((path.parent().unwrap_or(Path::new("/")), name.as_bytes()))
}
