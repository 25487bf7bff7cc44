//! Files for protocols and stores: handles, and a blocking set of operations over them.
//!
//! This is not an async file system: an operation is called inside a closure that the engine runs where
//! it may block ([`crate::Io::files`], [`crate::Io::offload`]). Invariant: an untrusted path is resolved
//! only by [`Fs::open_beneath`], [`Fs::list`] and [`Fs::read_folder`], which never leave the root that
//! they are given. All operations that change a folder take a single name in it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::limits::NAME_BYTES_MAX;
use crate::piped::Pipe;

pub use in_memory::InMemory;
pub use small::{read_whole, replace_whole, write_all};

mod in_memory;
mod small;

/// An open file or folder. Cloning it is cheap; it closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct File(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    handle: Handle,
    in_memory: InMemory,
}

/// The handle of a [`File`] in the engine that opened it.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor of the kernel.
    Descriptor(OwnedFd),
    /// A file on the simulator's disk.
    Simulated {
        /// Its inode number.
        inode: u64,
        /// The number of power cuts of that disk before the file was opened.
        cuts: u32,
        /// Whether it was opened for writing.
        writes: bool,
    },
}

impl File {
    /// Wraps a handle that an engine opened.
    pub fn new(handle: Handle) -> File {
        File(Arc::new(Opened { handle, in_memory: InMemory::default() }))
    }

    /// Returns the engine's handle.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Whether `other` is a clone of it.
    pub fn is(&self, other: &File) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the record of the part that was last found in memory.
    pub fn in_memory(&self) -> &InMemory {
        &self.0.in_memory
    }

    /// Returns the descriptor, unless the file is simulated.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.handle() {
            Handle::Descriptor(fd) => Some(fd.as_fd()),
            Handle::Simulated { .. } => None,
        }
    }
}

/// The type of the file behind a name, after links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket: not served.
    Other,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The file's type.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Device number of its file system.
    pub device: u64,
    /// Inode number of the file on its file system.
    pub inode: u64,
    /// Last change of the contents, as time since 1970; zero for times before that.
    pub modified: Duration,
    /// Last change of the contents or of the metadata. Unlike `modified`, no call can set it.
    pub changed: Duration,
    /// The number of names of the file; 0 once it is removed. Timestamps are those of the kernel's last tick:
    /// this changes also within a tick.
    pub links: u64,
}

impl Stat {
    /// [`Stat::modified`] as the time of day.
    pub fn modified_at(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.modified
    }
}

/// A name in a folder and the file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name's bytes: any but `/` and NUL, not always UTF-8.
    pub name: Vec<u8>,
    /// The metadata of the file.
    pub stat: Stat,
}

/// The treatment of an existing file of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced, atomically.
    Replaced,
    /// It is kept, and the operation fails with [`io::ErrorKind::AlreadyExists`].
    Kept,
}

/// A mounted file system, or a part of one with names of its own, such as a bind mount or a subvolume. Only
/// within a volume does [`Fs::rename`] move names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Volume {
    /// The device number.
    pub device: u64,
    /// The number of the mount; 0 where the kernel does not tell.
    pub mount: u64,
}

/// The free space of a file system for unprivileged users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free bytes.
    pub bytes: u64,
    /// Free inodes for files and folders; `u64::MAX` where there is no bound.
    pub files: u64,
}

/// Checks that `name` can be one name in a folder.
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

/// In a path to be opened, marks the end of the folder that later links may not lead out of. No path of
/// a home contains it.
pub const BOUNDARY: &[u8] = b"//";

/// Splits a path at its [`BOUNDARY`]: the folder before it, if there is one, and the rest.
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

/// Reads the entries of a folder in parts.
pub trait FolderReader: Send {
    /// Returns the next entries, in no order: `entries_max`, or fewer at the end of the folder.
    ///
    /// # Errors
    /// The operating system's error.
    fn read(&mut self, entries_max: usize) -> io::Result<Vec<Entry>>;
}

impl FolderReader for std::vec::IntoIter<Entry> {
    fn read(&mut self, entries_max: usize) -> io::Result<Vec<Entry>> {
        Ok(self.take(entries_max).collect())
    }
}

/// Blocking operations on files. A non-blocking `Fs` returns [`io::ErrorKind::WouldBlock`] where it
/// would wait, and from every operation that changes something.
///
/// Operations that change a folder take the open folder and one name in it, which must pass
/// [`check_name`]. They do not follow a link of that name. A power cut may undo a change until it is
/// [synced](Fs::sync): contents with their file, names with each folder that they are in.
pub trait Fs: Send + Sync {
    /// Opens a folder that the operator configured, as the root of other paths. Follows links.
    ///
    /// # Errors
    /// The operating system's error, including [`io::ErrorKind::NotADirectory`].
    fn open_root(&self, path: &Path) -> io::Result<File>;

    /// Opens `name` for reading, below `root` and never outside, whatever links are on the path. `name`
    /// is relative; empty means `root` itself. After a [`BOUNDARY`], links do not lead out of the folder
    /// before it: in `a//b/c`, neither `b` nor `c` leads out of `a`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], also for a path that leads outside.
    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File>;

    /// Returns the metadata of an open file.
    ///
    /// # Errors
    /// The operating system's error.
    fn stat(&self, file: &File) -> io::Result<Stat>;

    /// Returns the entries of a folder in no order, at most `entries_max`. Leaves out entries that
    /// vanish meanwhile and entries that lead outside `root`.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::QuotaExceeded`] if there are more than
    /// `entries_max`.
    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>>;

    /// Opens a folder to read its entries, as of [`Fs::list`], in parts.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_folder(&self, root: &File, name: &[u8]) -> io::Result<Box<dyn FolderReader>> {
        Ok(Box::new(self.list(root, name, usize::MAX)?.into_iter()))
    }

    /// Reads at `offset` into `into`. Returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads like [`Fs::read_at`], for callers that cache the bytes themselves: the kernel need not
    /// cache them too.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_uncached(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads a range of a file into the page cache, so that sending it does not wait for the disk. This
    /// is a hint: the kernel may evict the pages before the bytes are sent.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()>;

    /// Returns the entries of an open folder in no order, at most `entries_max`, without following
    /// links: a link is [`FileKind::Other`], whatever its target.
    ///
    /// # Errors
    /// As [`Fs::list`].
    fn names(&self, folder: &File, entries_max: usize) -> io::Result<Vec<Entry>>;

    /// Returns the metadata of one name in an open folder, without following links: a link is
    /// [`FileKind::Other`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`].
    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat>;

    /// Returns the volume of an open folder. This does not wait for a disk.
    ///
    /// # Errors
    /// The operating system's error.
    fn volume(&self, folder: &File) -> io::Result<Volume> {
        Ok(Volume { device: self.stat(folder)?.device, mount: 0 })
    }

    /// Opens the top folder of the volume that `folder` is on.
    ///
    /// # Errors
    /// The operating system's error.
    fn volume_top(&self, folder: &File) -> io::Result<File> {
        let _ = folder;
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Whether `folder` is the folder `above`, or lies below it: through mounts, and whatever name led to it.
    ///
    /// # Errors
    /// The operating system's error.
    fn is_below(&self, folder: &File, above: &File) -> io::Result<bool> {
        let _ = (folder, above);
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Returns the target of a link, which may not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]; [`io::ErrorKind::InvalidInput`] if `name` is no link.
    fn read_link(&self, folder: &File, name: &[u8]) -> io::Result<Vec<u8>> {
        let _ = (folder, name);
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Creates a link to `target`, which need not exist.
    ///
    /// # Errors
    /// As [`Fs::create`].
    fn make_link(&self, folder: &File, name: &[u8], target: &[u8]) -> io::Result<()> {
        let _ = (folder, name, target);
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Creates an empty file and opens it for reading and writing; only the server's account may read
    /// it.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`]; [`io::ErrorKind::StorageFull`] or
    /// [`io::ErrorKind::QuotaExceeded`].
    fn create(&self, folder: &File, name: &[u8]) -> io::Result<File>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], also for a link, a pipe or a device; [`io::ErrorKind::IsADirectory`].
    fn open_to_write(&self, folder: &File, name: &[u8]) -> io::Result<File>;

    /// Writes at `offset`. Returns the number of bytes written, which may be fewer than there are.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] or [`io::ErrorKind::QuotaExceeded`] if there is no space.
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Defers freeing the storage of a file that is about to be replaced until after the caller has its
    /// response. Without support for that, replacing the file frees it.
    fn free_later(&self, folder: &File, name: &[u8]) {
        let _ = (folder, name);
    }

    /// Whether the file system of `file` is in memory, so that no operation on it waits for a disk. The
    /// answer itself may wait, for a file system of another machine.
    fn is_in_memory(&self, file: &File) -> bool {
        let _ = file;
        false
    }

    /// Yields the core to other runnable threads, whose work may change the caller's next step.
    fn let_others_go(&self) {}

    /// Writes up to `bytes` from a pipe that holds as many, at `offset`. Returns the number of bytes
    /// written, which may be fewer.
    ///
    /// # Errors
    /// As [`Fs::write_at`]. It is then undefined which bytes have left the pipe.
    fn write_from(&self, file: &File, pipe: &Pipe, bytes: u64, offset: u64) -> io::Result<u64> {
        let _ = (file, pipe, bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Truncates or extends a file; new bytes are zero.
    ///
    /// # Errors
    /// The operating system's error.
    fn set_len(&self, file: &File, len: u64) -> io::Result<()>;

    /// Sets the modification time of a file, as time since 1970.
    ///
    /// # Errors
    /// The operating system's error.
    fn set_modified(&self, file: &File, modified: Duration) -> io::Result<()>;

    /// Waits until a file's contents, or the names in a folder, survive a power cut.
    ///
    /// # Errors
    /// The operating system's error. Written data may then be lost, and a second sync that succeeds
    /// proves nothing.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Creates a folder, which only the server's account may read.
    ///
    /// # Errors
    /// As [`Fs::create`].
    fn make_folder(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Renames `from` in one folder to `to` in another (or the same) atomically: at every moment, `to`
    /// is either the old file or the new one. A folder is never replaced by a file, nor a file by a
    /// folder, nor a folder that is not empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::AlreadyExists`], [`io::ErrorKind::IsADirectory`],
    /// [`io::ErrorKind::NotADirectory`], [`io::ErrorKind::DirectoryNotEmpty`],
    /// [`io::ErrorKind::CrossesDevices`], also for the top of a volume; [`io::ErrorKind::InvalidInput`] for a
    /// folder into itself.
    fn rename(
        &self,
        from_folder: &File,
        from: &[u8],
        to_folder: &File,
        to: &[u8],
        existing: Existing,
    ) -> io::Result<()>;

    /// Removes a file, or a link without following it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::IsADirectory`].
    fn remove_file(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::NotADirectory`],
    /// [`io::ErrorKind::DirectoryNotEmpty`]; [`io::ErrorKind::CrossesDevices`] for the top of a volume.
    fn remove_folder(&self, folder: &File, name: &[u8]) -> io::Result<()>;

    /// Copies the first `bytes_max` bytes of `from`, or all if it has fewer, to the start of `to`.
    /// Shares blocks where the file system can. Returns the number of bytes copied.
    ///
    /// # Errors
    /// As [`Fs::read_at`] and [`Fs::write_at`].
    fn copy(&self, from: &File, to: &File, bytes_max: u64) -> io::Result<u64>;

    /// Copies at most `bytes_max` bytes from `offset` in `from` to the same offset in `to`. Returns the
    /// number of bytes copied, 0 at the end of the file.
    ///
    /// # Errors
    /// As [`Fs::copy`].
    fn copy_part(&self, from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64>;

    /// Returns the free space of the file system of `file`.
    ///
    /// # Errors
    /// The operating system's error.
    fn space(&self, file: &File) -> io::Result<Space>;
}
