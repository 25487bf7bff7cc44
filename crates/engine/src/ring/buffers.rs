//! Provided buffers: memory that the kernel receives into, chosen when data has arrived.
//!
//! They do not own leases' memory (a pool does): the block of an index becomes the lease, and another block
//! replaces it at once. Invariants: an index is never without a block, so it does not wait for a lease to be
//! returned. The kernel owns a block from its publication until the completion that names it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use plimsoll_io::{Lease, Pool};

/// Bytes of a page: the kernel requires the ring's memory to be page-aligned.
const PAGE_BYTES: usize = 4096;
/// Bytes of an entry of the ring, as the kernel defines it.
const ENTRY_BYTES: usize = size_of::<BufRingEntry>();

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// One group of provided buffers, all of one size.
pub(super) struct Provided {
    group: u16,
    pool: Rc<Pool>,
    /// The ring in which blocks are published to the kernel; only accessed through `entries`.
    _pages: Vec<Page>,
    entries: *mut BufRingEntry,
    blocks: RefCell<Vec<Lease>>,
    tail: Cell<u16>,
}

impl Provided {
    /// Registers `count` blocks (a power of two) of `pool` with the kernel as `group`.
    pub(super) fn new(group: u16, count: u16, pool: &Rc<Pool>, to: &Submitter<'_>) -> io::Result<Provided> {
        let pages = (usize::from(count) * ENTRY_BYTES).div_ceil(PAGE_BYTES);
        let mut pages = vec![Page([0; PAGE_BYTES]); pages];
        let entries = pages.as_mut_ptr().cast::<BufRingEntry>();
        // SAFETY: the memory is as large as `count` entries, and begins at a page. It lives as long as this
        // value, which the ring never outlives: it is a field of the ring's owner, and every operation that
        // may use it keeps that alive.
        unsafe { to.register_buf_ring_with_flags(entries as u64, count, group, 0)? };
        let blocks = RefCell::new((0..count).map(|_| pool.lease()).collect());
        let pool = Rc::clone(pool);
        let provided = Provided { group, pool, _pages: pages, entries, blocks, tail: Cell::new(0) };
        (0..count).for_each(|index| provided.publish(index));
        Ok(provided)
    }

    /// The group's number, as operations name it.
    pub(super) fn group(&self) -> u16 {
        self.group
    }

    /// Takes the block of `index`, into which the kernel has received `bytes`, and publishes another in its
    /// place.
    pub(super) fn take(&self, index: u16, bytes: usize) -> Lease {
        let fresh = self.pool.lease();
        let mut lease = std::mem::replace(&mut self.blocks.borrow_mut()[usize::from(index)], fresh);
        let block = lease.block_mut();
        assert!(bytes <= block.capacity(), "the kernel wrote more than it was given room for");
        // SAFETY: the kernel has written the first `bytes` bytes of the block, which has room for them, and
        // no longer uses it.
        unsafe { block.set_len(bytes) };
        self.publish(index);
        lease
    }

    /// Returns `index` to the kernel with its present block: nothing was received.
    pub(super) fn put_back(&self, index: u16) {
        self.publish(index);
    }

    fn publish(&self, index: u16) {
        let mut blocks = self.blocks.borrow_mut();
        let count = u16::try_from(blocks.len()).unwrap_or(u16::MAX);
        let block = blocks[usize::from(index)].block_mut();
        let at = usize::from(self.tail.get() & (count - 1));
        // SAFETY: `at` is below the count of entries. The kernel reads an entry only after the tail has
        // moved past it, so nothing else accesses this one.
        let entry = unsafe { &mut *self.entries.add(at) };
        entry.set_addr(block.as_mut_ptr() as u64);
        entry.set_len(u32::try_from(self.pool.block_bytes()).unwrap_or(u32::MAX));
        entry.set_bid(index);
        self.tail.set(self.tail.get().wrapping_add(1));
        // SAFETY: the tail lies in the first entry, which exists as long as the pages; the kernel reads it
        // atomically, too.
        let tail = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        tail.store(self.tail.get(), Ordering::Release);
    }
}
