//! Turns: so many have one at a time, and so many more wait for one, for so long.
//!
//! It does not know for what. What must hold: a turn that ends is the next one's who still waits, whatever
//! thread that is on; none is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::Io;
use plimsoll_io::oneshot::{Receiver, Sender, oneshot};

use crate::error::{Error, Result};
use crate::limits::{STORE_TRANSFER_WAIT_TIME, STORE_TRANSFERS_WAITING_MAX};

/// Those of one kind.
pub(super) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// In the order in which they came; none while one is free.
    waiting: VecDeque<Sender<Turn>>,
}

/// A turn, until it is dropped.
pub(super) struct Turn(Arc<Turns>);

impl Turns {
    pub(super) fn new(most: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State { free: most, waiting: VecDeque::new() })))
    }

    /// A turn, now or when one ends.
    ///
    /// # Errors
    /// [`Error::Busy`] if too many wait, or none ends for too long.
    pub(super) async fn take(self: &Arc<Turns>, io: &Io) -> Result<Turn> {
        let Some(wait) = self.line_up()? else { return Ok(Turn(Arc::clone(self))) };
        let deadline = io.deadline();
        deadline.after(STORE_TRANSFER_WAIT_TIME);
        deadline.within(wait).await.ok().flatten().ok_or(Error::Busy)
    }

    /// The wait for a turn; none if one was free, and is taken.
    fn line_up(&self) -> Result<Option<Receiver<Turn>>> {
        let mut state = self.lock();
        if let Some(left) = state.free.checked_sub(1) {
            state.free = left;
            return Ok(None);
        }
        // Who has gone makes room.
        state.waiting.retain(Sender::is_wanted);
        if state.waiting.len() >= STORE_TRANSFERS_WAITING_MAX {
            return Err(Error::Busy);
        }
        let (next, wait) = oneshot();
        state.waiting.push_back(next);
        Ok(Some(wait))
    }

    /// Who has the turn that has just ended; it is free if nobody waits.
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
            // Who goes away just now drops it, and so hands it on.
            next.send(Turn(Arc::clone(&self.0)));
        }
    }
}
