//! A region of memory that two processes share: a sealed memfd, mapped by both.
//!
//! It gives the words no meaning. Invariants: a region is mapped only after its size was checked, and only if
//! seals forbid to change the size. So no access to it fails, whatever the peer does with the descriptor. It
//! has no name in any folder, and ends with the last process that has it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::limits::DOORBELL_BYTES;
use crate::ring::{Layout, WORD_BYTES};

/// The seals of a region: neither its size nor these seals can be changed.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapped region.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<AtomicU64>,
    words: usize,
}

impl Region {
    /// Creates a region with two rings of `ring_bytes` each. Returns it with its descriptor for the peer.
    pub(crate) fn create(ring_bytes: usize) -> io::Result<(Region, OwnedFd)> {
        Region::of_words(Layout::words(ring_bytes))
    }

    /// Creates the page of a doorbell.
    pub(crate) fn create_page() -> io::Result<(Region, OwnedFd)> {
        Region::of_words(DOORBELL_BYTES / WORD_BYTES)
    }

    fn of_words(words: usize) -> io::Result<(Region, OwnedFd)> {
        let fd = new_memfd()?;
        ftruncate(&fd, (words * WORD_BYTES) as u64)?;
        fcntl_add_seals(&fd, SEALS)?;
        Ok((Region::map(&fd, words)?, fd))
    }

    /// Maps the region of a peer, whose file must have this size, which must be that of two rings, and the
    /// seals.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it has not, or the error of mmap(2).
    pub(crate) fn of_peer(fd: &OwnedFd, bytes: u64) -> io::Result<Region> {
        if Layout::of(usize::try_from(bytes).unwrap_or(0) / WORD_BYTES).is_none() {
            return Err(invalid("the shared memory has an unusable size"));
        }
        Region::sealed(fd, bytes)
    }

    /// Maps the page of a peer's doorbell.
    ///
    /// # Errors
    /// As [`Region::of_peer`].
    pub(crate) fn page_of_peer(fd: &OwnedFd) -> io::Result<Region> {
        Region::sealed(fd, DOORBELL_BYTES as u64)
    }

    fn sealed(fd: &OwnedFd, bytes: u64) -> io::Result<Region> {
        // Other kinds of files have no seals, and the call fails.
        let seals = fcntl_get_seals(fd).map_err(|_| invalid("the shared memory is no memfd"))?;
        if !seals.contains(SEALS) {
            return Err(invalid("the shared memory is not sealed"));
        }
        let size = u64::try_from(fstat(fd)?.st_size).unwrap_or(0);
        let words = usize::try_from(bytes).unwrap_or(0) / WORD_BYTES;
        if size != bytes || bytes != (words * WORD_BYTES) as u64 {
            return Err(invalid("the shared memory has another size than announced"));
        }
        Region::map(fd, words)
    }

    fn map(fd: impl AsFd, words: usize) -> io::Result<Region> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: no address is requested, so the mapping replaces no other.
        let start = unsafe { mmap(null_mut(), words * WORD_BYTES, access, flags, fd, 0) }?;
        let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(Errno::NOMEM)?;
        Ok(Region { start, words })
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.words * WORD_BYTES) as u64
    }

    /// Returns the words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words, begins at a page and is unmapped only by `drop`. The file
        // cannot shrink, so every page of it can be accessed. Every bit pattern is a valid word, and this
        // process accesses the memory only through this type, which is atomic.
        unsafe { from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

// SAFETY: the mapping belongs to the process and not to a thread, and is accessed as atomics only.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is as long as when it was created, and `words` lends it no longer than the
        // region exists. An error would leave it mapped, which harms nothing but memory.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.words * WORD_BYTES) };
    }
}

fn new_memfd() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create("plimsoll-channel", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::INVAL) => Ok(memfd_create("plimsoll-channel", flags)?),
        created => Ok(created?),
    }
}

pub(crate) fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const RING_BYTES: usize = 4096;

    #[test]
    fn both_sides_see_the_same_words() {
        let (ours, fd) = Region::create(RING_BYTES).unwrap();
        let theirs = Region::of_peer(&fd, ours.bytes()).unwrap();
        assert_eq!(ours.words().len(), theirs.words().len());
        ours.words()[7].store(42, Ordering::Relaxed);
        assert_eq!(theirs.words()[7].load(Ordering::Relaxed), 42);
        drop(ours);
        assert_eq!(theirs.words()[7].load(Ordering::Relaxed), 42, "it lives as long as one side has it");
    }

    #[test]
    fn a_region_can_be_neither_shrunk_nor_grown() {
        let (region, fd) = Region::create(RING_BYTES).unwrap();
        assert_eq!(ftruncate(&fd, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&fd, region.bytes() + 4096), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn memory_that_could_shrink_or_has_another_size_is_refused() {
        let words = Layout::words(RING_BYTES);
        let bytes = (words * WORD_BYTES) as u64;
        let of = |fd: &OwnedFd, bytes| Region::of_peer(fd, bytes).map(drop).unwrap_err().kind();
        let unsealed = new_memfd().unwrap();
        ftruncate(&unsealed, bytes).unwrap();
        assert_eq!(of(&unsealed, bytes), io::ErrorKind::InvalidData);
        let no_memfd = OwnedFd::from(tempfile::tempfile().unwrap());
        ftruncate(&no_memfd, bytes).unwrap();
        assert_eq!(of(&no_memfd, bytes), io::ErrorKind::InvalidData);
        let (_, fd) = Region::create(RING_BYTES).unwrap();
        for wrong in [0, 8, bytes - 8, bytes + 8, bytes + 1, u64::MAX] {
            assert_eq!(of(&fd, wrong), io::ErrorKind::InvalidData, "{wrong}");
        }
        let odd = new_memfd().unwrap();
        ftruncate(&odd, bytes + 8).unwrap();
        fcntl_add_seals(&odd, SEALS).unwrap();
        assert_eq!(of(&odd, bytes + 8), io::ErrorKind::InvalidData, "its rings would differ in size");
    }
}
