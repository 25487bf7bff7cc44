//! The state that all hosts of a simulation share: clock, agenda, executor, network, randomness and
//! trace.
//!
//! It does not advance by itself ([`super::run`] advances it). Invariant: no borrow of its state is held
//! while a task, an event or a job runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::agenda::{Agenda, Event};
use super::chance::Chance;
use super::clock::Clock;
use super::faults::Faults;
use super::network::Network;
use super::trace::{Happened, Trace, TraceEntry};
use crate::engine::LocalFuture;
use crate::exec::{Executor, TaskId, Timers};
use crate::stop::Notify;
use crate::time::Instant;

/// The constant part of a network delay.
pub const LINK_DELAY: Duration = Duration::from_micros(50);

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) faults: Faults,
    pub(super) clock: Arc<Clock>,
    pub(super) executor: Executor,
    pub(super) timers: Timers,
    pub(super) network: Network,
    pub(super) stop_bell: Arc<Bell>,
    pub(super) hosts: RefCell<Vec<String>>,
    agenda: RefCell<Agenda>,
    chance: RefCell<Chance>,
    trace: RefCell<Trace>,
    tasks: RefCell<BTreeMap<TaskId, TaskKey>>,
    spawned: Cell<u32>,
    panics: RefCell<Vec<String>>,
    over: Cell<bool>,
    /// Whether its trace was printed.
    pub(super) reported: Cell<bool>,
}

/// A task's own number (the executor reuses its numbers) and its host.
#[derive(Clone, Copy)]
struct TaskKey {
    number: u32,
    host: u32,
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> Rc<World> {
        Rc::new(World {
            seed,
            faults,
            clock: Arc::new(Clock::default()),
            executor: Executor::new(Arc::new(Bell::default())),
            timers: Timers::default(),
            network: Network::default(),
            stop_bell: Arc::new(Bell::default()),
            hosts: RefCell::default(),
            agenda: RefCell::default(),
            chance: RefCell::new(Chance::new(seed)),
            trace: RefCell::new(Trace::new()),
            tasks: RefCell::default(),
            spawned: Cell::new(0),
            panics: RefCell::default(),
            over: Cell::new(false),
            reported: Cell::new(false),
        })
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.borrow_mut())
    }

    pub(super) fn chance(&self, per_mille: u16) -> bool {
        // A fault that is off draws nothing, so that it changes no other draw.
        per_mille > 0 && self.draw(|chance| chance.chance(per_mille))
    }

    /// Draws a duration of at most `most`.
    pub(super) fn some_of(&self, most: Duration) -> Duration {
        self.draw(|chance| Faults::delay(chance, most))
    }

    /// Draws how many of `most` bytes move in one step.
    pub(super) fn portion(&self, most: usize) -> usize {
        self.draw(|chance| self.faults.portion(chance, most))
    }

    /// Draws the delay from one host's network to another's.
    pub(super) fn link_delay(&self) -> Duration {
        LINK_DELAY + self.some_of(self.faults.delay_max)
    }

    /// Schedules `event` at `delay` from now.
    pub(super) fn after(&self, delay: Duration, event: impl FnOnce(&Rc<World>) + 'static) {
        if !self.over.get() {
            self.agenda.borrow_mut().add(self.now() + delay, Box::new(event));
        }
    }

    /// Takes the next event that is due.
    pub(super) fn take_due(&self) -> Option<Event> {
        self.agenda.borrow_mut().take_due(self.now())
    }

    /// Returns the instant of the next event or timer.
    pub(super) fn next(&self) -> Option<Instant> {
        let (event, timer) = (self.agenda.borrow().next(), self.timers.next());
        event.into_iter().chain(timer).min()
    }

    pub(super) fn spawn(&self, host: u32, future: LocalFuture) -> TaskId {
        let number = self.spawned.get() + 1;
        self.spawned.set(number);
        let id = self.executor.spawn(future);
        self.tasks.borrow_mut().insert(id, TaskKey { number, host });
        self.log(host, number, Happened::Spawned, 0);
        id
    }

    pub(super) fn log(&self, host: u32, subject: u32, happened: Happened, amount: usize) {
        let entry = TraceEntry { at: self.now(), host, subject, happened, amount: amount as u64 };
        self.trace.borrow_mut().add(entry);
    }

    pub(super) fn log_task(&self, id: TaskId, happened: Happened) {
        let named = self.tasks.borrow().get(&id).copied();
        if let Some(TaskKey { number, host }) = named {
            self.log(host, number, happened, 0);
        }
    }

    pub(super) fn host_of(&self, id: TaskId) -> u32 {
        self.tasks.borrow().get(&id).map_or(0, |named| named.host)
    }

    pub(super) fn host_name(&self, host: u32) -> String {
        self.hosts.borrow().get(host as usize).cloned().unwrap_or_default()
    }

    pub(super) fn note_panic(&self, host: u32, message: &str) {
        self.panics.borrow_mut().push(format!("{}: {message}", self.host_name(host)));
    }

    pub(super) fn panics(&self) -> Vec<String> {
        self.panics.borrow().clone()
    }

    pub(super) fn digest(&self) -> u64 {
        self.trace.borrow().digest()
    }

    pub(super) fn trace_lines(&self) -> String {
        self.trace.borrow().lines(&self.hosts.borrow())
    }

    /// Drops every task, and with them the reference cycles through this world.
    pub(super) fn end(&self) {
        self.over.set(true);
        self.executor.clear();
        let agenda = self.agenda.take();
        drop(agenda);
        self.network.clear();
    }
}

/// Stores a notification in a flag, for a loop that never parks.
#[derive(Default)]
pub(super) struct Bell(AtomicBool);

impl Bell {
    /// Whether it was notified since the last call. Clears the flag.
    pub(super) fn was_rung(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Whether it was notified. Keeps the flag.
    pub(super) fn is_rung(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Notify for Bell {
    fn notify(&self) {
        self.0.store(true, Ordering::Release);
    }
}
