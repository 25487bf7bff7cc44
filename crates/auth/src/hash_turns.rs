//! Turns at the password hashing: requests wait here, not in the engine's first-come queue.
//!
//! Networks take turns. Clients with a known network, password or session have a queue of their own,
//! which has every second turn. It counts no failures (`attempts.rs` does): a right password costs as
//! much as a wrong one. Invariant: a turn lasts until its hash is computed, also if the client
//! disconnects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::oneshot::{Sender, oneshot};
use plimsoll_io::{FairQueue, Io};

use crate::error::Error;
use crate::limits::{BUSY_RETRY_TIME, HASH_WAIT_TIME_MAX, HASHES_WAITING_MAX, HASHES_WAITING_PER_NAME_MAX};
use plimsoll_rpc::Network;

/// A request for a turn.
pub(crate) struct Request {
    /// The account's name; none at a sign-up.
    pub(crate) name: Option<String>,
    pub(crate) network: Network,
    /// Whether it is not a stranger's: see `attempts::Standing`.
    pub(crate) is_known: bool,
    /// The number of turns in use at a time.
    pub(crate) at_once: usize,
}

struct Waiter {
    name: Option<String>,
    turn: Sender<Turn>,
}

/// The turns in use, and the requests that wait for one.
pub(crate) struct HashTurns {
    state: Mutex<State>,
}

struct State {
    at_once: usize,
    hashing: usize,
    hashing_by_name: BTreeMap<String, usize>,
    strangers: FairQueue<Network, Waiter>,
    known: FairQueue<Network, Waiter>,
    /// Whether the queue of known clients had the last turn.
    known_was_last: bool,
}

/// A permit to hash one password. Dropping it admits the next request.
pub(crate) struct Turn {
    turns: Arc<HashTurns>,
    name: Option<String>,
}

fn busy() -> Error {
    Error::Busy { retry_after: BUSY_RETRY_TIME }
}

impl HashTurns {
    pub(crate) fn new() -> Arc<HashTurns> {
        let lane = || FairQueue::new(HASHES_WAITING_MAX);
        let state = State {
            at_once: 1,
            hashing: 0,
            hashing_by_name: BTreeMap::new(),
            strangers: lane(),
            known: lane(),
            known_was_last: false,
        };
        Arc::new(HashTurns { state: Mutex::new(state) })
    }

    /// Waits for a turn, for [`HASH_WAIT_TIME_MAX`] at most.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue is full or the wait was too long.
    pub(crate) async fn wait(self: &Arc<Self>, io: &Io, request: Request) -> Result<Turn, Error> {
        let (turn, wait) = oneshot();
        self.add(request, turn)?;
        let deadline = io.deadline();
        deadline.after(HASH_WAIT_TIME_MAX);
        deadline.within(wait).await.ok().flatten().ok_or_else(busy)
    }

    fn add(self: &Arc<Self>, request: Request, turn: Sender<Turn>) -> Result<(), Error> {
        let Request { name, network, is_known, at_once } = request;
        let mut state = self.state();
        state.at_once = at_once.max(1);
        let lane = if is_known { &mut state.known } else { &mut state.strangers };
        if lane.is_full() {
            lane.retain(|_, waiter| waiter.turn.is_wanted());
        }
        let of_name = |waiter: &&Waiter| name.is_some() && waiter.name == name && waiter.turn.is_wanted();
        if !is_known && lane.iter().filter(of_name).count() >= HASHES_WAITING_PER_NAME_MAX {
            return Err(busy());
        }
        let displaced = lane.push(network, Waiter { name, turn });
        let given = self.give(&mut state);
        drop(state);
        // A displaced request learns from its dropped sender that it gets no turn.
        drop(displaced);
        given.into_iter().for_each(|(waiter, turn)| waiter.send(turn));
        Ok(())
    }

    /// Takes requests out of the queues while turns are free. The caller must release the lock before it
    /// sends the turns: one whose client has disconnected is dropped at once, and that takes the lock.
    fn give(self: &Arc<Self>, state: &mut State) -> Vec<(Sender<Turn>, Turn)> {
        let mut given = Vec::new();
        while state.hashing < state.at_once
            && let Some(Waiter { name, turn }) = state.next()
        {
            if turn.is_wanted() {
                state.hashing += 1;
                if let Some(name) = &name {
                    *state.hashing_by_name.entry(name.clone()).or_default() += 1;
                }
                given.push((turn, Turn { turns: Arc::clone(self), name }));
            }
        }
        given
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next request. One account's name has half of the turns at most, so that guesses at it
    /// leave the rest to other accounts.
    fn next(&mut self) -> Option<Waiter> {
        let (per_name, by_name) = ((self.at_once / 2).max(1), &self.hashing_by_name);
        let is_ready = |waiter: &Waiter| {
            let hashing = waiter.name.as_ref().and_then(|name| by_name.get(name));
            hashing.is_none_or(|count| *count < per_name) || !waiter.turn.is_wanted()
        };
        let lanes = [&mut self.strangers, &mut self.known];
        let order = if self.known_was_last { [0, 1] } else { [1, 0] };
        for at in order {
            if let Some((_, waiter)) = lanes[at].pop(|_| Some(is_ready)) {
                self.known_was_last = at == 1;
                return Some(waiter);
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.hashing = state.hashing.saturating_sub(1);
        if let Some(name) = &self.name
            && let Some(count) = state.hashing_by_name.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                state.hashing_by_name.remove(name);
            }
        }
        let given = self.turns.give(&mut state);
        drop(state);
        given.into_iter().for_each(|(waiter, turn)| waiter.send(turn));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_io::oneshot::Receiver;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn ask(turns: &Arc<HashTurns>, name: &str, network: u8, is_known: bool) -> Option<Receiver<Turn>> {
        let (turn, wait) = oneshot();
        let name = Some(name.to_owned());
        turns.add(Request { name, network: vec![network], is_known, at_once: 4 }, turn).ok()?;
        Some(wait)
    }

    fn given(wait: &mut Receiver<Turn>) -> Option<Turn> {
        match Pin::new(wait).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_name_has_half_of_the_turns_and_others_have_the_rest_at_once() {
        let turns = HashTurns::new();
        let mut alice: Vec<_> = (0..9).map(|network| ask(&turns, "alice", network, false).unwrap()).collect();
        let hers: Vec<_> = alice.iter_mut().filter_map(given).collect();
        assert_eq!(hers.len(), 2);
        assert!(given(&mut ask(&turns, "bob", 99, false).unwrap()).is_some());
        drop(hers);
        let next: Vec<_> = alice.iter_mut().filter_map(given).collect();
        assert_eq!(next.len(), 2);
    }

    #[test]
    fn a_known_network_waits_for_one_turn_of_strangers_at_most() {
        let turns = HashTurns::new();
        let mut strangers: Vec<_> =
            (0..60).map(|network| ask(&turns, "alice", network, false).unwrap()).collect();
        let mut running: Vec<_> = strangers.iter_mut().filter_map(given).collect();
        let mut owner = ask(&turns, "alice", 200, true).unwrap();
        assert!(given(&mut owner).is_none());
        running.pop();
        assert!(given(&mut owner).is_some());
    }

    #[test]
    fn strangers_of_one_name_have_a_bounded_queue_which_known_networks_do_not_share() {
        let turns = HashTurns::new();
        let asked = (0..=255).map_while(|network| ask(&turns, "alice", network, false));
        let strangers: Vec<_> = asked.collect();
        assert_eq!(strangers.len(), HASHES_WAITING_PER_NAME_MAX + 2);
        assert!(ask(&turns, "alice", 1, true).is_some() && ask(&turns, "bob", 1, false).is_some());
        // The clients disconnect.
        drop(strangers);
        assert!(ask(&turns, "alice", 1, false).is_some());
    }

    #[test]
    fn turns_of_clients_that_have_gone_are_given_on() {
        let turns = HashTurns::new();
        drop((0..9).map(|network| ask(&turns, "alice", network, false)).collect::<Vec<_>>());
        assert!(given(&mut ask(&turns, "alice", 1, false).unwrap()).is_some());
        assert_eq!(turns.state().hashing, 0);
        assert!(turns.state().hashing_by_name.is_empty());
    }
}
