//! One simulated machine: its name, its disk, its stop order, and the [`Engine`] of its protocols.
//!
//! It is not a thread: all hosts take turns on one executor. Invariants: a job runs at its time, even if
//! its future was dropped; a panic in a job ends nothing else.

use core::net::IpAddr;
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use super::disk::{SimDisk, View, ViewThread};
use super::limits::OFFLOAD_JOBS_MAX;
use super::network::ip_of;
use super::trace::Happened;
use super::world::World;
use crate::address::Address;
use crate::engine::{Engine, Work};
use crate::exec::{TimerId, message_of};
use crate::file::Fs;
use crate::io::Io;
use crate::job::{Job, Progress};
use crate::lease::Pool;
use crate::limits::{BODY_BLOCK_BYTES, HEAD_BLOCK_BYTES};
use crate::listener::Listener;
use crate::offload::NotDone;
use crate::stop::{Notify, Stop};
use crate::stream::Stream;
use crate::time::Instant;
use crate::transport::Want;
use crate::work_queue::{Taken, WorkBounds, WorkQueue};

/// Workers of each host for listings, and for chores.
const LONG_WORKERS: usize = 2;
/// The bounds of each of their queues, like those of an engine.
const LONG_BOUNDS: WorkBounds = WorkBounds {
    jobs_max: 4 * OFFLOAD_JOBS_MAX,
    jobs_per_owner_max: OFFLOAD_JOBS_MAX / 2,
    workers_per_owner: LONG_WORKERS - 1,
    resumed_per_owner_max: 1,
    resumed_max: 16,
};

/// A machine of a simulation. Clones are the same machine.
#[derive(Clone)]
pub struct Host {
    pub(super) machine: Rc<Machine>,
}

pub(super) struct Machine {
    pub(super) world: Rc<World>,
    pub(super) number: u32,
    pub(super) ip: IpAddr,
    pub(super) disk: Arc<SimDisk>,
    nonblocking: View,
    blocking: View,
    stop: Stop,
    heads: Rc<Pool>,
    bodies: Rc<Pool>,
    jobs: Cell<usize>,
    listings: RefCell<LongWork>,
    chores: RefCell<LongWork>,
    room_wanted: Cell<bool>,
}

/// A queue of long work, and the number of its workers that are busy.
struct LongWork {
    queue: WorkQueue,
    busy: usize,
}

impl Default for LongWork {
    fn default() -> LongWork {
        LongWork { queue: WorkQueue::new(LONG_BOUNDS), busy: 0 }
    }
}

impl Host {
    pub(super) fn new(world: &Rc<World>, name: &str, disk: &Arc<SimDisk>) -> Host {
        let number = u32::try_from(world.hosts.borrow().len()).unwrap_or(u32::MAX);
        world.hosts.borrow_mut().push(name.to_owned());
        let view =
            |place| View::new(disk, world.draw(|chance| chance.fork()), place, world.faults.short_reads);
        let machine = Machine {
            world: Rc::clone(world),
            number,
            ip: ip_of(number),
            nonblocking: view(ViewThread::AtHand { would_block: world.faults.would_block }),
            blocking: view(ViewThread::Blocking),
            disk: Arc::clone(disk),
            stop: Stop::new(),
            heads: Pool::new(HEAD_BLOCK_BYTES),
            bodies: Pool::new(BODY_BLOCK_BYTES),
            jobs: Cell::new(0),
            listings: RefCell::default(),
            chores: RefCell::default(),
            room_wanted: Cell::new(false),
        };
        let bell: Arc<dyn Notify> = Arc::<super::world::Bell>::clone(&world.stop_bell);
        machine.stop.register(&bell);
        Host { machine: Rc::new(machine) }
    }

    /// Returns the handle for protocols on this machine.
    pub fn io(&self) -> Io {
        Io::new(Rc::new(SimEngine(Rc::clone(&self.machine))))
    }

    /// Returns its disk.
    pub fn disk(&self) -> &Arc<SimDisk> {
        &self.machine.disk
    }

    /// Returns its address on the network; it also has the loopback address, as every host.
    pub fn ip(&self) -> IpAddr {
        self.machine.ip
    }

    /// Returns its stop order.
    pub fn stop(&self) -> &Stop {
        &self.machine.stop
    }

    /// Orders it to stop.
    pub fn order_stop(&self) {
        self.machine.world.log(self.machine.number, 0, Happened::Stopping, 0);
        self.machine.stop.order();
    }

    /// Sets whether others need the workers of its connections, as in an engine with few workers.
    pub fn want_room(&self, wanted: bool) {
        self.machine.room_wanted.set(wanted);
        self.machine.world.stop_bell.notify();
    }

    /// Cuts its power: every call to its disk fails, and nothing that it sends reaches the network. Its
    /// tasks still run, without visible effect. [`SimDisk::after_power_cut`] returns the disk that is
    /// left.
    pub fn cut_power(&self) {
        self.machine.world.log(self.machine.number, 0, Happened::PowerCut, 0);
        self.machine.disk.cut_power();
    }

    /// Returns the memory of all leases that its protocols hold, in bytes.
    pub fn leased_bytes(&self) -> usize {
        self.machine.heads.leased_bytes() + self.machine.bodies.leased_bytes()
    }
}

impl Machine {
    pub(super) fn pool(&self, want: Want) -> &Rc<Pool> {
        match want {
            Want::Head => &self.heads,
            Want::Body => &self.bodies,
        }
    }

    /// Whether its power is cut.
    pub(super) fn is_cut(&self) -> bool {
        self.disk.is_cut()
    }

    fn run(&self, job: Job) {
        self.jobs.set(self.jobs.get() - 1);
        self.world.log(self.number, 0, Happened::JobRuns, self.jobs.get());
        self.catch(|| job.run(&self.blocking));
    }

    /// Runs a job, or a slice of it, and records its panic.
    fn catch<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        let ran = catch_unwind(AssertUnwindSafe(run));
        ran.inspect_err(|panic| {
            self.world.log(self.number, 0, Happened::JobPanicked, 0);
            self.world.note_panic(self.number, &format!("an offloaded job: {}", message_of(&**panic)));
        })
        .ok()
    }

    fn long_work(&self, work: Work) -> Option<&RefCell<LongWork>> {
        match work {
            Work::Listings => Some(&self.listings),
            Work::Chores => Some(&self.chores),
            _ => None,
        }
    }

    fn add_long(self: &Rc<Machine>, work: Work, long: &RefCell<LongWork>, job: Job) -> Result<(), NotDone> {
        let added = long.borrow_mut().queue.add(job);
        let happened = if added.is_ok() { Happened::JobWaits } else { Happened::JobRefused };
        self.world.log(self.number, 0, happened, 1);
        added?;
        self.occupy_worker(work, long);
        Ok(())
    }

    /// Assigns the next job to a worker, if both are available. The worker starts it after a random
    /// delay.
    fn occupy_worker(self: &Rc<Machine>, work: Work, long: &RefCell<LongWork>) {
        if long.borrow().busy >= LONG_WORKERS || !long.borrow().queue.has_ready() {
            return;
        }
        let Some(taken) = long.borrow_mut().queue.take() else { return };
        long.borrow_mut().busy += 1;
        let machine = Rc::clone(self);
        let delay = self.world.some_of(self.world.faults.offload_delay_max);
        self.world.after(delay, move |_| machine.run_slice(work, taken));
    }

    fn run_slice(self: &Rc<Machine>, work: Work, mut taken: Taken) {
        let Some(long) = self.long_work(work) else { return };
        self.world.log(self.number, 0, Happened::JobRuns, 1);
        let progress = self.catch(|| taken.job.run_slice(&self.blocking)).unwrap_or(Progress::Finished);
        let finished = long.borrow_mut().queue.finish_slice(taken, progress);
        drop(finished);
        long.borrow_mut().busy -= 1;
        for _ in 0..LONG_WORKERS {
            self.occupy_worker(work, long);
        }
    }
}

/// The engine of the protocols on one machine.
struct SimEngine(Rc<Machine>);

impl Engine for SimEngine {
    fn now(&self) -> Instant {
        self.0.world.now()
    }

    fn wall(&self) -> SystemTime {
        self.0.world.clock.wall()
    }

    fn timer(&self, at: Instant, waker: &Waker) -> TimerId {
        self.0.world.timers.add(at, waker)
    }

    fn cancel(&self, timer: TimerId) {
        self.0.world.timers.cancel(timer);
    }

    fn connect(&self, to: &Address) -> io::Result<Stream> {
        Ok(self.0.world.network.connect(&self.0, to))
    }

    fn listen(&self, at: &Address) -> io::Result<Listener> {
        self.0.world.network.listen(&self.0, at)
    }

    fn nonblocking(&self) -> &dyn Fs {
        &self.0.nonblocking
    }

    fn in_memory(&self) -> &dyn Fs {
        &self.0.blocking
    }

    fn offload(&self, work: Work, job: Job) -> Result<(), NotDone> {
        if let Some(long) = self.0.long_work(work) {
            return self.0.add_long(work, long, job);
        }
        let (world, waiting) = (&self.0.world, self.0.jobs.get());
        if waiting >= OFFLOAD_JOBS_MAX {
            world.log(self.0.number, 0, Happened::JobRefused, waiting);
            return Err(NotDone::Busy);
        }
        self.0.jobs.set(waiting + 1);
        world.log(self.0.number, 0, Happened::JobWaits, waiting + 1);
        let machine = Rc::clone(&self.0);
        world.after(world.some_of(world.faults.offload_delay_max), move |_| machine.run(job));
        Ok(())
    }

    fn poll_stopping(&self, _: &mut Context<'_>) -> Poll<()> {
        // `cx` need not be stored: the order wakes every task.
        if self.0.stop.is_ordered() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_room_wanted(&self, _: &mut Context<'_>) -> Poll<()> {
        // `cx` need not be stored: `Host::want_room` wakes every task.
        if self.0.room_wanted.get() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn entropy(&self, into: &mut [u8]) {
        self.0.world.draw(|chance| chance.fill(into));
    }
}
