//! The idle connections of the engine `pool`: parked between two requests, without a worker.
//!
//! It serves nothing. Invariants: a connection is here, in the queue, or with a worker, and never in two of
//! these. A request that arrives while its connection is handed over is reported: the set is level-triggered
//! and armed once for each wait. After the set is closed, it takes no connection.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{Instant, Parked};

use super::pool::Entry;
use crate::ready::IdlePoller;

/// Connections that wait for their clients.
pub(super) struct IdleSet {
    poller: Arc<IdlePoller>,
    state: Mutex<State>,
}

struct State {
    /// Indexed by the token that the poller reports.
    connections: Vec<Option<Idle>>,
    vacant: Vec<usize>,
    /// At or before the earliest end of an idle time.
    check_at: Instant,
    /// The task that ends connections. An eviction wakes it, too.
    ender: Waker,
    is_closed: bool,
}

/// A connection that waits for bytes from its client.
pub(super) struct Idle {
    pub(super) entry: Entry,
    pub(super) parked: Parked,
}

impl IdleSet {
    pub(super) fn new() -> io::Result<IdleSet> {
        let state = State {
            connections: Vec::new(),
            vacant: Vec::new(),
            check_at: Instant::NEVER,
            ender: Waker::noop().clone(),
            is_closed: false,
        };
        Ok(IdleSet { poller: Arc::new(IdlePoller::new()?), state: Mutex::new(state) })
    }

    /// Returns the poller that reports when there is something to [take](IdleSet::take_ready).
    pub(super) fn poller(&self) -> &Arc<IdlePoller> {
        &self.poller
    }

    /// Stores a connection until its client sends something. Returns it if the set is closed, or if the
    /// kernel refuses to watch it.
    pub(super) fn park(&self, mut idle: Idle) -> Result<(), Idle> {
        let (slot, until) = (Arc::clone(idle.entry.accepted.admitted.entry()), idle.parked.until);
        let mut state = self.state();
        if state.is_closed {
            return Err(idle);
        }
        let token = state.vacant.pop().unwrap_or_else(|| {
            state.connections.push(None);
            state.connections.len() - 1
        });
        // Under the lock: from here on, the connection may become ready, or be ended, at any time.
        if self.poller.arm(&idle.entry.accepted.fd, token, idle.entry.is_watched).is_err() {
            state.vacant.push(token);
            return Err(idle);
        }
        idle.entry.is_watched = true;
        slot.evict_by(state.ender.clone());
        slot.park();
        state.connections[token] = Some(idle);
        let is_first = until < state.check_at;
        if is_first {
            state.check_at = until;
        }
        if is_first || slot.is_evicted() {
            let ender = state.ender.clone();
            drop(state);
            ender.wake();
        }
        Ok(())
    }

    /// Moves up to `count` connections with bytes from their clients into `ready`. Returns whether there may
    /// be more.
    pub(super) fn take_ready(&self, count: usize, ready: &mut Vec<Idle>) -> bool {
        let tokens = self.poller.take(count);
        let mut state = self.state();
        ready.extend(tokens.iter().filter_map(|token| state.take(*token)));
        tokens.len() >= count
    }

    /// Ready with connections whose idle time is over, or whose slots are needed. An eviction wakes the
    /// caller's task; the end of an idle time does not: [`IdleSet::check_at`] returns it.
    pub(super) fn poll_over(&self, cx: &mut Context<'_>, now: Instant) -> Poll<Vec<Idle>> {
        let is_over = |idle: &Idle| idle.parked.until <= now || idle.entry.accepted.admitted.is_evicted();
        let mut state = self.state();
        state.ender.clone_from(cx.waker());
        let over = self.take_if(&mut state, is_over);
        let left = state.connections.iter().flatten();
        state.check_at = left.map(|idle| idle.parked.until).min().unwrap_or(Instant::NEVER);
        if over.is_empty() { Poll::Pending } else { Poll::Ready(over) }
    }

    /// Returns the earliest time at which an idle time may end.
    pub(super) fn check_at(&self) -> Instant {
        self.state().check_at
    }

    /// Takes all connections out, and accepts no more.
    pub(super) fn close(&self) -> Vec<Idle> {
        let mut state = self.state();
        state.is_closed = true;
        self.take_if(&mut state, |_| true)
    }

    fn take_if(&self, state: &mut State, is_taken: impl Fn(&Idle) -> bool) -> Vec<Idle> {
        let tokens = 0..state.connections.len();
        let is_taken = |token: &usize| state.connections[*token].as_ref().is_some_and(&is_taken);
        let tokens: Vec<usize> = tokens.filter(is_taken).collect();
        let mut taken: Vec<Idle> = tokens.into_iter().filter_map(|token| state.take(token)).collect();
        for idle in &mut taken {
            // A pending event of this connection must not be reported for the next one with the same token.
            self.poller.disarm(&idle.entry.accepted.fd);
            idle.entry.is_watched = false;
        }
        taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, token: usize) -> Option<Idle> {
        let idle = self.connections.get_mut(token)?.take()?;
        self.vacant.push(token);
        Some(idle)
    }
}
