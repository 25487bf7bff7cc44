//! One thread's engine: executor, timers, sockets and files, and the event loop that polls them.
//!
//! It is not a dispatcher: it runs the tasks it is given. Invariants: after each poll of a task, the bytes
//! it pushed are sent. A thread waits in the kernel only when nothing is ready. An order to stop wakes every
//! task once.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use plimsoll_io::exec::{Entered, Executor, TaskId, TimerId, Timers, Turn};
use plimsoll_io::{
    Address, Engine, Event, EventSource, Fs, Instant, Io, Job, Listener, LocalFuture, NotDone, Notify, Stop,
    Stream, Watch, Watcher, Work,
};

use crate::clock::Clock;
use crate::connections::Connections;
use crate::files::SystemFs;
use crate::notifier::Notifier;
use crate::offload::Offload;
use crate::scheduling::wake_on_time;
use crate::sockets::{Sockets, Wait};

/// The worker of a connection, for engines in which one thread serves one connection at a time.
pub(crate) trait ConnectionWorker {
    /// See [`Engine::poll_room_wanted`].
    fn poll_room_wanted(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// See [`Engine::leave`].
    fn leave(&self);
}

/// The engine of one thread.
pub(crate) struct Driver {
    executor: Executor,
    timers: Timers,
    clock: Clock,
    notifier: Arc<Notifier>,
    sockets: Sockets,
    offload: Offload,
    stop: Stop,
    stop_seen: Cell<Option<Instant>>,
    connections: Arc<Connections>,
    worker: OnceCell<Rc<dyn ConnectionWorker>>,
    /// Transports to be called at the end of this turn.
    to_call: RefCell<Vec<Weak<dyn Watcher>>>,
    /// Events that this thread polls itself.
    sources: RefCell<Vec<Weak<dyn EventSource>>>,
}

impl Driver {
    pub(crate) fn new(
        wait: Wait,
        offload: Offload,
        stop: &Stop,
        connections: &Arc<Connections>,
    ) -> io::Result<Rc<Driver>> {
        let notifier = Notifier::new()?;
        let bell: Arc<dyn Notify> = Arc::<Notifier>::clone(&notifier);
        stop.register(&bell);
        Ok(Rc::new(Driver {
            executor: Executor::new(bell),
            timers: Timers::default(),
            clock: Clock::new(),
            sockets: Sockets::new(wait, &notifier)?,
            notifier,
            offload,
            stop: stop.clone(),
            stop_seen: Cell::new(None),
            connections: Arc::clone(connections),
            worker: OnceCell::new(),
            to_call: RefCell::default(),
            sources: RefCell::default(),
        }))
    }

    /// Registers the worker that all connections of this driver share.
    pub(crate) fn share_worker(&self, worker: Rc<dyn ConnectionWorker>) {
        // A second call changes nothing: a driver serves one worker.
        let _ = self.worker.set(worker);
    }

    /// Makes this thread the driver's own. Without it, every wake takes the path for other threads.
    pub(crate) fn enter(&self) -> Entered {
        wake_on_time();
        self.clock.tick();
        self.executor.enter()
    }

    /// Returns the handle that protocols use.
    pub(crate) fn io(self: &Rc<Self>) -> Io {
        Io::new(Rc::<Driver>::clone(self))
    }

    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    pub(crate) fn spawn(&self, task: LocalFuture) -> TaskId {
        self.executor.spawn(task)
    }

    pub(crate) fn is_live(&self, task: TaskId) -> bool {
        self.executor.is_live(task)
    }

    /// Returns whether any task is still running.
    pub(crate) fn any_live(&self) -> bool {
        self.executor.live() > 0
    }

    /// Returns the time since this thread saw the order to stop.
    pub(crate) fn stopping_for(&self) -> Option<Duration> {
        self.stop_seen.get().map(|since| self.clock.now() - since)
    }

    /// Runs the event loop until `done`, or until `grace` after the order to stop.
    pub(crate) fn run(&self, grace: Duration, done: impl Fn() -> bool) {
        let mut batch = Vec::new();
        loop {
            self.begin_turn();
            self.executor.take_ready(&mut batch);
            for task in batch.drain(..) {
                self.turn(task);
            }
            self.end_turn();
            if done() || self.stopping_for().is_some_and(|time| time > grace) {
                return;
            }
            self.wait_for_events(grace);
        }
    }

    /// Drops every task and, with them, their connections.
    pub(crate) fn clear(&self) {
        self.executor.clear();
        self.sockets.end();
    }

    fn begin_turn(&self) {
        let now = self.clock.tick();
        self.sockets.new_turn();
        self.timers.fire(now);
        if self.stop.is_ordered() && self.stop_seen.get().is_none() {
            self.stop_seen.set(Some(now));
            self.executor.wake_all();
        }
    }

    fn turn(&self, task: TaskId) {
        if let Turn::Panicked(message) = self.executor.poll(task) {
            self.connections.count_panic();
            tracing::error!(%message, "a connection panicked and was dropped: a defect of the server");
        }
        self.end_turn();
    }

    /// Sends the bytes that were pushed in this turn. A transport that requests another call meanwhile gets
    /// it at the end of the next turn.
    fn end_turn(&self) {
        self.sockets.flush();
        if self.to_call.borrow().is_empty() {
            return;
        }
        let mut to_call = self.to_call.take();
        to_call.drain(..).filter_map(|watcher| watcher.upgrade()).for_each(|watcher| watcher.on_turn_end());
        // The allocation is reused in the next turn.
        let requested_meanwhile = self.to_call.replace(to_call);
        self.to_call.borrow_mut().extend(requested_meanwhile);
    }

    fn wait_for_events(&self, grace: Duration) {
        self.notifier.about_to_wait();
        let stop_unseen = self.stop.is_ordered() && self.stop_seen.get().is_none();
        let timeout = if self.has_more_to_do() || stop_unseen || self.have_events_arrived() {
            Some(Duration::ZERO)
        } else {
            let until_grace = self.stop_seen.get().map(|since| since + grace + Duration::from_millis(1));
            [self.timers.next(), until_grace].into_iter().flatten().min().map(|at| at - self.clock.now())
        };
        self.sockets.wait_for_events(timeout);
        self.notifier.stopped_waiting();
        self.sources.borrow().iter().filter_map(Weak::upgrade).for_each(|source| source.report());
    }
}

impl Driver {
    /// Has the polled sources ask for wake-ups. Returns whether an event has arrived before that.
    fn have_events_arrived(&self) -> bool {
        self.sources.borrow().iter().filter_map(Weak::upgrade).any(|source| source.about_to_wait())
    }

    /// Whether there is something to do before the thread may wait.
    fn has_more_to_do(&self) -> bool {
        self.executor.any_ready() || self.sockets.has_more() || !self.to_call.borrow().is_empty()
    }
}

impl Engine for Driver {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    fn wall_exact(&self) -> SystemTime {
        self.clock.wall_exact()
    }

    fn timer(&self, at: Instant, waker: &Waker) -> TimerId {
        self.timers.add(at, waker)
    }

    fn cancel(&self, timer: TimerId) {
        self.timers.cancel(timer);
    }

    fn connect(&self, to: &Address) -> io::Result<Stream> {
        self.sockets.connect(to)
    }

    fn listen(&self, at: &Address) -> io::Result<Listener> {
        self.sockets.listen(at)
    }

    fn nonblocking(&self) -> &dyn Fs {
        self.offload.nonblocking()
    }

    fn in_memory(&self) -> &dyn Fs {
        &SystemFs
    }

    fn offload(&self, work: Work, job: Job) -> Result<(), NotDone> {
        let submitted = self.offload.submit(work, job);
        // The job may have run in place and taken long: the task that continues must not see the earlier
        // time.
        self.clock.tick();
        submitted
    }

    fn poll_stopping(&self, _: &mut Context<'_>) -> Poll<()> {
        // No waker is stored: when the order comes, `begin_turn` wakes every task.
        if self.stop.is_ordered() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_room_wanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.worker.get().map_or(Poll::Pending, |worker| worker.poll_room_wanted(cx))
    }

    fn leave(&self) {
        if let Some(worker) = self.worker.get() {
            worker.leave();
        }
    }

    fn watch(
        &self,
        fd: &Arc<OwnedFd>,
        event: Event,
        watcher: &Weak<dyn Watcher>,
    ) -> io::Result<Box<dyn Watch>> {
        self.sockets.watch(fd, event, watcher)
    }

    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        self.to_call.borrow_mut().push(Weak::clone(watcher));
    }

    fn poll_events(&self, source: &Weak<dyn EventSource>) {
        let mut sources = self.sources.borrow_mut();
        sources.retain(|known| known.strong_count() > 0);
        sources.push(Weak::clone(source));
    }

    fn entropy(&self, into: &mut [u8]) {
        let mut filled = 0;
        while filled < into.len() {
            match rustix::rand::getrandom(&mut into[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(bytes) => filled += bytes,
                // Interrupted before the pool was ready, early at boot.
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}
