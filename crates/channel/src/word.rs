//! A word of shared memory, as the rings use it.
//!
//! It exists so that a model checker can replace the processor's words. It gives no order beyond the one that
//! each call names. Invariant: every access to shared memory is an access to a word, so that a peer that
//! changes the memory at any time causes no undefined behaviour.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An atomic word of eight bytes.
pub trait Word {
    /// Loads the value.
    fn load(&self, order: Ordering) -> u64;
    /// Stores a value.
    fn store(&self, value: u64, order: Ordering);
    /// Stores a value, and returns the one before.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Sets the bits of a value.
    fn fetch_or(&self, bits: u64, order: Ordering);
    /// Orders the accesses before the call against those after it, with respect to all fences.
    fn fence();
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }

    fn fetch_or(&self, bits: u64, order: Ordering) {
        AtomicU64::fetch_or(self, bits, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}
