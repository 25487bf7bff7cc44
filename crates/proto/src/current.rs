//! What new connections are served by, and how a reload replaces it.
//!
//! It does not reload. What must hold: a connection is served by one value from its first byte to its last,
//! whatever is reloaded meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The value that new connections get, on all threads.
pub struct Current<T>(Mutex<Arc<T>>);

impl<T> Current<T> {
    /// Begins with this one.
    pub fn new(value: T) -> Arc<Current<T>> {
        Arc::new(Current(Mutex::new(Arc::new(value))))
    }

    /// From now on new connections get this one; those that are open keep theirs.
    pub fn replace(&self, value: T) {
        let before = std::mem::replace(&mut *self.lock(), Arc::new(value));
        // Here, where nobody waits for the lock: what was only used by it ends now.
        drop(before);
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
