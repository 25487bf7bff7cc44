//! The start barrier: all users of all threads wait until all are ready.
//!
//! It starts nothing itself. Invariants: no user passes before all have arrived; if one cannot, none waits
//! forever.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::{Io, Stop};

/// The barrier at which users wait for each other.
pub(crate) struct Barrier {
    state: Mutex<State>,
    stop: Stop,
}

struct State {
    /// Number of users that are not ready yet.
    missing: usize,
    /// The reason why a user will never be ready.
    given_up: Option<String>,
    waiting: Vec<Waker>,
}

impl Barrier {
    /// Creates a barrier for `users`. A user that cannot become ready orders `stop`.
    pub(crate) fn new(users: usize, stop: &Stop) -> Barrier {
        let state = State { missing: users, given_up: None, waiting: Vec::new() };
        Barrier { state: Mutex::new(state), stop: stop.clone() }
    }

    /// Marks one more user as ready.
    pub(crate) fn arrive(&self) {
        let mut state = self.state();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Cancels the start: a user cannot become ready.
    pub(crate) fn give_up(&self, why: String) {
        self.state().given_up.get_or_insert(why);
        self.stop.order();
    }

    /// Returns why there was no start.
    pub(crate) fn given_up(&self) -> Option<String> {
        self.state().given_up.clone()
    }

    /// Waits for the start. Returns false if it was cancelled or the trial was stopped.
    pub(crate) async fn started(&self, io: &Io) -> bool {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.given_up.is_some() {
                return Poll::Ready(false);
            }
            if state.missing == 0 {
                return Poll::Ready(true);
            }
            state.waiting.push(cx.waker().clone());
            drop(state);
            io.poll_stopping(cx).map(|()| false)
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
