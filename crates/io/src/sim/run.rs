//! The loop that runs a simulation, and its failures.
//!
//! It is not an engine's loop: it never parks. Invariants: the clock advances only when nothing is ready
//! and nothing is due; a deadlock fails the run, with the seed and the trace.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use super::SEED_VARIABLE;
use super::limits::{RUN_STEPS_MAX, RUN_TIME_MAX};
use super::trace::{Happened, NOBODY};
use super::world::World;
use crate::exec::{TaskId, Turn};
use crate::time::Instant;

/// One run: from spawning its main task until that is ready.
pub(super) struct Run<'a> {
    world: &'a Rc<World>,
    main: TaskId,
    /// The panic message of the main task, if it has panicked.
    failed: Option<String>,
    steps: u64,
    time_max: Instant,
}

/// Runs `world` until `main` is ready.
pub(super) fn run<T: 'static>(world: &Rc<World>, host: u32, main: impl Future<Output = T> + 'static) -> T {
    let _entered = world.executor.enter();
    let output = Rc::new(Cell::new(None));
    let slot = Rc::clone(&output);
    let main = world.spawn(host, Box::pin(async move { slot.set(Some(main.await)) }));
    let time_max = world.now() + RUN_TIME_MAX;
    let mut run = Run { world, main, failed: None, steps: 0, time_max };
    loop {
        run.turn();
        if let Some(message) = run.failed {
            fail_main(world, message);
        }
        if let Some(output) = output.take() {
            return output;
        }
        run.step_on();
    }
}

impl Run<'_> {
    /// Polls all ready tasks, then runs the events that are due. The batch is always polled to its end:
    /// a task that was taken from the queue and not polled would never be woken again.
    fn turn(&mut self) {
        if self.world.stop_bell.was_rung() {
            self.world.executor.wake_all();
        }
        let mut batch = Vec::new();
        self.world.executor.take_ready(&mut batch);
        if self.world.faults.shuffle {
            self.world.draw(|chance| chance.shuffle(&mut batch));
        }
        for task in batch {
            self.steps += 1;
            self.poll(task);
        }
        self.let_happen();
    }

    fn poll(&mut self, task: TaskId) {
        self.world.log_task(task, Happened::Polled);
        match self.world.executor.poll(task) {
            Turn::Absent | Turn::Waiting => {}
            Turn::Ended => self.world.log_task(task, Happened::Ended),
            Turn::Panicked(message) => {
                self.world.log_task(task, Happened::Panicked);
                if task == self.main {
                    self.failed = Some(message);
                } else {
                    note_panic(self.world, task, &message);
                }
            }
        }
    }

    fn let_happen(&mut self) {
        while self.steps <= RUN_STEPS_MAX
            && let Some(event) = self.world.take_due()
        {
            self.steps += 1;
            event(self.world);
        }
        let before = self.world.timers.len();
        self.world.timers.fire(self.world.now());
        let fired = before - self.world.timers.len();
        if fired > 0 {
            self.world.log(NOBODY, 0, Happened::TimersFired, fired);
        }
    }

    /// Advances the clock if nothing else is left to do.
    fn step_on(&mut self) {
        if self.steps > RUN_STEPS_MAX {
            fail(self.world, "more steps than RUN_STEPS_MAX: the tasks run in a circle");
        }
        if self.world.executor.any_ready() || self.world.stop_bell.is_rung() {
            return;
        }
        match self.world.next() {
            None => fail(self.world, "deadlock: nothing is ready, and nothing will happen"),
            Some(at) if at > self.time_max => {
                fail(self.world, "no end in sight: the next thing happens after more than RUN_TIME_MAX");
            }
            Some(at) => self.world.clock.move_to(at),
        }
        self.let_happen();
    }
}

/// Prints on standard error how to repeat this run, and the last events; once.
#[allow(clippy::print_stderr, reason = "the report of a test that fails goes where its other output goes")]
pub(super) fn report(world: &World, why: &str) {
    if world.reported.replace(true) {
        return;
    }
    // tidy-allow(threads): the test's name is its thread's
    let thread = std::thread::current();
    let (seed, test, trace) = (world.seed, thread.name().unwrap_or(""), world.trace_lines());
    eprintln!(
        "simulation of seed {seed}: {why}\nthe last events:\n{trace}\
        again: {SEED_VARIABLE}={seed} cargo test --workspace {test}"
    );
}

/// Records the panic of a connection: the test continues, and finds it in [`super::Sim::panics`].
#[allow(clippy::print_stderr, reason = "the output of a panicked task is shown if the test fails")]
fn note_panic(world: &World, task: TaskId, message: &str) {
    let host = world.host_of(task);
    world.note_panic(host, message);
    report(world, &format!("a task of {} panicked: {message}", world.host_name(host)));
}

#[allow(clippy::panic, reason = "this is how a simulation fails its test")]
fn fail(world: &World, why: &str) -> ! {
    report(world, why);
    panic!("simulation of seed {}: {why}", world.seed);
}

/// Propagates the main task's panic; its message was printed when it occurred.
fn fail_main(world: &World, message: String) -> ! {
    report(world, "the main task panicked");
    std::panic::resume_unwind(Box::new(message))
}
