//! The count of open connections, and the bound that it keeps.
//!
//! It is not a limit per peer. What must hold: a connection is counted from its accept until its task is
//! gone, whichever way it goes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Connections of a server: how many are open, have been, and may be.
#[derive(Debug)]
pub struct Connections {
    open: AtomicUsize,
    accepted: AtomicU64,
    panicked: AtomicU64,
    max: usize,
    ended: Condvar,
    waiting: Mutex<()>,
}

/// One connection's place in the count.
pub(crate) struct Admitted(Arc<Connections>);

impl Connections {
    /// None yet, `max` at most.
    pub fn new(max: usize) -> Arc<Connections> {
        Arc::new(Connections {
            open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            max,
            ended: Condvar::new(),
            waiting: Mutex::new(()),
        })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many were dropped because serving them panicked: each is a defect of the server.
    pub fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(crate) fn count_panic(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    /// How many may be open.
    pub fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open() >= self.max
    }

    pub(crate) fn admit(self: &Arc<Self>) -> Admitted {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Admitted(Arc::clone(self))
    }

    /// Waits until none is open, for `time` at most.
    pub(crate) fn wait_until_none(&self, time: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // How it ended does not matter: either all have gone, or the grace is over.
        let _ = self.ended.wait_timeout_while(waiting, time, |()| self.open() > 0);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.ended.notify_all();
        }
    }
}
