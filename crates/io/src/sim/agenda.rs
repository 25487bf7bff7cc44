//! The future events of a simulation, in the order of the virtual clock.
//!
//! These are not the executor's timers, which only wake tasks: an event changes the simulated world.
//! Invariant: events of one instant happen in the order in which they were scheduled.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::world::World;
use crate::time::Instant;

/// A change of the simulated world.
pub(super) type Event = Box<dyn FnOnce(&Rc<World>)>;

/// The scheduled events.
#[derive(Default)]
pub(super) struct Agenda {
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.count), event);
        self.count += 1;
    }

    /// Returns the instant of the first event.
    pub(super) fn next(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first event that is due at `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Event> {
        let first = self.events.first_entry()?;
        if first.key().0 > now { None } else { Some(first.remove()) }
    }
}
