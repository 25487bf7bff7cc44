//! One check at a time of the same password: requests that present one that is being checked wait for the
//! result.
//!
//! Without this, a client with forty connections and a Basic password has it hashed forty times.
//! Invariant: the end of a check, however it ends, wakes all requests that wait for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_rpc::Key;

/// Checks in progress, by what is checked, and the requests that wait for each.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Key, Vec<Waker>>>);

/// A check in progress.
pub(crate) struct Flight<'a> {
    flights: &'a Flights,
    key: Key,
}

impl Flights {
    /// Begins a check of `key`, or waits for the end of the one in progress and returns `None`.
    pub(crate) async fn begin_or_wait(&self, key: Key) -> Option<Flight<'_>> {
        if let Some(flight) = self.begin(key) {
            return Some(flight);
        }
        poll_fn(|cx| self.poll_end(cx, &key)).await;
        None
    }

    fn begin(&self, key: Key) -> Option<Flight<'_>> {
        let mut checks = self.checks();
        if checks.contains_key(&key) {
            return None;
        }
        checks.insert(key, Vec::new());
        Some(Flight { flights: self, key })
    }

    fn poll_end(&self, cx: &Context<'_>, key: &Key) -> Poll<()> {
        let mut checks = self.checks();
        let Some(waiting) = checks.get_mut(key) else { return Poll::Ready(()) };
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn checks(&self) -> MutexGuard<'_, HashMap<Key, Vec<Waker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let waiting = self.flights.checks().remove(&self.key).unwrap_or_default();
        waiting.into_iter().for_each(Waker::wake);
    }
}
