//! The order to end, as all threads of a server see it.
//!
//! It is not a way to kill: who is asked to stop finishes what it has begun. What must hold: it is
//! level-triggered (who looks late still sees it), it never goes back, and it interrupts every park.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Ends the park of a thread, from any other.
pub trait Notify: Send + Sync {
    /// Makes the thread that parks, or is about to, look around.
    fn notify(&self);
}

/// A server's order to end. Clones are the same order.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    ordered: AtomicBool,
    parked: Mutex<Vec<Weak<dyn Notify>>>,
}

impl Stop {
    /// An order that has not been given.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Gives the order. A second time changes nothing.
    pub fn order(&self) {
        self.inner.ordered.store(true, Ordering::SeqCst);
        let parked = std::mem::take(&mut *self.parked());
        for thread in parked.iter().filter_map(Weak::upgrade) {
            thread.notify();
        }
    }

    /// Whether the order was given.
    pub fn is_ordered(&self) -> bool {
        self.inner.ordered.load(Ordering::Relaxed)
    }

    /// Notifies `thread` when the order is given; at once if it already was.
    pub fn tell(&self, thread: &Arc<dyn Notify>) {
        let mut parked = self.parked();
        if parked.len() == parked.capacity() {
            // Before it grows, so that the cost of looking is shared by many.
            parked.retain(|known| known.strong_count() > 0);
        }
        parked.push(Arc::downgrade(thread));
        drop(parked);
        if self.is_ordered() {
            thread.notify();
        }
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn Notify>>> {
        self.inner.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Told(AtomicUsize);

    impl Notify for Told {
        fn notify(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_asks_to_be_told_after_the_order_is_told_at_once() {
        let (stop, early, late) = (Stop::new(), Arc::<Told>::default(), Arc::<Told>::default());
        let count = |told: &Arc<Told>| told.0.load(Ordering::Relaxed);
        let told: Arc<dyn Notify> = early.clone();
        stop.tell(&told);
        assert_eq!(count(&early), 0);
        stop.order();
        assert_eq!(count(&early), 1);
        let told: Arc<dyn Notify> = late.clone();
        stop.tell(&told);
        assert_eq!(count(&late), 1);
    }
}
