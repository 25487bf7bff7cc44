//! Permits: a bounded number at a time, with a bounded queue in which holders take turns.
//!
//! A holder is a network or an account. It does not know their purpose. Invariants: a released permit goes to
//! the next waiter in the queue, on any thread. No permit is lost. No holder has more than its share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_io::FairQueue;
use plimsoll_io::oneshot::{Sender, oneshot};

use crate::network::Network;

/// The permits for one purpose.
pub struct Permits(Mutex<State>);

struct State {
    free: usize,
    share_max: usize,
    /// The permits of each holder that has any.
    held: HashMap<Network, usize>,
    /// While a permit is free, only holders with their full share wait.
    waiting: FairQueue<Network, Sender<CallPermit>>,
}

/// A permit. Dropping it releases it.
pub struct CallPermit {
    permits: Arc<Permits>,
    holder: Network,
}

impl State {
    fn add(&mut self, holder: &Network) {
        *self.held.entry(holder.clone()).or_default() += 1;
    }

    fn remove(&mut self, holder: &Network) {
        if let Some(held) = self.held.get_mut(holder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(holder);
            }
        }
    }
}

fn has_share_left(held: &HashMap<Network, usize>, share_max: usize, holder: &Network) -> bool {
    held.get(holder).is_none_or(|held| *held < share_max)
}

impl Permits {
    /// Creates `count` permits, of which one holder has at most `share_max`, with a queue of at most
    /// `waiting_max`.
    #[must_use]
    pub fn new(count: usize, share_max: usize, waiting_max: usize) -> Arc<Permits> {
        let (held, waiting) = (HashMap::new(), FairQueue::new(waiting_max));
        Arc::new(Permits(Mutex::new(State { free: count, share_max, held, waiting })))
    }

    /// Takes a permit, now or when one is released. Returns `None` if too many wait; then the newest
    /// waiter of the holder that has most is refused.
    pub async fn acquire(self: &Arc<Permits>, holder: Network) -> Option<CallPermit> {
        let wait = {
            let mut state = self.lock();
            if state.free > 0 && has_share_left(&state.held, state.share_max, &holder) {
                state.free -= 1;
                state.add(&holder);
                drop(state);
                return Some(CallPermit { permits: Arc::clone(self), holder });
            }
            if state.waiting.is_full() {
                // Waiters that gave up leave the queue.
                state.waiting.retain(|_, waiter| waiter.is_wanted());
            }
            let (sender, wait) = oneshot();
            let displaced = state.waiting.push(holder, sender);
            drop(state);
            // Dropping its sender refuses it.
            drop(displaced);
            wait
        };
        wait.await
    }

    /// Releases a permit of `holder`. Removes the next waiter, which gets it. It is free if there is none.
    fn release(&self, holder: &Network) -> Option<(Network, Sender<CallPermit>)> {
        let mut state = self.lock();
        state.remove(holder);
        loop {
            let State { held, share_max, waiting, .. } = &mut *state;
            let next = waiting.pop(|holder| {
                has_share_left(held, *share_max, holder).then_some(|_: &Sender<CallPermit>| true)
            });
            let Some((next, waiter)) = next else { break };
            if waiter.is_wanted() {
                state.add(&next);
                return Some((next, waiter));
            }
        }
        state.free += 1;
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some((holder, waiter)) = self.permits.release(&self.holder) {
            // A waiter that gives up at this moment drops the permit, and so passes it on.
            waiter.send(CallPermit { permits: Arc::clone(&self.permits), holder });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls once.
    fn acquire(permits: &Arc<Permits>, holder: u8) -> Option<CallPermit> {
        let mut acquiring = pin!(permits.acquire(vec![holder]));
        match acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_holder_with_its_full_share_waits_while_others_get_permits() {
        let permits = Permits::new(4, 2, 8);
        let mut first = vec![acquire(&permits, 1).unwrap(), acquire(&permits, 1).unwrap()];
        assert!(acquire(&permits, 1).is_none());
        let second = acquire(&permits, 2).unwrap();
        assert!(acquire(&permits, 1).is_none());
        first.pop();
        assert!(acquire(&permits, 1).is_some());
        drop((first, second));
        assert_eq!(permits.lock().free, 4);
        assert!(permits.lock().held.is_empty());
    }

    #[test]
    fn a_released_permit_goes_to_the_first_waiter_with_a_share_left() {
        let permits = Permits::new(2, 1, 8);
        let (first, second) = (acquire(&permits, 1).unwrap(), acquire(&permits, 2).unwrap());
        let mut cx = Context::from_waker(Waker::noop());
        let (mut again, mut third) = (pin!(permits.acquire(vec![1])), pin!(permits.acquire(vec![3])));
        assert!(again.as_mut().poll(&mut cx).is_pending());
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(second);
        let Poll::Ready(Some(third)) = third.as_mut().poll(&mut cx) else { panic!("a permit was released") };
        assert!(again.as_mut().poll(&mut cx).is_pending(), "its holder has one");
        drop(first);
        let Poll::Ready(Some(again)) = again.as_mut().poll(&mut cx) else { panic!("its holder has none") };
        drop((third, again));
        assert_eq!(permits.lock().free, 2);
    }
}
