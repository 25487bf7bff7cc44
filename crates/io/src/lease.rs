//! Memory that bytes are received into: leased to one holder, given back when it is dropped.
//!
//! A lease is not a view of a shared buffer: it is exclusive, mutable and owns its whole block, so an
//! engine never waits for a slow holder to refill what it receives into. What must hold: a lease counts
//! at its capacity, however few bytes are in it, because that is what it keeps from others.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::limits::POOL_KEPT_BLOCKS_MAX;

/// Blocks of one size, reused within one thread: the last one given back, still in the caches, is the next
/// to be leased.
#[derive(Debug)]
pub struct Pool {
    block_bytes: usize,
    free: RefCell<Vec<Vec<u8>>>,
    leased_bytes: Cell<usize>,
}

impl Pool {
    /// A pool of blocks of `block_bytes` each. It holds no memory until the first lease comes back.
    pub fn new(block_bytes: usize) -> Rc<Pool> {
        Rc::new(Pool { block_bytes, free: RefCell::default(), leased_bytes: Cell::new(0) })
    }

    /// An empty lease with room for [`Pool::block_bytes`].
    pub fn lease(self: &Rc<Pool>) -> Lease {
        let block = self.free.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(self.block_bytes));
        self.leased_bytes.set(self.leased_bytes.get() + self.block_bytes);
        Lease { block, start: 0, home: Some(Rc::clone(self)) }
    }

    /// Capacity of one block, in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Capacity of all leases that are out, in bytes.
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

/// What memory is filled with that went back, in a debug build.
pub const POISON: u8 = 0xDB;

/// Fills memory that goes back to where it came from, in a debug build: who reads it later sees it.
pub fn poison(block: &mut [u8]) {
    if cfg!(debug_assertions) {
        block.fill(POISON);
    }
}

/// Received bytes and the memory they lie in. Dereferences to the bytes.
#[derive(Debug)]
pub struct Lease {
    block: Vec<u8>,
    start: usize,
    home: Option<Rc<Pool>>,
}

impl Lease {
    /// Memory that belongs to no pool.
    pub fn owned(block: Vec<u8>) -> Lease {
        Lease { block, start: 0, home: None }
    }

    /// The block to receive into, for engines: append to it, up to its capacity.
    pub fn block_mut(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Drops the first `bytes` from view; their memory stays charged. More than there are empties it.
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.block.len());
    }

    /// Adds bytes behind those in view. What was consumed makes room first, so that a lease that is consumed
    /// as fast as it is added to does not grow.
    pub fn append(&mut self, bytes: &[u8]) {
        self.block.drain(..std::mem::take(&mut self.start));
        self.block.extend_from_slice(bytes);
    }

    /// Keeps only the first `bytes`.
    pub fn truncate(&mut self, bytes: usize) {
        self.block.truncate(self.start.saturating_add(bytes));
    }

    /// What this lease is charged, in bytes.
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// Takes the memory out of its pool, so that it can go to another thread (a write that is offloaded).
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

/// The bytes of a lease on their own: `Send`, and freed by the allocator.
#[derive(Debug)]
pub struct Detached {
    block: Vec<u8>,
    start: usize,
}

impl Detached {
    /// The memory that they take, in bytes.
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
    fn what_goes_back_is_poisoned_in_a_debug_build() {
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
    fn what_is_consumed_makes_room_for_what_is_added() {
        let mut lease = Lease::owned(Vec::with_capacity(64));
        for round in 0..1_000u16 {
            lease.append(&[b'x'; 40]);
            lease.append(&round.to_be_bytes());
            assert!(lease.ends_with(&round.to_be_bytes()));
            // As a pipeline whose last request is never whole.
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
