//! The settings of new connections, and their replacement at a reload.
//!
//! This module does not reload anything. Invariant: one value serves a connection from its first byte to
//! its last, also across reloads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The value for new connections, shared by all threads.
#[derive(Debug)]
pub struct Current<T>(Mutex<Arc<T>>);

impl<T> Current<T> {
    /// Starts with `value`.
    pub fn new(value: T) -> Arc<Current<T>> {
        Arc::new(Current(Mutex::new(Arc::new(value))))
    }

    /// Replaces the value for new connections. Open connections keep theirs.
    pub fn replace(&self, value: T) {
        let before = std::mem::replace(&mut *self.lock(), Arc::new(value));
        // Dropped outside of the lock: this may end everything that only the old value used.
        drop(before);
    }

    /// Returns the present value.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
