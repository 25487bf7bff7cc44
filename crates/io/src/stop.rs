//! The order to stop a server, shared by all its threads.
//!
//! It kills nothing: a thread finishes its work in progress before it stops. Invariants: it is
//! level-triggered (a late check still sees it), it is never revoked, and it interrupts every wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Interrupts the wait of a thread, from any other thread.
pub trait Notify: Send + Sync {
    /// Makes a thread that waits, or is about to wait, check for work and for a stop.
    fn notify(&self);
}

/// An order to stop. Clones share the same state.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    ordered: AtomicBool,
    threads: Mutex<Vec<Weak<dyn Notify>>>,
}

impl Stop {
    /// Creates a stop order that has not been given.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Gives the order. A second call has no effect.
    pub fn order(&self) {
        self.inner.ordered.store(true, Ordering::SeqCst);
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads.iter().filter_map(Weak::upgrade) {
            thread.notify();
        }
    }

    /// Whether the order was given.
    pub fn is_ordered(&self) -> bool {
        self.inner.ordered.load(Ordering::Relaxed)
    }

    /// Registers `thread` to be notified when the order is given. Notifies it at once if the order was
    /// given before.
    pub fn register(&self, thread: &Arc<dyn Notify>) {
        let mut threads = self.threads();
        if threads.len() == threads.capacity() {
            // Only when the list would grow, so that the cost of the scan is amortised.
            threads.retain(|known| known.strong_count() > 0);
        }
        threads.push(Arc::downgrade(thread));
        drop(threads);
        if self.is_ordered() {
            thread.notify();
        }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn Notify>>> {
        self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Notified(AtomicUsize);

    impl Notify for Notified {
        fn notify(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_listener_registered_after_the_order_is_notified_at_once() {
        let (stop, early, late) = (Stop::new(), Arc::<Notified>::default(), Arc::<Notified>::default());
        let count = |thread: &Arc<Notified>| thread.0.load(Ordering::Relaxed);
        let thread: Arc<dyn Notify> = early.clone();
        stop.register(&thread);
        assert_eq!(count(&early), 0);
        stop.order();
        assert_eq!(count(&early), 1);
        let thread: Arc<dyn Notify> = late.clone();
        stop.register(&thread);
        assert_eq!(count(&late), 1);
    }
}
