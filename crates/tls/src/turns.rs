//! Bounds the signatures that an event loop computes in one turn, so that handshakes delay its other
//! connections little.
//!
//! It computes none. Invariants: all listeners of a thread share the bound. It counts signatures, so that a
//! client which sends little at a time neither uses it up nor passes it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Instant, Io};

use crate::limits::{SIGNING_WEIGHT_MAX, TURN_PAUSE_TIME, TURNS_WAITED_MAX};

/// The key of this thread's [`Turns`] among its resources.
const RESOURCE: &str = "tls signatures";

/// The signatures of the present turn of one thread.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    at: Cell<Option<Instant>>,
    signed: Cell<u32>,
}

impl Turns {
    /// Returns those of this thread.
    pub(crate) fn of(io: &Io) -> Rc<Turns> {
        let turns = io.resource_pool().take::<Rc<Turns>>(RESOURCE).unwrap_or_default();
        io.resource_pool().put(&Arc::from(RESOURCE), Rc::clone(&turns), 1);
        turns
    }

    /// Waits for a turn with room for a signature. Waiting tasks take their turns in order.
    pub(crate) async fn wait(&self, io: &Io) {
        let mut waited = 0;
        while self.signed_at(io.now()) >= SIGNING_WEIGHT_MAX {
            waited += 1;
            // The time of a simulator stands still while tasks run.
            if waited % TURNS_WAITED_MAX == 0 {
                io.sleep(TURN_PAUSE_TIME).await;
            } else {
                io.yield_now().await;
            }
        }
    }

    /// Notes a signature in this turn.
    pub(crate) fn charge(&self, io: &Io, weight: u32) {
        self.signed.set(self.signed_at(io.now()) + weight);
    }

    /// Returns the weight of the signatures in this turn.
    fn signed_at(&self, now: Instant) -> u32 {
        // The time is constant within a turn.
        if self.at.replace(Some(now)) != Some(now) {
            self.signed.set(0);
        }
        self.signed.get()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use plimsoll_io::sim::{Faults, Sim};

    use super::*;

    #[test]
    fn signatures_beyond_those_of_a_turn_wait_for_the_next() {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let io = host.io();
        sim.run(&host, async move {
            let mut cx = Context::from_waker(Waker::noop());
            for weight in [1, SIGNING_WEIGHT_MAX] {
                // The listeners of a thread share them.
                let (turns, of_another_listener) = (Turns::of(&io), Turns::of(&io.clone()));
                for _ in 0..SIGNING_WEIGHT_MAX / weight {
                    assert!(pin!(of_another_listener.wait(&io)).poll(&mut cx).is_ready());
                    turns.charge(&io, weight);
                }
                let mut waiting = pin!(of_another_listener.wait(&io));
                assert!(waiting.as_mut().poll(&mut cx).is_pending(), "{weight}");
                io.sleep(Duration::from_millis(1)).await;
                assert!(waiting.poll(&mut cx).is_ready(), "{weight}");
            }
        });
    }

    #[test]
    fn a_thousand_slow_signatures_take_a_thousand_turns() {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let io = host.io();
        sim.run(&host, async move {
            let turns = Turns::of(&io);
            let mut last = None;
            for _ in 0..1000 {
                turns.wait(&io).await;
                assert_ne!(last.replace(io.now()), Some(io.now()));
                turns.charge(&io, SIGNING_WEIGHT_MAX);
            }
        });
    }
}
