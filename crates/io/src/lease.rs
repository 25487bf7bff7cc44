//! Memory that bytes are received into: leased to one holder, returned when the lease is dropped.
//!
//! A lease is not a view of a shared buffer: it is exclusive, mutable and owns its whole block. So an
//! engine never waits for a slow holder before it refills its receive buffer. Invariant: a lease is
//! accounted at its capacity, however few bytes are in it, because the whole block is unavailable to
//! others.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::limits::POOL_KEPT_BLOCKS_MAX;

/// A pool of blocks of one size for one thread. The block that was returned last is leased first,
/// because it is still in the CPU's caches.
#[derive(Debug)]
pub struct Pool {
    block_bytes: usize,
    free: RefCell<Vec<Vec<u8>>>,
    leased_bytes: Cell<usize>,
}

impl Pool {
    /// Creates a pool of blocks of `block_bytes` each. It holds no memory until the first lease is
    /// returned.
    pub fn new(block_bytes: usize) -> Rc<Pool> {
        Rc::new(Pool { block_bytes, free: RefCell::default(), leased_bytes: Cell::new(0) })
    }

    /// Returns an empty lease with a capacity of [`Pool::block_bytes`].
    pub fn lease(self: &Rc<Pool>) -> Lease {
        let block = self.free.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(self.block_bytes));
        self.leased_bytes.set(self.leased_bytes.get() + self.block_bytes);
        Lease { block, start: 0, home: Some(Rc::clone(self)) }
    }

    /// Returns the capacity of one block, in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Returns the capacity of all outstanding leases, in bytes.
    pub fn leased_bytes(&self) -> usize {
        self.leased_bytes.get()
    }

    fn take_back(&self, mut block: Vec<u8>) {
        poison(&mut block);
        self.leased_bytes.set(self.leased_bytes.get() - self.block_bytes);
        let mut free = self.free.borrow_mut();
        if free.len() < POOL_KEPT_BLOCKS_MAX && block.capacity() == self.block_bytes {
            block.clear();
            free.push(block);
        }
    }
}

/// The byte that returned memory is filled with, in a debug build.
pub const POISON: u8 = 0xDB;

/// Fills memory that returns to its pool or engine, in a debug build, so that a use after return is
/// visible.
pub fn poison(block: &mut [u8]) {
    if cfg!(debug_assertions) {
        block.fill(POISON);
    }
}

/// Received bytes and the memory that contains them. Dereferences to the bytes.
#[derive(Debug)]
pub struct Lease {
    block: Vec<u8>,
    start: usize,
    home: Option<Rc<Pool>>,
}

impl Lease {
    /// Creates a lease over memory that belongs to no pool.
    pub fn owned(block: Vec<u8>) -> Lease {
        Lease { block, start: 0, home: None }
    }

    /// Returns the block to receive into, for engines: append to it, up to its capacity.
    pub fn block_mut(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Removes the first `bytes` from view, or all if there are fewer. Their memory stays accounted.
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.block.len());
    }

    /// Appends bytes to those in view. The space of consumed bytes is reclaimed first, so that a lease
    /// that is consumed as fast as it is appended to does not grow.
    pub fn append(&mut self, bytes: &[u8]) {
        self.block.drain(..std::mem::take(&mut self.start));
        self.block.extend_from_slice(bytes);
    }

    /// Keeps only the first `bytes`.
    pub fn truncate(&mut self, bytes: usize) {
        self.block.truncate(self.start.saturating_add(bytes));
    }

    /// Keeps only the first `bytes`, and returns a copy of those behind.
    #[must_use]
    pub fn split_off(&mut self, bytes: usize) -> Lease {
        let rest = Lease::owned(self.get(bytes..).unwrap_or_default().to_vec());
        self.truncate(bytes);
        rest
    }

    /// Returns the number of bytes at which this lease is accounted.
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// Takes the memory out of its pool, so that it can go to another thread (for an offloaded write).
    pub fn detach(mut self) -> Detached {
        let block = std::mem::take(&mut self.block);
        if let Some(home) = self.home.take() {
            home.take_back(Vec::new());
        }
        Detached { block, start: self.start }
    }
}

impl Deref for Lease {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.block[self.start..]
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.start..]
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.take_back(std::mem::take(&mut self.block));
        }
    }
}

/// The bytes of a detached lease: `Send`, and freed by the allocator.
#[derive(Debug)]
pub struct Detached {
    block: Vec<u8>,
    start: usize,
}

impl Detached {
    /// Returns the size of their memory, in bytes.
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }
}

impl Deref for Detached {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.block[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_of(pool: &Rc<Pool>, bytes: &[u8]) -> Lease {
        let mut lease = pool.lease();
        lease.block_mut().extend_from_slice(bytes);
        lease
    }

    #[test]
    fn a_lease_is_charged_at_its_capacity_until_it_is_dropped_or_detached() {
        let pool = Pool::new(4096);
        let (one, two) = (lease_of(&pool, b"a"), lease_of(&pool, b"b"));
        assert_eq!(pool.leased_bytes(), 8192);
        drop(one);
        assert_eq!(pool.leased_bytes(), 4096);
        let detached = two.detach();
        assert_eq!((pool.leased_bytes(), &*detached), (0, &b"b"[..]));
    }

    #[test]
    fn a_block_comes_back_empty() {
        let pool = Pool::new(64);
        drop(lease_of(&pool, b"secret"));
        assert!(pool.lease().is_empty());
    }

    #[test]
    fn a_returned_block_is_poisoned_in_a_debug_build() {
        let mut block = b"secret".to_vec();
        poison(&mut block);
        assert_eq!(block == [POISON; 6], cfg!(debug_assertions));
    }

    #[test]
    fn consuming_more_than_there_is_leaves_nothing() {
        let mut lease = Lease::owned(b"abc".to_vec());
        lease.consume(1);
        assert_eq!(&*lease, b"bc");
        lease.truncate(1);
        assert_eq!(&*lease, b"b");
        lease.consume(9);
        assert!(lease.is_empty());
    }

    #[test]
    fn consumed_bytes_make_room_for_appended_ones() {
        let mut lease = Lease::owned(Vec::with_capacity(64));
        for round in 0..1_000u16 {
            lease.append(&[b'x'; 40]);
            lease.append(&round.to_be_bytes());
            assert!(lease.ends_with(&round.to_be_bytes()));
            // Like a pipeline whose last request is never complete.
            lease.consume(lease.len() - 2);
        }
        assert!(lease.capacity() <= 128, "it has grown to {} bytes", lease.capacity());
    }

    #[test]
    fn a_pool_keeps_a_bounded_number_of_free_blocks() {
        let pool = Pool::new(16);
        drop((0..100).map(|_| pool.lease()).collect::<Vec<_>>());
        assert_eq!(pool.free.borrow().len(), POOL_KEPT_BLOCKS_MAX);
    }
}
