//! The system's files: the blocking view, and the view that never waits.
//!
//! It is not a cache and follows no name outside its root. What must hold: a stranger's name is opened by
//! openat2 with RESOLVE_BENEATH and no magic links, here and nowhere else.

use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use plimsoll_io::{Entry, File, FileKind, Fs, Handle, Stat};
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::limits::LOOKUP_TRIES_MAX;

/// Files of this system, waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFs;

/// Files of this system, as far as they are in memory: everything else is `WouldBlock`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AtHand;

/// Whether this kernel can open files beneath a folder, which nothing here goes without.
///
/// # Errors
/// A sentence for the operator.
pub fn check_kernel() -> io::Result<()> {
    match openat2(rustix::fs::CWD, c".", READ, Mode::empty(), ResolveFlags::BENEATH) {
        Err(Errno::NOSYS | Errno::PERM) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system lacks openat2, without which no file is served safely: it needs Linux 5.6 or later, \
             and a container whose seccomp profile allows it",
        )),
        _ => Ok(()),
    }
}

/// NONBLOCK so that a pipe in a served folder cannot hold anybody; NOCTTY so that a terminal takes nobody.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

fn open_beneath(root: &File, name: &[u8], flags: OFlags, resolve: ResolveFlags) -> io::Result<File> {
    let Some(root) = root.descriptor() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let name = if name.is_empty() { b"." } else { name };
    let fd = openat2(root, name, flags, Mode::empty(), resolve).map_err(|errno| match errno {
        // Outside the root, a loop of links, a socket, a name too long for any file: for who asks, not there.
        Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NAMETOOLONG | Errno::NODEV => {
            io::ErrorKind::NotFound.into()
        }
        Errno::MFILE | Errno::NFILE => {
            io::Error::new(io::ErrorKind::ResourceBusy, "as many files are open as may be")
        }
        other => other.into(),
    })?;
    Ok(File::new(Handle::Descriptor(fd)))
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
        inode: stat.st_ino,
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn stat(file: &File) -> io::Result<Stat> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(stat_of(&fstat(fd)?))
}

fn read_at(file: &File, into: &mut [u8], offset: u64, flags: ReadWriteFlags) -> io::Result<usize> {
    let fd = file.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::io::retry_on_intr(|| preadv2(fd, &mut [IoSliceMut::new(into)], offset, flags))?)
}

impl Fs for SystemFs {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        let flags = READ | OFlags::DIRECTORY;
        Ok(File::new(Handle::Descriptor(openat(rustix::fs::CWD, path, flags, Mode::empty())?)))
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        let mut tries = 1;
        loop {
            // EAGAIN: a folder on the way was renamed meanwhile, and the kernel could not be sure.
            match open_beneath(root, name, READ, BENEATH) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < LOOKUP_TRIES_MAX => {
                    tries += 1
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::ResourceBusy,
                        "folders on the way keep changing",
                    ));
                }
                opened => return opened,
            }
        }
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        stat(file)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        let folder = self.open_beneath(root, name)?;
        let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
        let mut entries = Vec::new();
        for found in Dir::read_from(fd)? {
            let found = found?;
            let name_found = found.file_name().to_bytes();
            if matches!(name_found, b"." | b"..") {
                continue;
            }
            let Some(stat) = self.stat_entry(root, &folder, name, &found)? else { continue };
            if entries.len() == entries_max {
                return Err(io::Error::new(
                    io::ErrorKind::QuotaExceeded,
                    "the folder has too many entries to list",
                ));
            }
            entries.push(Entry { name: name_found.to_owned(), stat });
        }
        Ok(entries)
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(file, into, offset, ReadWriteFlags::empty())
    }
}

impl SystemFs {
    /// What an entry of `folder` stands for, links followed within `root`; `None` if it leads nowhere.
    fn stat_entry(
        &self,
        root: &File,
        folder: &File,
        name: &[u8],
        found: &rustix::fs::DirEntry,
    ) -> io::Result<Option<Stat>> {
        let fd = folder.descriptor().ok_or(io::ErrorKind::InvalidInput)?;
        if found.file_type() != FileType::Symlink {
            let stat =
                rustix::fs::statat(fd.as_fd(), found.file_name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            return match stat {
                Ok(stat) => Ok(Some(stat_of(&stat))),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
        let whole = [name, b"/", found.file_name().to_bytes()].concat();
        let whole = if name.is_empty() { &whole[1..] } else { &whole[..] };
        // Named and not opened: a pipe behind a link has a writer that would notice.
        Ok(open_beneath(root, whole, OFlags::PATH | OFlags::CLOEXEC, BENEATH)
            .and_then(|file| stat(&file))
            .ok())
    }
}

impl Fs for AtHand {
    fn open_root(&self, _: &Path) -> io::Result<File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        let opened = open_beneath(root, name, READ, BENEATH | ResolveFlags::CACHED);
        // Linux before 5.12 does not know the flag: then nothing is at hand.
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        // An open file's inode is in memory.
        stat(file)
    }

    fn list(&self, _: &File, _: &[u8], _: usize) -> io::Result<Vec<Entry>> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(file, into, offset, ReadWriteFlags::NOWAIT).map_err(|error| match error.kind() {
            // A file system that cannot say whether it would wait.
            io::ErrorKind::Unsupported => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }
}
