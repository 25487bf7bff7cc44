//! The operating system's files: blocking access, and non-blocking access.
//!
//! It is not a cache and follows no path outside its root. Invariant: every operation and its errors are as
//! the contract describes; the kernel's own differences end here.

mod copying;
mod freeing;
mod nonblocking;
mod reading;
#[cfg(test)]
mod tests;
mod uncached;
mod writing;

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

pub(crate) use freeing::{FreesLater, free_now};
pub(crate) use nonblocking::NonBlockingFs;
use plimsoll_io::{Entry, Existing, File, FolderReader, Fs, Handle, Pipe, Space, Stat, Volume, check_name};
use rustix::event::{Timespec, epoll};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::thread::sched_yield;

use crate::limits::LOOKUP_TRIES_MAX;

/// Blocking file access.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFs;

/// Checks that this kernel has the system calls that this crate cannot do without: opening files beneath a
/// folder, and waiting with a timeout below a millisecond.
///
/// # Errors
/// A sentence for the operator.
pub fn check_kernel() -> io::Result<()> {
    let opened = openat2(rustix::fs::CWD, c".", reading::READ, Mode::empty(), ResolveFlags::BENEATH);
    has("openat2", opened.err())?;
    has("epoll_pwait2", waited().err())
}

fn waited() -> Result<usize, Errno> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::wait(&set, &mut [MaybeUninit::uninit()], Some(&Timespec::default()))
        .map(|(events, _)| events.len())
}

fn has(call: &str, error: Option<Errno>) -> io::Result<()> {
    if !matches!(error, Some(Errno::NOSYS | Errno::PERM)) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "this system lacks {call}, without which nothing is served: it needs Linux 5.11 or later, and a \
             container whose seccomp profile allows it"
        ),
    ))
}

impl Fs for SystemFs {
    fn open_root(&self, path: &Path) -> io::Result<File> {
        let flags = reading::READ | OFlags::DIRECTORY;
        let fd = openat(rustix::fs::CWD, path, flags, Mode::empty()).map_err(reading::error_of)?;
        Ok(File::new(Handle::Descriptor(fd)))
    }

    fn open_beneath(&self, root: &File, name: &[u8]) -> io::Result<File> {
        let mut tries = 1;
        loop {
            // EAGAIN: a folder in the path was renamed meanwhile, and the kernel could not rule out an
            // escape.
            match reading::open_beneath(root, name, reading::READ, reading::BENEATH) {
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
        reading::stat(file)
    }

    fn list(&self, root: &File, name: &[u8], entries_max: usize) -> io::Result<Vec<Entry>> {
        let folder = self.open_beneath(root, name)?;
        reading::entries(&folder, entries_max, |found| reading::stat_beneath(root, name, &folder, found))
    }

    fn read_folder(&self, root: &File, name: &[u8]) -> io::Result<Box<dyn FolderReader>> {
        Ok(Box::new(reading::Reader::open(root, name, self.open_beneath(root, name)?)?))
    }

    fn read_at(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        reading::read_at(file, into, offset, ReadWriteFlags::empty())
    }

    fn read_uncached(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        uncached::read_at(file, into, offset)
    }

    fn read_ahead(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        // Where a connection has a thread of its own, this is called for cached ranges, too.
        match nonblocking::in_memory(file, range.clone()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => reading::read_ahead(file, range),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                reading::read_ahead_in_steps(file, range)
            }
            looked => looked,
        }
    }

    fn names(&self, folder: &File, entries_max: usize) -> io::Result<Vec<Entry>> {
        reading::entries(folder, entries_max, |found| reading::stat_entry(folder, found))
    }

    fn stat_name(&self, folder: &File, name: &[u8]) -> io::Result<Stat> {
        check_name(name)?;
        reading::stat_name(folder, name)
    }

    fn volume(&self, folder: &File) -> io::Result<Volume> {
        reading::volume(folder)
    }

    fn volume_top(&self, folder: &File) -> io::Result<File> {
        reading::volume_top(folder)
    }

    fn is_below(&self, folder: &File, above: &File) -> io::Result<bool> {
        reading::is_below(folder, above)
    }

    fn read_link(&self, folder: &File, name: &[u8]) -> io::Result<Vec<u8>> {
        check_name(name)?;
        reading::read_link(folder, name)
    }

    fn make_link(&self, folder: &File, name: &[u8], target: &[u8]) -> io::Result<()> {
        writing::make_link(folder, name, target)
    }

    fn create(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        writing::create(folder, name)
    }

    fn open_to_write(&self, folder: &File, name: &[u8]) -> io::Result<File> {
        writing::open_to_write(folder, name)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        writing::write_at(file, bytes, offset)
    }

    fn free_later(&self, folder: &File, name: &[u8]) {
        freeing::later(folder, name);
    }

    fn is_in_memory(&self, file: &File) -> bool {
        reading::is_of_memory(file)
    }

    fn let_others_go(&self) {
        sched_yield();
    }

    fn write_from(&self, file: &File, pipe: &Pipe, bytes: u64, offset: u64) -> io::Result<u64> {
        writing::write_from(file, pipe, bytes, offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        writing::set_len(file, len)
    }

    fn set_modified(&self, file: &File, modified: Duration) -> io::Result<()> {
        writing::set_modified(file, modified)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        writing::sync(file)
    }

    fn make_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        writing::make_folder(folder, name)
    }

    fn rename(
        &self,
        from_folder: &File,
        from: &[u8],
        to_folder: &File,
        to: &[u8],
        existing: Existing,
    ) -> io::Result<()> {
        writing::rename((from_folder, from), (to_folder, to), existing)
    }

    fn remove_file(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        writing::remove_file(folder, name)
    }

    fn remove_folder(&self, folder: &File, name: &[u8]) -> io::Result<()> {
        writing::remove_folder(folder, name)
    }

    fn copy(&self, from: &File, to: &File, bytes_max: u64) -> io::Result<u64> {
        copying::copy(from, to, 0, bytes_max)
    }

    fn copy_part(&self, from: &File, to: &File, offset: u64, bytes_max: u64) -> io::Result<u64> {
        copying::copy(from, to, offset, bytes_max)
    }

    fn space(&self, file: &File) -> io::Result<Space> {
        writing::space(file)
    }
}
