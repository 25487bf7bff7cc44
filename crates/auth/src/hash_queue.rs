//! The queue for password hashing: requests wait here, not in the engine's first-come queue.
//!
//! Each of three queues, the [`Lane`]s, serves networks in rotation. Every second permit is for known
//! clients. Of the other permits, every second is for networks without a recent failure, so that guessing
//! networks delay them by few hashes. It counts no failures (`attempts.rs` does): a right password costs as
//! much as a wrong one. Invariant: a permit is held until its hash is computed, also if the client
//! disconnects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::oneshot::{Sender, oneshot};
use plimsoll_io::{FairQueue, Io};

use crate::error::Error;
use crate::limits::{BUSY_RETRY_TIME, HASH_WAIT_TIME_MAX, HASHES_WAITING_MAX, HASHES_WAITING_PER_NAME_MAX};
use plimsoll_rpc::Network;

/// A request for a permit.
pub(crate) struct Request {
    /// The account's name; none at a sign-up.
    pub(crate) name: Option<String>,
    pub(crate) network: Network,
    pub(crate) lane: Lane,
    /// The number of permits in use at a time.
    pub(crate) at_once: usize,
}

/// The queue of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Clients with a known network, password or session: see `attempts::Standing`.
    Known,
    /// Other clients in networks without a recent failure.
    Clean,
    /// All others, and sign-ups: a network can have any number of those without a failure.
    Others,
}

struct Waiter {
    name: Option<String>,
    permit: Sender<HashPermit>,
}

/// The permits in use, and the requests that wait for one.
pub(crate) struct HashQueue {
    state: Mutex<State>,
}

struct State {
    at_once: usize,
    hashing: usize,
    hashing_by_name: BTreeMap<String, usize>,
    /// The queue of each [`Lane`], in their order.
    lanes: [FairQueue<Network, Waiter>; 3],
    /// Whether [`Lane::Known`] had the last permit.
    known_was_last: bool,
    /// Whether [`Lane::Clean`] had the last permit of the other two.
    clean_was_last: bool,
}

/// A permit to hash one password. Dropping it admits the next request.
pub(crate) struct HashPermit {
    queue: Arc<HashQueue>,
    name: Option<String>,
}

fn busy() -> Error {
    Error::Busy { retry_after: BUSY_RETRY_TIME }
}

impl HashQueue {
    pub(crate) fn new() -> Arc<HashQueue> {
        let lane = || FairQueue::new(HASHES_WAITING_MAX);
        let state = State {
            at_once: 1,
            hashing: 0,
            hashing_by_name: BTreeMap::new(),
            lanes: [lane(), lane(), lane()],
            known_was_last: false,
            clean_was_last: false,
        };
        Arc::new(HashQueue { state: Mutex::new(state) })
    }

    /// Waits for a permit, for [`HASH_WAIT_TIME_MAX`] at most.
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue is full or the wait was too long.
    pub(crate) async fn wait(self: &Arc<Self>, io: &Io, request: Request) -> Result<HashPermit, Error> {
        let (permit, wait) = oneshot();
        self.add(request, permit)?;
        let deadline = io.deadline();
        deadline.after(HASH_WAIT_TIME_MAX);
        deadline.within(wait).await.ok().flatten().ok_or_else(busy)
    }

    fn add(self: &Arc<Self>, request: Request, permit: Sender<HashPermit>) -> Result<(), Error> {
        let Request { name, network, lane: kind, at_once } = request;
        let mut state = self.state();
        state.at_once = at_once.max(1);
        let lane = &mut state.lanes[kind as usize];
        if lane.is_full() {
            lane.retain(|_, waiter| waiter.permit.is_wanted());
        }
        let of_name = |waiter: &&Waiter| name.is_some() && waiter.name == name && waiter.permit.is_wanted();
        if kind != Lane::Known && lane.iter().filter(of_name).count() >= HASHES_WAITING_PER_NAME_MAX {
            return Err(busy());
        }
        let displaced = lane.push(network, Waiter { name, permit });
        let given = self.give(&mut state);
        drop(state);
        // A displaced request learns from its dropped sender that it gets no permit.
        drop(displaced);
        given.into_iter().for_each(|(waiter, permit)| waiter.send(permit));
        Ok(())
    }

    /// Takes requests out of the queues while permits are free. The caller must release the lock before it
    /// sends the permits: one whose client has disconnected is dropped at once, and that takes the lock.
    fn give(self: &Arc<Self>, state: &mut State) -> Vec<(Sender<HashPermit>, HashPermit)> {
        let mut given = Vec::new();
        while state.hashing < state.at_once
            && let Some(Waiter { name, permit }) = state.next()
        {
            if permit.is_wanted() {
                state.hashing += 1;
                if let Some(name) = &name {
                    *state.hashing_by_name.entry(name.clone()).or_default() += 1;
                }
                given.push((permit, HashPermit { queue: Arc::clone(self), name }));
            }
        }
        given
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next request. One account's name has half of the permits at most, so that guesses at it
    /// leave the rest to other accounts.
    fn next(&mut self) -> Option<Waiter> {
        let (per_name, by_name) = ((self.at_once / 2).max(1), &self.hashing_by_name);
        let is_ready = |waiter: &Waiter| {
            let hashing = waiter.name.as_ref().and_then(|name| by_name.get(name));
            hashing.is_none_or(|count| *count < per_name) || !waiter.permit.is_wanted()
        };
        for lane in order(self.known_was_last, self.clean_was_last) {
            if let Some((_, waiter)) = self.lanes[lane as usize].pop(|_| Some(is_ready)) {
                self.known_was_last = lane == Lane::Known;
                if lane != Lane::Known {
                    self.clean_was_last = lane == Lane::Clean;
                }
                return Some(waiter);
            }
        }
        None
    }
}

/// Returns the lanes in the order in which the next permit is offered to them.
fn order(known_was_last: bool, clean_was_last: bool) -> [Lane; 3] {
    let [first, second] =
        if clean_was_last { [Lane::Others, Lane::Clean] } else { [Lane::Clean, Lane::Others] };
    if known_was_last { [first, second, Lane::Known] } else { [Lane::Known, first, second] }
}

impl Drop for HashPermit {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.hashing = state.hashing.saturating_sub(1);
        if let Some(name) = &self.name
            && let Some(count) = state.hashing_by_name.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                state.hashing_by_name.remove(name);
            }
        }
        let given = self.queue.give(&mut state);
        drop(state);
        given.into_iter().for_each(|(waiter, permit)| waiter.send(permit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_io::oneshot::Receiver;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn ask(queue: &Arc<HashQueue>, name: &str, network: u8, lane: Lane) -> Option<Receiver<HashPermit>> {
        let (permit, wait) = oneshot();
        let name = Some(name.to_owned());
        queue.add(Request { name, network: vec![network], lane, at_once: 4 }, permit).ok()?;
        Some(wait)
    }

    fn given(wait: &mut Receiver<HashPermit>) -> Option<HashPermit> {
        match Pin::new(wait).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_name_has_half_of_the_permits_and_others_have_the_rest_at_once() {
        let queue = HashQueue::new();
        let mut alice: Vec<_> =
            (0..9).map(|network| ask(&queue, "alice", network, Lane::Others).unwrap()).collect();
        let hers: Vec<_> = alice.iter_mut().filter_map(given).collect();
        assert_eq!(hers.len(), 2);
        assert!(given(&mut ask(&queue, "bob", 99, Lane::Others).unwrap()).is_some());
        drop(hers);
        let next: Vec<_> = alice.iter_mut().filter_map(given).collect();
        assert_eq!(next.len(), 2);
    }

    #[test]
    fn a_known_network_waits_for_one_hash_of_strangers_at_most() {
        let queue = HashQueue::new();
        let mut strangers: Vec<_> =
            (0..60).map(|network| ask(&queue, "alice", network, Lane::Others).unwrap()).collect();
        let mut running: Vec<_> = strangers.iter_mut().filter_map(given).collect();
        let mut owner = ask(&queue, "alice", 200, Lane::Known).unwrap();
        assert!(given(&mut owner).is_none());
        running.pop();
        assert!(given(&mut owner).is_some());
    }

    /// Ends the oldest of the turns in use. Returns how many of `waiting` received one.
    fn end_one(running: &mut Vec<HashPermit>, waiting: &mut [Receiver<HashPermit>]) -> usize {
        drop(running.remove(0));
        let before = running.len();
        running.extend(waiting.iter_mut().filter_map(given));
        running.len() - before
    }

    #[test]
    fn a_network_without_a_failure_waits_for_one_hash_of_guessing_networks_at_most() {
        let queue = HashQueue::new();
        let guess = |network: u8| ask(&queue, &format!("name{network}"), network, Lane::Others).unwrap();
        let mut guesses: Vec<_> = (0..250).map(guess).collect();
        let mut running: Vec<_> = guesses.iter_mut().filter_map(given).collect();
        for newcomer in 250..=255 {
            let mut new = [ask(&queue, "alice", newcomer, Lane::Clean).unwrap()];
            let is_next = end_one(&mut running, &mut new) == 1;
            running.extend(guesses.iter_mut().filter_map(given));
            assert!(is_next || end_one(&mut running, &mut new) == 1, "{newcomer} waits for more");
        }
    }

    #[test]
    fn each_lane_has_its_part_of_the_permits_while_all_have_requests() {
        let queue = HashQueue::new();
        let mut waiting = [Lane::Known, Lane::Clean, Lane::Others].map(|lane| {
            let ask = |network: u8| ask(&queue, &format!("name{network}"), network, lane).unwrap();
            (0..60).map(ask).collect::<Vec<_>>()
        });
        let mut running: Vec<_> = waiting.iter_mut().flatten().filter_map(given).collect();
        let mut counts = [0; 3];
        for _ in 0..80 {
            drop(running.remove(0));
            for (waiting, count) in waiting.iter_mut().zip(&mut counts) {
                let given: Vec<HashPermit> = waiting.iter_mut().filter_map(given).collect();
                *count += given.len();
                running.extend(given);
            }
        }
        assert_eq!(counts, [40, 20, 20]);
    }

    #[test]
    fn strangers_of_one_name_have_a_bounded_queue_which_known_networks_do_not_share() {
        let queue = HashQueue::new();
        let asked = (0..=255).map_while(|network| ask(&queue, "alice", network, Lane::Others));
        let strangers: Vec<_> = asked.collect();
        assert_eq!(strangers.len(), HASHES_WAITING_PER_NAME_MAX + 2);
        assert!(
            ask(&queue, "alice", 1, Lane::Known).is_some() && ask(&queue, "bob", 1, Lane::Others).is_some()
        );
        // The clients disconnect.
        drop(strangers);
        assert!(ask(&queue, "alice", 1, Lane::Others).is_some());
    }

    #[test]
    fn permits_of_disconnected_clients_are_passed_on() {
        let queue = HashQueue::new();
        drop((0..9).map(|network| ask(&queue, "alice", network, Lane::Others)).collect::<Vec<_>>());
        assert!(given(&mut ask(&queue, "alice", 1, Lane::Others).unwrap()).is_some());
        assert_eq!(queue.state().hashing, 0);
        assert!(queue.state().hashing_by_name.is_empty());
    }
}
