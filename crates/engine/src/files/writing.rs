//! Changes of files: names in open folders, contents of open files, and their syncs.
//!
//! It does not follow untrusted paths: every name here is a single component. Invariants: no link is
//! followed, and no existing entry is replaced unless the caller requests it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use plimsoll_io::{Existing, File, FileKind, Handle, Pipe, Space, check_name};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fstatvfs, fsync, ftruncate,
    futimens, linkat, mkdirat, openat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::{Errno, pwrite, read, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};

use super::reading::{READ, error_of, stat};
use crate::limits::COPY_CHUNK_BYTES;

/// Access only for the server's own user.
const OWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const OWN_FOLDER: Mode = Mode::RWXU;

const WRITE: OFlags = READ.union(OFlags::RDWR).union(OFlags::NOFOLLOW);

/// Returns the descriptor of a folder, after a check that `name` is a single component.
fn place<'a>(folder: &'a File, name: &[u8]) -> io::Result<BorrowedFd<'a>> {
    check_name(name)?;
    descriptor(folder)
}

pub(super) fn descriptor(file: &File) -> io::Result<BorrowedFd<'_>> {
    file.descriptor().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

pub(super) fn create(folder: &File, name: &[u8]) -> io::Result<File> {
    let flags = WRITE | OFlags::CREATE | OFlags::EXCL;
    let fd = openat(place(folder, name)?, name, flags, OWN_FILE).map_err(error_of)?;
    Ok(File::new(Handle::Descriptor(fd)))
}

pub(super) fn open_to_write(folder: &File, name: &[u8]) -> io::Result<File> {
    let opened = openat(place(folder, name)?, name, WRITE, Mode::empty());
    let file = File::new(Handle::Descriptor(opened.map_err(|errno| match errno {
        Errno::LOOP | Errno::NXIO | Errno::NODEV => io::ErrorKind::NotFound.into(),
        other => error_of(other),
    })?));
    // A pipe or a device can be opened, too, but is not a file to write to.
    if stat(&file)?.kind == FileKind::File { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let fd = descriptor(file)?;
    Ok(retry_on_intr(|| pwrite(fd, bytes, offset))?)
}

/// Moves bytes from a pipe into a file by splice(2), or through memory where that is not supported.
pub(super) fn write_from(file: &File, pipe: &Pipe, bytes: u64, offset: u64) -> io::Result<u64> {
    let (fd, mut at) = (descriptor(file)?, offset);
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    let flags = SpliceFlags::empty();
    let moved = match retry_on_intr(|| splice(pipe.source(), None, fd, Some(&mut at), most, flags)) {
        Err(Errno::INVAL) => copy_from(file, pipe, most, offset)?,
        moved => moved?,
    } as u64;
    pipe.drained(moved);
    Ok(moved)
}

fn copy_from(file: &File, pipe: &Pipe, bytes_max: usize, offset: u64) -> io::Result<usize> {
    let mut chunk = vec![0; bytes_max.min(COPY_CHUNK_BYTES)];
    let came = retry_on_intr(|| read(pipe.source(), &mut chunk[..]))?;
    let mut done = 0;
    while done < came {
        match write_at(file, &chunk[done..came], offset + done as u64)? {
            0 => return Err(io::ErrorKind::StorageFull.into()),
            count => done += count,
        }
    }
    Ok(came)
}

pub(super) fn set_len(file: &File, len: u64) -> io::Result<()> {
    let fd = descriptor(file)?;
    Ok(retry_on_intr(|| ftruncate(fd, len))?)
}

pub(super) fn set_modified(file: &File, modified: Duration) -> io::Result<()> {
    let seconds = i64::try_from(modified.as_secs()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: modified.subsec_nanos().into() },
    };
    Ok(futimens(descriptor(file)?, &times)?)
}

/// Syncs a file by fsync(2).
///
/// Not by syncfs, even for many files at once: it waits for all unsynced writes on the file system.
/// Alongside one busy writer it was less than half as fast.
///
/// Not by fdatasync: it omits the change time, which clients see. After a file has grown it has to write the
/// inode, too, and is no faster.
pub(super) fn sync(file: &File) -> io::Result<()> {
    let fd = descriptor(file)?;
    Ok(retry_on_intr(|| fsync(fd))?)
}

pub(super) fn make_folder(folder: &File, name: &[u8]) -> io::Result<()> {
    Ok(mkdirat(place(folder, name)?, name, OWN_FOLDER)?)
}

pub(super) fn make_link(folder: &File, name: &[u8], target: &[u8]) -> io::Result<()> {
    Ok(symlinkat(target, place(folder, name)?, name)?)
}

pub(super) fn rename(
    (from_folder, from): (&File, &[u8]),
    (to_folder, to): (&File, &[u8]),
    existing: Existing,
) -> io::Result<()> {
    let old = (place(from_folder, from)?, from);
    let new = (place(to_folder, to)?, to);
    match existing {
        Existing::Replaced => rename_over(old, new),
        Existing::Kept => rename_beside(old, new),
    }
}

/// A name in an open folder.
pub(super) type Name<'a> = (BorrowedFd<'a>, &'a [u8]);

fn rename_over(old: Name<'_>, new: Name<'_>) -> io::Result<()> {
    renameat(old.0, old.1, new.0, new.1).map_err(|errno| match errno {
        // POSIX lets a file system choose between the two errors for a folder that is not empty.
        Errno::EXIST => io::ErrorKind::DirectoryNotEmpty.into(),
        other => unless_mounted(other),
    })
}

/// Converts an error of a call on a name: EBUSY for a folder on which a file system is mounted.
fn unless_mounted(errno: Errno) -> io::Error {
    match errno {
        Errno::BUSY => io::Error::new(io::ErrorKind::CrossesDevices, "a file system is mounted there"),
        other => other.into(),
    }
}

fn rename_beside(old: Name<'_>, new: Name<'_>) -> io::Result<()> {
    match renameat_with(old.0, old.1, new.0, new.1, RenameFlags::NOREPLACE) {
        // Moving a folder into itself fails with EINVAL, too, and fails again.
        Err(Errno::INVAL) => rename_without_flags(old, new),
        renamed => renamed.map_err(unless_mounted),
    }
}

/// Renames without replacing, for file systems (NFS, some of FUSE) without rename flags. A file has both
/// names for a moment. For a folder there is a race: an empty folder that is created at `new` after the
/// check is replaced.
pub(super) fn rename_without_flags(old: Name<'_>, new: Name<'_>) -> io::Result<()> {
    let kind = rustix::fs::FileType::from_raw_mode(statat(old.0, old.1, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
    if kind != rustix::fs::FileType::Directory {
        linkat(old.0, old.1, new.0, new.1, AtFlags::empty())?;
        return Ok(unlinkat(old.0, old.1, AtFlags::empty())?);
    }
    match statat(new.0, new.1, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rename_over(old, new),
        Err(error) => Err(error.into()),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

pub(super) fn remove_file(folder: &File, name: &[u8]) -> io::Result<()> {
    Ok(unlinkat(place(folder, name)?, name, AtFlags::empty())?)
}

pub(super) fn remove_folder(folder: &File, name: &[u8]) -> io::Result<()> {
    unlinkat(place(folder, name)?, name, AtFlags::REMOVEDIR).map_err(|errno| match errno {
        Errno::EXIST => io::ErrorKind::DirectoryNotEmpty.into(),
        other => unless_mounted(other),
    })
}

pub(super) fn space(file: &File) -> io::Result<Space> {
    let found = fstatvfs(descriptor(file)?)?;
    // A file system without a table of inodes reports zero.
    let files = if found.f_files == 0 { u64::MAX } else { found.f_favail };
    Ok(Space { bytes: found.f_bavail.saturating_mul(found.f_frsize), files })
}
