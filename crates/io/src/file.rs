//! Files as protocols and stores see them: handles, and a blocking set of operations over them.
//!
//! It is not an async file system: an operation is called inside a closure that the engine runs where it
//! may block ([`crate::Io::files`], [`crate::Io::offload`]). What must hold: a name that a stranger sent
//! becomes a file only through [`Fs::open_beneath`], which never leaves the root it is given.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An open file or folder. Cloning it is cheap; it closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct File(Arc<Handle>);

/// What a [`File`] is to the engine that opened it.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor of the kernel's.
    Descriptor(OwnedFd),
    /// The number of a file on the simulator's disk.
    Simulated(u64),
}

impl File {
    /// Wraps what an engine opened.
    pub fn new(handle: Handle) -> File {
        File(Arc::new(handle))
    }

    /// The engine's own handle.
    pub fn handle(&self) -> &Handle {
        &self.0
    }

    /// The descriptor, unless the file is simulated.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &*self.0 {
            Handle::Descriptor(fd) => Some(fd.as_fd()),
            Handle::Simulated(_) => None,
        }
    }
}

/// What a name stands for. Links are followed before it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket: nothing that is served.
    Other,
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Number of the file on its file system.
    pub inode: u64,
    /// Last change of its contents, as time since 1970; before that, zero.
    pub modified: Duration,
    /// Last change of contents or of anything else about it; nobody can set this one.
    pub changed: Duration,
}

impl Stat {
    /// [`Stat::modified`] as the time of day.
    pub fn modified_at(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.modified
    }
}

/// A name in a folder and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name's bytes: any but `/` and NUL, not always UTF-8.
    pub name: Vec<u8>,
    /// What stands behind it.
    pub stat: Stat,
}

/// Blocking operations on files. An `Fs` that must not wait answers [`io::ErrorKind::WouldBlock`].
pub trait Fs: Send + Sync {
    /// Opens a folder that the operator named, to be the root of others. Follows links.
    ///
    /// # Errors
    /// What the system says, [`io::ErrorKind::NotADirectory`] among it.
    fn open_root(&self, path: &Path) -> io::Result<File>;

    /// Opens `name` for reading, below `root` and never outside, whatever links are on the way. `name` is
    /// relative; empty means `root` itself.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] also for what lies outside.
    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File>;

    /// What is known of an open file.
    ///
    /// # Errors
    /// What the system says.
    fn stat(&self, file: &File) -> io::Result<Stat>;

    /// The entries of a folder in no order, at most `entries_max`; those that vanish meanwhile and those
    /// that lead outside `root` are left out.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::QuotaExceeded`] if there are more than `entries_max`.
    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>>;

    /// Reads at `offset` into `into`; returns how many bytes, 0 at the end of the file.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;
}
