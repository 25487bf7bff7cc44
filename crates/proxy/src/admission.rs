//! The connections to one origin that are in use, shared out by client, and the requests that wait for one.
//!
//! It does not connect. Invariants: no more connections are in use than the maximum. While many are, no
//! client has more than a small part of them. A bounded queue serves clients in rotation. Every second permit
//! is for the client with the fewest requests, so that a crowd of clients with many does not delay it.
//! A request that waits for too long is refused.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{ClientNetwork, Deadline, FairQueue, Peer, Slot};

use crate::limits::{
    CLIENT_CONNECTIONS_MIN, CLIENT_CONNECTIONS_PART, ORIGIN_QUEUE_MAX, ORIGIN_RELIEF_TIME,
    ORIGIN_WAIT_TIME_MAX,
};

/// The client of a request; programs of this machine are one.
type Client = Option<ClientNetwork>;

/// The connections to one origin that are in use.
#[derive(Debug, Default)]
pub(crate) struct Admission(Mutex<State>);

struct State {
    in_use: usize,
    /// The connections of each client.
    by_client: HashMap<Client, usize>,
    waiting: FairQueue<Client, Arc<Waiter>>,
    /// Whether the next permit is for the client with the fewest requests.
    is_lightest_next: bool,
}

/// A request that waits.
struct Waiter {
    client: Client,
    wait_state: Mutex<(WaitState, Option<Waker>)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WaitState {
    #[default]
    Waiting,
    Granted,
    /// The queue is full.
    Displaced,
}

/// The right to use a connection to an origin. Dropping it passes it on.
pub(crate) struct Permit {
    admission: Arc<Admission>,
    client: Client,
    max: usize,
}

/// No connection became free in time, or too many requests wait.
#[derive(Debug)]
pub(crate) struct Busy;

/// A place in the queue. Dropping it leaves the queue.
struct Waiting<'a> {
    admission: &'a Arc<Admission>,
    client: Client,
    max: usize,
    waiter: Arc<Waiter>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({} in use)", self.in_use)
    }
}

impl Default for State {
    fn default() -> State {
        let (by_client, waiting) = (HashMap::new(), FairQueue::new(ORIGIN_QUEUE_MAX));
        State { in_use: 0, by_client, waiting, is_lightest_next: false }
    }
}

impl State {
    /// Whether a client may use another connection, of `max` in all.
    fn has_room(&self, client: &Client, max: usize) -> bool {
        let own = self.by_client.get(client).copied().unwrap_or_default();
        self.in_use < max && own < share(max, self.in_use)
    }

    fn take(&mut self, client: Client) {
        self.in_use += 1;
        *self.by_client.entry(client).or_default() += 1;
    }

    fn release(&mut self, client: Client) {
        self.in_use = self.in_use.saturating_sub(1);
        if let Some(own) = self.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                self.by_client.remove(&client);
            }
        }
    }

    /// Grants free connections to the clients in turn. Returns the wakers of their requests.
    fn grant(&mut self, max: usize) -> Vec<Option<Waker>> {
        let mut granted = Vec::new();
        while self.in_use < max {
            let lightest = if self.is_lightest_next { self.lightest() } else { None };
            let next = self.pop(max, lightest).or_else(|| self.pop(max, None));
            let Some((client, waiter)) = next else { break };
            self.is_lightest_next = !self.is_lightest_next;
            self.take(client);
            granted.push(waiter.end(WaitState::Granted));
        }
        granted
    }

    /// Takes the next request out of the queue: that of `only`, or of the next client in the rotation.
    fn pop(&mut self, max: usize, only: Option<Client>) -> Option<(Client, Arc<Waiter>)> {
        let State { in_use, by_client, waiting, .. } = self;
        waiting.pop(|client| {
            let own = by_client.get(client).copied().unwrap_or_default();
            let is_next = own < share(max, *in_use) && only.is_none_or(|only| only == *client);
            is_next.then_some(|_: &Arc<Waiter>| true)
        })
    }

    /// Returns the client with the fewest requests, of those that wait.
    fn lightest(&self) -> Option<Client> {
        let load = |waiter: &&Arc<Waiter>| {
            let in_use = self.by_client.get(&waiter.client).copied().unwrap_or_default();
            in_use + self.waiting.len_of(&waiter.client)
        };
        self.waiting.iter().min_by_key(load).map(|waiter| waiter.client)
    }
}

/// Returns how many of `max` connections one client may use, of which `in_use` are used: half, and a small
/// part once most are.
fn share(max: usize, in_use: usize) -> usize {
    let half = (max / 2).max(1);
    if in_use < max - max / 4 {
        half
    } else {
        (max / CLIENT_CONNECTIONS_PART).max(CLIENT_CONNECTIONS_MIN).min(half)
    }
}

impl Admission {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.iter().count()
    }

    /// Waits for the right to use one of `max` connections. A client that keeps one waiting is evicted by
    /// way of `slot`, the one of this request's client.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        peer: &Peer,
        max: usize,
        slot: &dyn Slot,
        deadline: &Deadline,
    ) -> Result<Permit, Busy> {
        let client = match peer {
            Peer::Ip(ip, _) => Some(ClientNetwork::of(*ip)),
            Peer::Unix => None,
        };
        let waiting = match self.try_enter(client, max) {
            Ok(permit) => return Ok(permit),
            Err(waiting) => waiting,
        };
        let until = deadline.now() + ORIGIN_WAIT_TIME_MAX;
        while deadline.now() < until {
            deadline.after(ORIGIN_RELIEF_TIME);
            match deadline.within(waiting.granted()).await {
                Ok(WaitState::Displaced) => return Err(Busy),
                Ok(_) => return waiting.into_permit().ok_or(Busy),
                Err(_) => slot.relieve_upstream(),
            }
        }
        Err(Busy)
    }

    fn try_enter(self: &Arc<Self>, client: Client, max: usize) -> Result<Permit, Waiting<'_>> {
        let mut state = self.state();
        if state.has_room(&client, max) {
            state.take(client);
            return Ok(Permit { admission: Arc::clone(self), client, max });
        }
        let waiter = Arc::new(Waiter { client, wait_state: Mutex::default() });
        let displaced = state.waiting.push(client, Arc::clone(&waiter));
        drop(state);
        displaced.and_then(|other| other.end(WaitState::Displaced)).into_iter().for_each(Waker::wake);
        Err(Waiting { admission: self, client, max, waiter })
    }

    #[cfg(test)]
    pub(crate) fn permit_for_tests(self: &Arc<Self>) -> Permit {
        self.state().take(None);
        Permit { admission: Arc::clone(self), client: None, max: usize::MAX }
    }

    /// Releases a connection of a client, and grants those that are free.
    fn leave(&self, client: Client, max: usize) {
        let mut state = self.state();
        state.release(client);
        let granted = state.grant(max);
        drop(state);
        granted.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Waiter {
    fn lock(&self) -> MutexGuard<'_, (WaitState, Option<Waker>)> {
        self.wait_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the wait. Returns the waker of the request.
    fn end(&self, wait_state: WaitState) -> Option<Waker> {
        let mut state = self.lock();
        state.0 = wait_state;
        state.1.take()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<WaitState> {
        let mut state = self.lock();
        if state.0 == WaitState::Waiting {
            state.1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(state.0)
    }
}

impl Waiting<'_> {
    async fn granted(&self) -> WaitState {
        poll_fn(|cx| self.waiter.poll(cx)).await
    }

    fn into_permit(self) -> Option<Permit> {
        let is_granted =
            std::mem::replace(&mut self.waiter.lock().0, WaitState::Displaced) == WaitState::Granted;
        let (admission, client, max) = (Arc::clone(self.admission), self.client, self.max);
        is_granted.then(|| Permit { admission, client, max })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let own = &self.waiter;
        let mut state = self.admission.state();
        state.waiting.retain_of(&self.client, |other| !Arc::ptr_eq(other, own));
        // No permit is granted while the state is locked.
        let is_granted = own.lock().0 == WaitState::Granted;
        drop(state);
        if is_granted {
            self.admission.leave(self.client, self.max);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.leave(self.client, self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 64;

    fn client(number: u8) -> Client {
        Some(ClientNetwork::of([192, 0, 2, number].into()))
    }

    fn enter(admission: &Arc<Admission>, number: u8) -> Result<Permit, Waiting<'_>> {
        admission.try_enter(client(number), MAX)
    }

    fn wait_state(waiting: &Waiting<'_>) -> WaitState {
        waiting.waiter.lock().0
    }

    #[test]
    fn one_client_has_half_of_the_connections_and_a_small_part_while_most_are_used() {
        assert_eq!(
            [(1, 0), (2, 0), (512, 0), (512, 383), (512, 384)].map(|(max, used)| share(max, used)),
            [1, 1, 256, 256, 32]
        );
        let admission = Arc::<Admission>::default();
        let held: Vec<_> = (0..32).map(|_| enter(&admission, 1).ok().unwrap()).collect();
        let waiting = enter(&admission, 1).err().unwrap();
        assert!(enter(&admission, 2).is_ok());
        drop(held);
        assert!(waiting.into_permit().is_some(), "the connection is passed on");
        assert_eq!(admission.state().in_use, 0);
        assert_eq!(admission.waiting(), 0);
    }

    #[test]
    fn clients_take_turns_and_a_request_that_leaves_passes_its_turn_on() {
        let admission = Arc::<Admission>::default();
        let mut held: Vec<_> = (0..MAX)
            .map(|number| enter(&admission, 100 + u8::try_from(number % 8).unwrap()).ok().unwrap())
            .collect();
        let [first, second, other] = [1, 1, 2].map(|number| enter(&admission, number).err().unwrap());
        held.pop();
        assert!(wait_state(&first) == WaitState::Granted && wait_state(&other) == WaitState::Waiting);
        held.pop();
        assert!(wait_state(&second) == WaitState::Waiting && wait_state(&other) == WaitState::Granted);
        drop(first);
        assert!(wait_state(&second) == WaitState::Granted);
        drop((second, other, held));
        assert_eq!(admission.state().in_use, 0);
    }

    #[test]
    fn a_client_with_one_request_does_not_wait_for_a_crowd_of_clients_with_many() {
        let admission = Arc::<Admission>::default();
        let mut held: Vec<_> = (0..MAX)
            .map(|number| enter(&admission, 200 + u8::try_from(number % 8).unwrap()).ok().unwrap())
            .collect();
        let crowd: Vec<_> = (0..300_u16)
            .map(|number| enter(&admission, u8::try_from(number % 100).unwrap()).err().unwrap())
            .collect();
        let newcomer = enter(&admission, 150).err().unwrap();
        held.truncate(MAX - 2);
        assert!(wait_state(&newcomer) == WaitState::Granted, "at the second connection that is free");
        assert!(wait_state(&crowd[0]) == WaitState::Granted);
        drop((held, crowd, newcomer));
        assert_eq!(admission.state().in_use, 0);
    }

    #[test]
    fn in_a_full_queue_the_client_with_most_requests_makes_room() {
        let admission = Arc::<Admission>::default();
        let held: Vec<_> = (0..MAX)
            .map(|number| enter(&admission, 100 + u8::try_from(number % 8).unwrap()).ok().unwrap())
            .collect();
        let crowd: Vec<_> = (0..ORIGIN_QUEUE_MAX).map(|_| enter(&admission, 1).err().unwrap()).collect();
        let newcomer = enter(&admission, 2).err().unwrap();
        assert!(wait_state(&newcomer) == WaitState::Waiting);
        assert_eq!(crowd.iter().filter(|waiting| wait_state(waiting) == WaitState::Displaced).count(), 1);
        drop((held, crowd, newcomer));
        assert_eq!(admission.state().in_use, 0);
        assert_eq!(admission.waiting(), 0);
    }
}
