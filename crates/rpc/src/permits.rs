//! Permits: a bounded number at a time, with a bounded queue in which networks take turns.
//!
//! It does not know their purpose. Invariants: a released permit goes to the next waiter in the queue, on
//! any thread. No permit is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::FairQueue;
use plimsoll_io::oneshot::{Sender, oneshot};

use crate::network::Network;

/// The permits for one purpose.
pub struct Permits(Mutex<State>);

struct State {
    free: usize,
    /// Empty while a permit is free.
    waiting: FairQueue<Network, Sender<Permit>>,
}

/// A permit. Dropping it releases it.
pub struct Permit(Arc<Permits>);

impl Permits {
    /// Creates `count` permits, with a queue of at most `waiting_max`.
    #[must_use]
    pub fn new(count: usize, waiting_max: usize) -> Arc<Permits> {
        Arc::new(Permits(Mutex::new(State { free: count, waiting: FairQueue::new(waiting_max) })))
    }

    /// Takes a permit, now or when one is released. Returns `None` if too many wait; then the newest
    /// waiter of the network that has most is refused.
    pub async fn acquire(self: &Arc<Permits>, network: Network) -> Option<Permit> {
        let wait = {
            let mut state = self.lock();
            if let Some(left) = state.free.checked_sub(1) {
                state.free = left;
                drop(state);
                return Some(Permit(Arc::clone(self)));
            }
            if state.waiting.is_full() {
                // Waiters that gave up leave the queue.
                state.waiting.retain(|_, waiter| waiter.is_wanted());
            }
            let (sender, wait) = oneshot();
            let displaced = state.waiting.push(network, sender);
            drop(state);
            // Dropping its sender refuses it.
            drop(displaced);
            wait
        };
        wait.await
    }

    /// Removes the next waiter, for a released permit. The permit is free if there is none.
    fn next_waiter(&self) -> Option<Sender<Permit>> {
        let mut state = self.lock();
        while let Some((_, waiter)) = state.waiting.pop(|_| Some(|_: &Sender<Permit>| true)) {
            if waiter.is_wanted() {
                return Some(waiter);
            }
        }
        state.free += 1;
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(waiter) = self.0.next_waiter() {
            // A waiter that gives up at this moment drops the permit, and so passes it on.
            waiter.send(Permit(Arc::clone(&self.0)));
        }
    }
}
