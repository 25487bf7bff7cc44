//! Files as protocols and stores see them: handles, and a blocking set of operations over them.
//!
//! It is not an async file system: an operation is called inside a closure that the engine runs where it
//! may block ([`crate::Io::files`], [`crate::Io::offload`]). What must hold: a path that a stranger sent
//! becomes a file or a folder only through [`Fs::open_beneath`], which never leaves the root it is given;
//! everything else takes a single name in an open folder.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::limits::NAME_BYTES_MAX;
use crate::piped::Pipe;

pub use in_memory::InMemory;

mod in_memory;

/// An open file or folder. Cloning it is cheap; it closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct File(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    handle: Handle,
    in_memory: InMemory,
}

/// What a [`File`] is to the engine that opened it.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor of the kernel's.
    Descriptor(OwnedFd),
    /// A file on the simulator's disk.
    Simulated {
        /// Its number.
        inode: u64,
        /// Power cuts of that disk before it was opened.
        cuts: u32,
        /// It was opened to be written.
        writes: bool,
    },
}

impl File {
    /// Wraps what an engine opened.
    pub fn new(handle: Handle) -> File {
        File(Arc::new(Opened { handle, in_memory: InMemory::default() }))
    }

    /// The engine's own handle.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// What was last found in memory of it.
    pub fn in_memory(&self) -> &InMemory {
        &self.0.in_memory
    }

    /// The descriptor, unless the file is simulated.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.handle() {
            Handle::Descriptor(fd) => Some(fd.as_fd()),
            Handle::Simulated { .. } => None,
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
    /// Number of its file system.
    pub device: u64,
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

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced, at once and as a whole.
    Replaced,
    /// It stays, and the operation fails with [`io::ErrorKind::AlreadyExists`].
    Kept,
}

/// What is left on a file system for who is not its superuser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes.
    pub bytes: u64,
    /// Files and folders; `u64::MAX` where there is no bound.
    pub files: u64,
}

/// Whether `name` can be one name in a folder.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is empty, `.` or `..`, or has `/` or NUL in it;
/// [`io::ErrorKind::InvalidFilename`] if it is longer than [`NAME_BYTES_MAX`].
pub fn check_name(name: &[u8]) -> io::Result<()> {
    if matches!(name, b"" | b"." | b"..") || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    Ok(())
}

/// In a name to be opened, ends the folder that later links may not lead out of. No path of a home contains
/// it.
pub const BOUNDARY: &[u8] = b"//";

/// The folder before the [`BOUNDARY`] of a name, if there is one, and the rest.
#[must_use]
pub fn split_boundary(name: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match name.windows(BOUNDARY.len()).position(|window| window == BOUNDARY) {
        Some(at) => {
            let rest = &name[at..];
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            (Some(&name[..at]), &rest[slashes..])
        }
        None => (None, name),
    }
}

/// Reads the entries of a folder some at a time.
pub trait FolderReader: Send {
    /// The next entries, in no order: `entries_max`, or fewer at the end of the folder.
    ///
    /// # Errors
    /// What the system says.
    fn read(&mut self, entries_max: usize) -> io::Result<Vec<Entry>>;
}

impl FolderReader for std::vec::IntoIter<Entry> {
    fn read(&mut self, entries_max: usize) -> io::Result<Vec<Entry>> {
        Ok(self.take(entries_max).collect())
    }
}

/// Blocking operations on files. An `Fs` that must not wait answers [`io::ErrorKind::WouldBlock`], and to
/// everything that changes something it does so always.
///
/// What changes a folder takes the open folder and one name in it: no `/`, not empty, not `.` or `..`, not
/// too long, as [`check_name`] has it. It follows no link in that name's place. What is changed may be lost
/// at a power cut until it is [synced](Fs::sync): contents with their file, names with each folder that they
/// are in.
pub trait Fs: Send + Sync {
    /// Opens a folder that the operator named, to be the root of others. Follows links.
    ///
    /// # Errors
    /// What the system says, [`io::ErrorKind::NotADirectory`] among it.
    fn open_root(&self, path: &Path) -> io::Result<File>;

    /// Opens `name` for reading, below `root` and never outside, whatever links are on the way. `name` is
    /// relative; empty means `root` itself. After a [`BOUNDARY`], links do not lead out of the folder before
    /// it: in `a//b/c`, neither `b` nor `c` leads out of `a`.
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

    /// Opens a folder to read its entries some at a time: those of [`Fs::list`].
    ///
    /// # Errors
    /// What the system says.
    fn read_folder(&self, root: &File, name: &[u8]) -> io::Result<Box<dyn FolderReader>> {
        Ok(Box::new(self.list(root, name, usize::MAX)?.into_iter()))
    }

    /// Reads at `offset` into `into`; returns how many bytes, 0 at the end of the file.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// As [`Fs::read_at`], for bytes that whoever reads them keeps: the system need not keep them too.
    ///
    /// # Errors
    /// What the system says.
    fn read_uncached(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Has a range of a file in memory, so that sending it waits for no disk. It is a help and no promise:
    /// the system may need the memory for something else before the bytes are sent.
    ///
    /// # Errors
    /// What the system says.
    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()>;

    /// The entries of an open folder in no order, at most `entries_max`, with what each name itself stands
    /// for: a link is [`FileKind::Other`], wherever it leads.
    ///
    /// # Errors
    /// As [`Fs::list`].
    fn names(&self, folder: &File, entries_max: usize) -> io::Result<Vec<Entry>>;

    /// What one name in an open folder itself stands for: a link is [`FileKind::Other`], wherever it leads.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat>;

    /// Makes an empty file and opens it for reading and writing; only the server's account may read it.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`]; [`io::ErrorKind::StorageFull`] or
    /// [`io::ErrorKind::QuotaExceeded`].
    fn create(&self, folder: &File, name: &[u8]) -> io::Result<File>;

    /// Opens a file that is there for reading and writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], also for a link, a pipe or a device; [`io::ErrorKind::IsADirectory`].
    fn open_to_write(&self, folder: &File, name: &[u8]) -> io::Result<File>;

    /// Writes at `offset`; returns how many bytes, which may be fewer than there are.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] or [`io::ErrorKind::QuotaExceeded`] if there is no room.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Has what has a name, which is about to be replaced, freed after whoever asked for this work has their
    /// answer. Where that cannot be, it is freed when it is replaced.
    fn free_later(&self, folder: &File, name: &[u8]) {
        let _ = (folder, name);
    }

    /// Lets others who wait for this core go first: they may have something to say of what is done next.
    fn let_others_go(&self) {}

    /// Writes up to `bytes` from a pipe that has as many, at `offset`; returns how many, which may be fewer.
    ///
    /// # Errors
    /// As [`Fs::write_at`]. Which bytes have come out of the pipe is open then.
    fn write_from(&self, file: &File, pipe: &Pipe, bytes: u64, offset: u64) -> io::Result<u64> {
        let _ = (file, pipe, bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cuts or lengthens a file; new bytes are zero.
    ///
    /// # Errors
    /// What the system says.
    fn set_len(&self, file: &File, len: u64) -> io::Result<()>;

    /// Sets when a file was last modified, as time since 1970.
    ///
    /// # Errors
    /// What the system says.
    fn set_modified(&self, file: &File, modified: Duration) -> io::Result<()>;

    /// Waits until a file's contents, or the names in a folder, survive a power cut.
    ///
    /// # Errors
    /// What the system says. What was written may then be lost, and asking again proves nothing.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Makes a folder, which only the server's account may read.
    ///
    /// # Errors
    /// As [`Fs::create`].
    fn make_folder(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Gives what has the name `from` in one folder the name `to` in another (or the same), at once: there
    /// is no moment at which `to` is neither the old nor the new. A folder is never replaced by a file, nor
    /// a file by a folder, nor a folder that is not empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::AlreadyExists`], [`io::ErrorKind::IsADirectory`],
    /// [`io::ErrorKind::NotADirectory`], [`io::ErrorKind::DirectoryNotEmpty`],
    /// [`io::ErrorKind::CrossesDevices`]; [`io::ErrorKind::InvalidInput`] for a folder into itself.
    fn rename(
        &self,
        from_folder: &File,
        from: &[u8],
        to_folder: &File,
        to: &[u8],
        existing: Existing,
    ) -> io::Result<()>;

    /// Takes away a file, or a link and not what it leads to.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::IsADirectory`].
    fn remove_file(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Takes away an empty folder.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::NotADirectory`],
    /// [`io::ErrorKind::DirectoryNotEmpty`].
    fn remove_folder(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Copies the first `bytes_max` bytes of `from`, or all if it has fewer, to the start of `to`, sharing
    /// blocks where the file system can; returns how many bytes.
    ///
    /// # Errors
    /// As [`Fs::read_at`] and [`Fs::write_at`].
    fn copy(&self, from: &File, to: &File, bytes_max: u64) -> io::Result<u64>;

    /// Copies at most `bytes_max` bytes from `offset` in `from` to the same offset in `to`; returns how many
    /// bytes, 0 at the end of the file.
    ///
    /// # Errors
    /// As [`Fs::copy`].
    fn copy_part(&self, from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64>;

    /// What is left on the file system of `file`.
    ///
    /// # Errors
    /// What the system says.
    fn space(&self, file: &File) -> io::Result<Space>;
}
