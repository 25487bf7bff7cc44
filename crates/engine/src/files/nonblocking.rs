//! Non-blocking file access: the operating system's files as far as the kernel has them cached.
//!
//! It is not a cache itself: it queries the kernel's. Invariant: no call waits for a disk; a call that might
//! wait is `WouldBlock`.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use plimsoll_io::{Entry, Existing, File, Fs, Pipe, Space, Stat, Volume, check_name};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::ReadWriteFlags;

use super::reading::{BENEATH, READ, is_of_memory, open_beneath, read_at, stat, volume};
use crate::limits::READ_AHEAD_STEP_BYTES;

/// Non-blocking file access: an operation on data that is not cached is `WouldBlock`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NonBlockingFs;

/// Maps the result of an open with RESOLVE_CACHED. Linux before 5.12 does not know that flag: then every
/// open is `WouldBlock`.
fn nonblocking(opened: io::Result<File>) -> io::Result<File> {
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

impl Fs for NonBlockingFs {
    fn open_root(&self, _: &Path) -> io::Result<File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        nonblocking(open_beneath(root, name, READ, BENEATH | ResolveFlags::CACHED))
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        // An open file's inode is in memory.
        stat(file)
    }

    fn volume(&self, folder: &File) -> io::Result<Volume> {
        volume(folder)
    }

    fn list(&self, _: &File, _: &[u8], _: usize) -> io::Result<Vec<Entry>> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(file, into, offset, ReadWriteFlags::NOWAIT).map_err(|error| match error.kind() {
            // The file system does not support non-blocking reads.
            io::ErrorKind::Unsupported => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }

    fn read_uncached(&self, _: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        in_memory(file, range).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }

    fn names(&self, _: &File, _: usize) -> io::Result<Vec<Entry>> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat> {
        check_name(name)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = nonblocking(open_beneath(folder, name, flags, BENEATH | ResolveFlags::CACHED));
        stat(&opened.map_err(|error| match error.kind() {
            // Only a blocking lookup can tell why the name is missing: it may be too long for this file
            // system.
            io::ErrorKind::NotFound => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })?)
    }

    fn create(&self, _: &File, _: &[u8]) -> io::Result<File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn open_to_write(&self, _: &File, _: &[u8]) -> io::Result<File> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write_at(&self, _: &File, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write_from(&self, _: &File, _: &Pipe, _: u64, _: u64) -> io::Result<u64> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn set_len(&self, _: &File, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn set_modified(&self, _: &File, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn make_folder(&self, _: &File, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn rename(&self, _: &File, _: &[u8], _: &File, _: &[u8], _: Existing) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn remove_file(&self, _: &File, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn remove_folder(&self, _: &File, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn copy(&self, _: &File, _: &File, _: u64) -> io::Result<u64> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn copy_part(&self, _: &File, _: &File, _: u64, _: u64) -> io::Result<u64> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn space(&self, _: &File) -> io::Result<Space> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Checks that a range of a file is in the page cache: `WouldBlock` if not, `Unsupported` where the file
/// system cannot tell.
pub(super) fn in_memory(file: &File, range: Range<u64>) -> io::Result<()> {
    // Probes a byte of each step, and the last: the kernel reads at least a step ahead. (cachestat would be
    // one call, but counts pages that are still being read from the disk, and needs write permission.)
    let steps = (range.start..range.end).step_by(READ_AHEAD_STEP_BYTES);
    for at in steps.chain(range.end.checked_sub(1)) {
        match read_at(file, &mut [0], at, ReadWriteFlags::NOWAIT) {
            // All of its data is in memory.
            Err(error) if error.kind() == io::ErrorKind::Unsupported && is_of_memory(file) => return Ok(()),
            read => read?,
        };
    }
    Ok(())
}
