//! Timers in the order in which they are due.
//!
//! This is not a timer wheel: each connection has one lazy deadline, so timers are seldom set or
//! cancelled and an ordered map is quick enough. Invariant: timers of one instant fire in the order they
//! were set.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Waker;

use crate::time::Instant;

/// Identifies a timer, also after it has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId(Instant, u64);

/// The timers of one thread.
#[derive(Debug, Default)]
pub struct Timers {
    due: RefCell<BTreeMap<TimerId, Waker>>,
    count: Cell<u64>,
}

impl Timers {
    /// Wakes `waker` once, when [`Timers::fire`] is called at `at` or later.
    pub fn add(&self, at: Instant, waker: &Waker) -> TimerId {
        let id = TimerId(at, self.count.get());
        self.count.set(id.1 + 1);
        self.due.borrow_mut().insert(id, waker.clone());
        id
    }

    /// Cancels a timer. Cancelling a fired timer is not an error.
    pub fn cancel(&self, id: TimerId) {
        self.due.borrow_mut().remove(&id);
    }

    /// Returns the instant at which the first timer is due.
    pub fn next(&self) -> Option<Instant> {
        self.due.borrow().first_key_value().map(|(id, _)| id.0)
    }

    /// Wakes the wakers of all timers that are due at `now`.
    pub fn fire(&self, now: Instant) {
        while self.next().is_some_and(|at| at <= now) {
            let due = self.due.borrow_mut().pop_first();
            if let Some((_, waker)) = due {
                waker.wake();
            }
        }
    }

    /// Returns the number of timers that are set.
    pub fn len(&self) -> usize {
        self.due.borrow().len()
    }

    /// Whether no timer is set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
