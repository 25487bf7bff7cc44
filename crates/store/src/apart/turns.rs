//! Permits: a bounded number at a time, with a bounded queue and a bounded wait.
//!
//! It does not know their purpose. Invariants: a released permit goes to the next waiter in the queue, on
//! any thread. No permit is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::Io;
use plimsoll_io::oneshot::{Receiver, Sender, oneshot};

use crate::error::{Error, Result};
use crate::limits::{STORE_TRANSFER_WAIT_TIME, STORE_TRANSFERS_WAITING_MAX};

/// The permits for one purpose.
pub(super) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// In the order of their arrival; none while a permit is free.
    waiting: VecDeque<Sender<Turn>>,
}

/// A permit. Dropping it releases it.
pub(super) struct Turn(Arc<Turns>);

impl Turns {
    pub(super) fn new(most: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State { free: most, waiting: VecDeque::new() })))
    }

    /// Takes a permit, now or when one is released.
    ///
    /// # Errors
    /// [`Error::Busy`] if too many wait, or if none is released in time.
    pub(super) async fn take(self: &Arc<Turns>, io: &Io) -> Result<Turn> {
        let Some(wait) = self.line_up()? else { return Ok(Turn(Arc::clone(self))) };
        let deadline = io.deadline();
        deadline.after(STORE_TRANSFER_WAIT_TIME);
        deadline.within(wait).await.ok().flatten().ok_or(Error::Busy)
    }

    /// Queues for a permit; none if one was free, and is taken.
    fn line_up(&self) -> Result<Option<Receiver<Turn>>> {
        let mut state = self.lock();
        if let Some(left) = state.free.checked_sub(1) {
            state.free = left;
            return Ok(None);
        }
        // Waiters that gave up leave the queue.
        state.waiting.retain(Sender::is_wanted);
        if state.waiting.len() >= STORE_TRANSFERS_WAITING_MAX {
            return Err(Error::Busy);
        }
        let (next, wait) = oneshot();
        state.waiting.push_back(next);
        Ok(Some(wait))
    }

    /// Takes the next waiter, for a released permit; the permit is free if there is no waiter.
    fn next(&self) -> Option<Sender<Turn>> {
        let mut state = self.lock();
        while let Some(next) = state.waiting.pop_front() {
            if next.is_wanted() {
                return Some(next);
            }
        }
        state.free += 1;
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(next) = self.0.next() {
            // A waiter that gives up at this moment drops the permit, and so passes it on.
            next.send(Turn(Arc::clone(&self.0)));
        }
    }
}
