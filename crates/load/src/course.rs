//! The schedule of a trial on one thread: the starts of requests, the measured window, and the end.
//!
//! It speaks no protocol. Invariants: only requests that end within the measured window are measured, and
//! each other one is in exactly one further count. In an open loop, a request counts from its planned start,
//! however late it was sent. Idle users end as soon as the trial ends.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::{Either, Instant, Io, Stop, select};

use crate::barrier::Barrier;
use crate::cpu;
use crate::failure::Failure;
use crate::limits::{LOOK_EVERY, READY_TIME_MAX};
use crate::measure::{CorrectResponse, Interval, Measure, UserTime};
use crate::progress::ProgressReporter;
use crate::workload::{End, Pace};

/// Reads the engine's clock now. [`Io::now`] stands still within one turn of the event loop, in which many
/// users may start.
pub(crate) type ReadClock = fn(&Io) -> Instant;

/// The state shared by all threads of a trial.
pub(crate) struct Shared {
    pub(crate) barrier: Barrier,
    /// Ordered at the end of the trial, or by the caller before.
    pub(crate) stop: Stop,
    pub(crate) progress: Arc<ProgressReporter>,
    read_clock: ReadClock,
    /// Requests that may still be sent, if their number ends the trial, and those that have not ended.
    tickets: AtomicU64,
    unended: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        users: usize,
        end: End,
        stop: &Stop,
        progress: &Arc<ProgressReporter>,
        read_clock: ReadClock,
    ) -> Arc<Shared> {
        let requests = match end {
            End::After(_) => u64::MAX,
            End::Requests(requests) => requests,
            End::RequestsEach(requests) => requests.saturating_mul(users as u64),
        };
        Arc::new(Shared {
            barrier: Barrier::new(users, stop),
            stop: stop.clone(),
            progress: Arc::clone(progress),
            read_clock,
            tickets: AtomicU64::new(requests),
            unended: AtomicU64::new(requests),
        })
    }

    fn take_ticket(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        self.tickets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Counts a request as ended. Returns whether it was the last one.
    fn give_back_ticket(&self) -> bool {
        self.unended.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// The phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    GettingReady,
    WarmingUp,
    Measured,
    Over,
}

/// The part of a workload that concerns time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) pace: Pace,
    /// Delay between the start of the trial and the first planned request of an open loop.
    pub(crate) first_after: Duration,
    pub(crate) end: End,
    pub(crate) warm_up: Duration,
}

impl Plan {
    /// Returns the number of starts that an open loop plans before its end; `None` if it ends by a number of
    /// requests.
    fn starts_max(&self) -> Option<u64> {
        match (self.pace, self.end) {
            (Pace::Open { per_second }, End::After(time)) => {
                let whole = self.warm_up.saturating_add(time);
                Some(starts_within(whole.saturating_sub(self.first_after), per_second))
            }
            _ => None,
        }
    }
}

/// Returns the number of starts at even steps in a time whose end does not belong to it. The first is at its
/// beginning.
fn starts_within(time: Duration, per_second: f64) -> u64 {
    /// The error of a product that should be a whole number.
    const ROUNDING: f64 = 1e-6;
    let steps = (time.as_secs_f64() * per_second - ROUNDING).max(0.0).ceil();
    Duration::try_from_secs_f64(steps).map_or(u64::MAX, |steps| steps.as_secs())
}

/// The schedule of one thread.
pub(crate) struct Course {
    pub(crate) io: Io,
    pub(crate) shared: Arc<Shared>,
    thread: usize,
    plan: Plan,
    phase: Cell<Phase>,
    measure: RefCell<Measure>,
    /// In an open loop: the time of the first planned request, the number of planned starts that users have
    /// taken since, and of those that they have sent.
    first: Cell<Instant>,
    planned: Cell<u64>,
    sent: Cell<u64>,
    /// The times at which users stopped because no request was left for them.
    done_early: RefCell<Vec<Instant>>,
    /// The number of requests in progress, and the time of its last change.
    in_progress: Cell<(u64, Instant)>,
    began: Cell<(Instant, Duration)>,
}

/// The start of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// The planned time, from which the latency counts.
    planned: Instant,
    /// The time at which it was sent.
    sent: Instant,
    /// Whether it is one of the requests whose number ends the trial.
    has_ticket: bool,
}

impl Course {
    pub(crate) fn new(
        io: &Io,
        shared: &Arc<Shared>,
        thread: usize,
        plan: Plan,
        measure: Measure,
    ) -> Rc<Course> {
        Rc::new(Course {
            io: io.clone(),
            shared: Arc::clone(shared),
            thread,
            plan,
            phase: Cell::new(Phase::GettingReady),
            measure: RefCell::new(measure),
            first: Cell::default(),
            planned: Cell::new(0),
            sent: Cell::new(0),
            done_early: RefCell::default(),
            in_progress: Cell::default(),
            began: Cell::default(),
        })
    }

    /// Returns the counts so far.
    pub(crate) fn measure(&self) -> RefMut<'_, Measure> {
        self.measure.borrow_mut()
    }

    /// Returns the final counts.
    pub(crate) fn into_measure(self) -> Measure {
        self.measure.into_inner()
    }

    /// Returns the number of requests in progress.
    pub(crate) fn in_progress(&self) -> u64 {
        self.in_progress.get().0
    }

    /// Runs the phases. Each thread has one such task.
    pub(crate) async fn keep_time(self: Rc<Course>) {
        match select(self.shared.barrier.started(&self.io), self.io.sleep(READY_TIME_MAX)).await {
            Either::Left(true) => {}
            Either::Left(false) => return self.phase.set(Phase::Over),
            Either::Right(()) => {
                self.phase.set(Phase::Over);
                return self.shared.barrier.give_up("not all users were ready in time".to_owned());
            }
        }
        self.start();
        if self.wait(self.plan.warm_up).await {
            self.begin_to_measure();
            match self.plan.end {
                End::After(time) => self.wait(time).await,
                End::Requests(_) | End::RequestsEach(_) => self.wait(Duration::MAX).await,
            };
        }
        self.end();
    }

    /// Waits for `time`, and reports progress meanwhile. Returns false if the trial was stopped.
    async fn wait(&self, time: Duration) -> bool {
        let until = self.io.now() + time;
        while self.io.now() < until {
            let step = LOOK_EVERY.min(until - self.io.now());
            if let Either::Right(()) = select(self.io.sleep(step), self.io.stopping()).await {
                return false;
            }
            self.look();
        }
        true
    }

    /// Reports the counts so far.
    fn look(&self) {
        let is_measured = self.phase.get() == Phase::Measured;
        let time = if is_measured { self.io.now() - self.began.get().0 } else { Duration::ZERO };
        self.shared.progress.look(self.thread, is_measured, time, &self.measure());
    }

    /// Starts the warm-up. A user may run before `keep_time` after the barrier opens, so the first of them
    /// starts it.
    fn start(&self) {
        if self.phase.get() == Phase::GettingReady {
            self.first.set(self.io.now() + self.plan.first_after);
            self.phase.set(Phase::WarmingUp);
            if self.plan.warm_up.is_zero() {
                self.begin_to_measure();
            }
        }
    }

    fn begin_to_measure(&self) {
        if self.phase.get() != Phase::WarmingUp {
            return;
        }
        let now = self.io.now();
        self.phase.set(Phase::Measured);
        self.began.set((now, cpu::of_this_thread()));
        self.in_progress.set((self.in_progress(), now));
        self.measure().in_progress = Duration::ZERO;
    }

    fn end(&self) {
        if self.phase.get() == Phase::Measured {
            self.count_under_way(0);
            let (now, (began, cpu)) = (self.io.now(), self.began.get());
            let mut measure = self.measure();
            measure.time = now - began;
            measure.window = Some(Interval { from: began, to: now });
            measure.cpu = cpu::of_this_thread().saturating_sub(cpu);
            measure.missed = self.missed(now);
            measure.between += self.done_early.take().into_iter().map(|since| now - since).sum::<Duration>();
        }
        self.phase.set(Phase::Over);
        self.shared.stop.order();
    }

    /// Returns the number of planned starts that no user has sent.
    fn missed(&self, now: Instant) -> u64 {
        let (Pace::Open { per_second }, Some(all)) = (self.plan.pace, self.plan.starts_max()) else {
            return 0;
        };
        let since = now - self.first.get();
        all.min(starts_within(since, per_second)).saturating_sub(self.sent.get())
    }

    /// Waits until a free user may send its `request`, counted from zero. Returns None at the end of the
    /// trial.
    pub(crate) async fn next(&self, request: u64, free_since: Instant) -> Option<Start> {
        self.start();
        let planned = match self.plan.pace {
            Pace::Closed { think } => self.think(if request > 0 { think } else { Duration::ZERO }).await?,
            Pace::Open { per_second } => self.planned(per_second, free_since).await?,
        };
        if self.phase.get() == Phase::Over {
            return None;
        }
        let is_left = !matches!(self.plan.end, End::RequestsEach(each) if request >= each);
        let has_ticket = self.phase.get() == Phase::Measured && is_left && self.shared.take_ticket();
        if self.phase.get() == Phase::Measured && !has_ticket {
            self.done_early.borrow_mut().push(self.io.now());
            return None;
        }
        let sent = self.io.now();
        if request == 0 {
            self.measure().first_start((self.shared.read_clock)(&self.io));
        }
        self.count_under_way(1);
        self.sent.set(self.sent.get() + 1);
        if self.phase.get() == Phase::Measured {
            self.measure().between += sent - free_since;
        }
        Some(Start { planned: planned.unwrap_or(sent), sent, has_ticket })
    }

    async fn think(&self, think: Duration) -> Option<Option<Instant>> {
        if !think.is_zero() {
            self.sleep(think).await?;
        }
        Some(None)
    }

    /// Takes the next planned start and waits for it.
    async fn planned(&self, per_second: f64, free_since: Instant) -> Option<Option<Instant>> {
        let number = self.planned.replace(self.planned.get() + 1);
        if self.plan.starts_max().is_some_and(|all| number >= all) {
            self.io.stopping().await;
            return None;
        }
        let planned = self.first.get() + Duration::from_secs_f64(number as f64 / per_second);
        let is_free = free_since <= planned;
        if self.io.now() < planned {
            self.sleep(planned - self.io.now()).await?;
        }
        if self.phase.get() == Phase::Measured {
            let mut measure = self.measure();
            match is_free {
                true => measure.late.record(self.io.now() - planned),
                false => measure.without_user += 1,
            }
        }
        Some(Some(planned))
    }

    /// Waits for `time`. Returns None if the trial ends before.
    pub(crate) async fn sleep(&self, time: Duration) -> Option<()> {
        match select(self.io.sleep(time), self.io.stopping()).await {
            Either::Left(()) => Some(()),
            Either::Right(()) => None,
        }
    }

    /// Counts the result of a request, as measured if it lies in the measured window.
    pub(crate) fn done(&self, start: &Start, asked: &Result<CorrectResponse, Failure>) {
        let now = self.io.now();
        self.count_under_way(-1);
        let counts = match self.plan.end {
            End::After(_) => self.phase.get() == Phase::Measured,
            End::Requests(_) | End::RequestsEach(_) => start.has_ticket && self.phase.get() != Phase::Over,
        };
        match (counts, asked) {
            (true, Ok(right)) => self.measure().right(right, now - start.planned, now - start.sent),
            (true, Err(failure)) => self.measure().wrong(failure),
            (false, _) if self.phase.get() == Phase::Over => self.measure().after_end += 1,
            (false, _) => self.measure().in_warm_up += 1,
        }
        let ends_by_count = !matches!(self.plan.end, End::After(_));
        if start.has_ticket && ends_by_count && self.shared.give_back_ticket() {
            self.end();
        }
    }

    /// Records how long a user took for its requests, if that is to be measured.
    pub(crate) fn user_ended(&self, mut user: UserTime, at: Instant) {
        if matches!(self.plan.end, End::RequestsEach(_)) {
            user.time = at - self.began.get().0;
            self.measure().users.push(user);
        }
    }

    fn count_under_way(&self, change: i64) {
        let (count, since) = self.in_progress.get();
        let now = self.io.now();
        let counts = matches!(self.phase.get(), Phase::WarmingUp | Phase::Measured);
        if now > since && count > 0 && counts {
            let time = (now - since).as_nanos().saturating_mul(u128::from(count));
            self.measure().in_progress += Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
        }
        self.in_progress.set((count.saturating_add_signed(change), now));
    }
}
