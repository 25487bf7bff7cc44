//! Reading operations on files: opening beneath a root, statuses, folders, contents.
//!
//! It changes nothing. Invariant: an untrusted path is opened only here, by openat2 with RESOLVE_BENEATH and
//! no magic links.

use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use plimsoll_io::{Entry, File, FileKind, FolderReader, Handle, Stat, Volume, split_boundary};
use rustix::fs::{
    Advice, AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fadvise, fstat,
    makedev, openat, openat2, readlinkat, statat, statx,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::path::Arg;

use crate::limits::READ_AHEAD_CHUNK_BYTES;

/// NONBLOCK so that opening a pipe in a served folder does not block; NOCTTY so that no terminal becomes the
/// controlling one.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

pub(super) fn open_beneath(
    root: &File,
    name: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<File> {
    let Some(root) = root.descriptor() else { return Err(io::ErrorKind::InvalidInput.into()) };
    match split_boundary(name) {
        (Some(folder), rest) if !folder.is_empty() && !rest.is_empty() => {
            let folder = resolve_beneath(root, folder, OFlags::PATH | OFlags::CLOEXEC, resolve)?;
            resolve_beneath(folder.as_fd(), rest, flags, resolve)
        }
        (Some(folder), b"") => resolve_beneath(root, folder, flags, resolve),
        (_, rest) => resolve_beneath(root, rest, flags, resolve),
    }
    .map(|fd| File::new(Handle::Descriptor(fd)))
}

fn resolve_beneath(
    root: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    let name = if name.is_empty() { b"." } else { name };
    openat2(root, name, flags, Mode::empty(), resolve).map_err(|errno| match errno {
        // Outside the root, a loop of links, a socket, a name too long for any file: for the caller, not
        // found.
        Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NAMETOOLONG | Errno::NODEV => {
            io::ErrorKind::NotFound.into()
        }
        other => error_of(other),
    })
}

fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        _ => FileKind::Other,
    };
    let time = |seconds: i64, nanos: u64| match u64::try_from(seconds) {
        Ok(seconds) => Duration::new(seconds, u32::try_from(nanos).unwrap_or(0)),
        Err(_) => Duration::ZERO,
    };
    Stat {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        device: stat.st_dev,
        inode: stat.st_ino,
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
        links: links_of(stat),
    }
}

/// Returns the number of names, whose type depends on the architecture.
#[allow(clippy::useless_conversion, reason = "it has 64 bits on some architectures")]
fn links_of(stat: &rustix::fs::Stat) -> u64 {
    stat.st_nlink.into()
}

pub(super) fn stat(file: &File) -> io::Result<Stat> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(stat_of(&fstat(fd)?))
}

/// Returns the volume of a folder by statx(2). Linux before 5.8 reports no number of a mount: bind mounts of
/// one file system are then taken for one volume, and a rename between them fails.
pub(super) fn volume(folder: &File) -> io::Result<Volume> {
    let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    let found = statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok(Volume { device, mount: found.stx_mnt_id })
}

/// Walks up from `folder` by `..` to the last folder that is on the same volume.
pub(super) fn volume_top(folder: &File) -> io::Result<File> {
    let (wanted, mut top) = (volume(folder)?, folder.clone());
    let open = |folder: &File, name| {
        let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
        let opened = openat(fd, name, READ | OFlags::DIRECTORY, Mode::empty()).map_err(error_of)?;
        Ok::<_, io::Error>(File::new(Handle::Descriptor(opened)))
    };
    loop {
        let parent = open(&top, "..")?;
        let is_root = stat(&parent)?.inode == stat(&top)?.inode;
        if is_root || volume(&parent)? != wanted {
            return open(&top, ".");
        }
        top = parent;
    }
}

/// Walks up from `folder` by `..` until it meets `above`, or the top, whose parent is itself.
pub(super) fn is_below(folder: &File, above: &File) -> io::Result<bool> {
    let key = |stat: Stat| (stat.device, stat.inode);
    let (above, mut here) = (key(stat(above)?), key(stat(folder)?));
    let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    let mut open = openat(fd, ".", PARENT, Mode::empty()).map_err(error_of)?;
    loop {
        if here == above {
            return Ok(true);
        }
        open = openat(&open, "..", PARENT, Mode::empty()).map_err(error_of)?;
        let parent = key(stat_of(&fstat(&open)?));
        if parent == here {
            return Ok(false);
        }
        here = parent;
    }
}

/// To look at a folder alone, which needs no permission to read it.
const PARENT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(super) fn read_link(folder: &File, name: &[u8]) -> io::Result<Vec<u8>> {
    let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(readlinkat(fd, name, Vec::new())?.into_bytes())
}

pub(super) fn read_at(file: &File, into: &mut [u8], offset: u64, flags: ReadWriteFlags) -> io::Result<usize> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::io::retry_on_intr(|| preadv2(fd, &mut [IoSliceMut::new(into)], offset, flags))?)
}

/// Reads a range, so that it is in the page cache.
pub(super) fn read_ahead(file: &File, range: Range<u64>) -> io::Result<()> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    // Starts to read all of it, as far as the kernel likes; it is only a hint.
    let _ = fadvise(fd, range.start, NonZeroU64::new(range.end - range.start), Advice::WillNeed);
    let mut chunk = vec![0; READ_AHEAD_CHUNK_BYTES];
    let mut at = range.start;
    while at < range.end {
        let most = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(chunk.len());
        match read_at(file, &mut chunk[..most], at, ReadWriteFlags::empty())? {
            // The file became shorter; sending it will report that.
            0 => return Ok(()),
            read => at += read as u64,
        }
    }
    Ok(())
}

/// As [`read_ahead`], for file systems that cannot tell whether the range is cached. Mostly it is, so this
/// avoids copying it.
pub(super) fn read_ahead_in_steps(file: &File, range: Range<u64>) -> io::Result<()> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    let _ = fadvise(fd, range.start, NonZeroU64::new(range.end - range.start), Advice::WillNeed);
    for at in range.step_by(READ_AHEAD_CHUNK_BYTES) {
        read_at(file, &mut [0], at, ReadWriteFlags::empty())?;
    }
    Ok(())
}

/// Returns whether a file is on tmpfs.
pub(super) fn is_of_memory(file: &File) -> bool {
    system_of(file) == Some(TMPFS)
}

/// Returns the magic number of the file system that a file is on (statfs(2), linux/magic.h).
pub(super) fn system_of(file: &File) -> Option<i128> {
    let system = rustix::fs::fstatfs(file.descriptor()?).ok()?;
    // It has 32 bits, in a type that depends on the architecture.
    Some(i128::from(system.f_type) & 0xFFFF_FFFF)
}

pub(super) const TMPFS: i128 = 0x0102_1994;

/// Converts an error, with a kind of its own for those that may pass (too many open files).
pub(super) fn error_of(errno: Errno) -> io::Error {
    match errno {
        Errno::MFILE | Errno::NFILE => {
            io::Error::new(io::ErrorKind::ResourceBusy, "as many files are open as may be")
        }
        other => other.into(),
    }
}

/// Returns the entries of a folder, at most `entries_max`. Entries for which `stat_entry` returns `None` are
/// left out.
pub(super) fn entries(
    folder: &File,
    entries_max: usize,
    stat_entry: impl Fn(&DirEntry) -> io::Result<Option<Stat>>,
) -> io::Result<Vec<Entry>> {
    let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    let mut entries = Vec::new();
    for found in Dir::read_from(fd).map_err(error_of)? {
        let found = found?;
        let name = found.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let Some(stat) = stat_entry(&found)? else { continue };
        if entries.len() == entries_max {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the folder has too many entries to list",
            ));
        }
        entries.push(Entry { name: name.to_owned(), stat });
    }
    Ok(entries)
}

/// An open folder whose entries are read in batches.
pub(super) struct Reader {
    root: File,
    path: Vec<u8>,
    folder: File,
    found: Dir,
}

impl Reader {
    /// Starts to read `folder`, whose path below `root` is `path`.
    pub(super) fn open(root: &File, path: &[u8], folder: File) -> io::Result<Reader> {
        let found =
            Dir::read_from(folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?).map_err(error_of)?;
        Ok(Reader { root: root.clone(), path: path.to_vec(), folder, found })
    }
}

impl FolderReader for Reader {
    fn read(&mut self, entries_max: usize) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while entries.len() < entries_max {
            let Some(found) = self.found.read() else { break };
            let found = found?;
            let name = found.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if let Some(stat) = stat_beneath(&self.root, &self.path, &self.folder, &found)? {
                entries.push(Entry { name: name.to_owned(), stat });
            }
        }
        Ok(entries)
    }
}

/// Returns the status of one name in a folder. Links are not followed.
pub(super) fn stat_name(folder: &File, name: impl Arg) -> io::Result<Stat> {
    let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(stat_of(&statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// As [`stat_name`], for an entry that was read from the folder; `None` if it has been removed.
pub(super) fn stat_entry(folder: &File, found: &DirEntry) -> io::Result<Option<Stat>> {
    match stat_name(folder, found.file_name()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        stat => stat.map(Some),
    }
}

/// Returns the status of an entry, with links followed within `root`, below which `path` is the path of
/// `folder`. `None` if a link is broken.
pub(super) fn stat_beneath(
    root: &File,
    path: &[u8],
    folder: &File,
    found: &DirEntry,
) -> io::Result<Option<Stat>> {
    if found.file_type() != FileType::Symlink {
        return stat_entry(folder, found);
    }
    // A second slash would be a boundary.
    let slash: &[u8] = if path.is_empty() || path.ends_with(b"/") { b"" } else { b"/" };
    let whole = [path, slash, found.file_name().to_bytes()].concat();
    // Opened with O_PATH: opening a pipe behind a link would be visible to its writer.
    Ok(open_beneath(root, &whole, OFlags::PATH | OFlags::CLOEXEC, BENEATH).and_then(|file| stat(&file)).ok())
}
