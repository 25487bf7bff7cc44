//! The simulator: a sixth engine, which runs the same protocols with a seeded clock, network and disk.
//!
//! It does not model protocols: their futures are the real ones, run by the executor that every engine
//! uses. It makes no system call and does not wait: an hour of virtual time passes in the time that its
//! events take. Invariants: a run is a function of its seed and its faults, so that every failure is
//! reproducible. A protocol may do here exactly as much as under any engine.
//!
//! ```
//! use plimsoll_io::sim::{Faults, Sim};
//!
//! let sim = Sim::new(7, Faults::splits());
//! let host = sim.host("client");
//! let io = host.io();
//! sim.run(&host, async move { io.sleep(std::time::Duration::from_secs(60)).await });
//! assert_eq!(sim.now().since_start().as_secs(), 60);
//! ```

mod agenda;
mod chance;
mod clock;
mod connection;
mod disk;
mod faults;
mod host;
mod limits;
mod link;
mod listening;
mod network;
mod pipe;
mod run;
mod serve;
mod socket;
mod trace;
mod world;

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

pub use chance::{Chance, PER_MILLE};
pub use clock::START;
pub use disk::{Call, Moment, SimDisk, Unsynced};
pub use faults::Faults;
pub use host::Host;
pub use limits::{BACKLOG_MAX, OFFLOAD_JOBS_MAX, RUN_STEPS_MAX, RUN_TIME_MAX, WINDOW_BYTES_MAX};
pub use trace::TRACE_EVENTS_KEPT;
pub use world::LINK_DELAY;

use crate::address::Address;
use crate::engine::{LocalFuture, Setup};
use crate::exec::TaskId;
use crate::time::Instant;
use world::World;

/// The environment variable that selects the one seed to run.
pub const SEED_VARIABLE: &str = "PLIMSOLL_SEED";

/// Returns the seeds that a test runs: `0..count`, or the one that [`SEED_VARIABLE`] selects.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let named = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    named.map_or(0..count, |seed: u64| seed..seed.saturating_add(1))
}

/// A simulated network of hosts. Dropping it drops every task.
pub struct Sim {
    world: Rc<World>,
}

impl Sim {
    /// Creates a world that `seed` and `faults` determine.
    pub fn new(seed: u64, faults: Faults) -> Sim {
        Sim { world: World::new(seed, faults) }
    }

    /// Adds a machine with an empty disk.
    pub fn host(&self, name: &str) -> Host {
        Host::new(&self.world, name, &SimDisk::new(Arc::clone(&self.world.clock)))
    }

    /// Adds a machine with an existing disk, which another machine's power cut has left. The clock
    /// advances to the time of that disk.
    pub fn host_with_disk(&self, name: &str, disk: &Arc<SimDisk>) -> Host {
        disk.join(&self.world.clock);
        Host::new(&self.world, name, disk)
    }

    /// Runs `future` on `host` concurrently with others, from the next [`Sim::run`] on.
    pub fn spawn(&self, host: &Host, future: LocalFuture) -> TaskId {
        self.world.spawn(host.machine.number, future)
    }

    /// Serves at `at` on `host` until it is ordered to stop. Returns the address with the chosen port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`].
    pub fn serve(&self, host: &Host, at: &Address, setup: &Setup) -> io::Result<Address> {
        serve::serve(host, at, setup)
    }

    /// Runs all tasks until `main` is ready. Other tasks keep their state for the next run.
    ///
    /// # Panics
    /// As `main` does; if no event can happen any more; if it takes more than [`RUN_TIME_MAX`] or
    /// [`RUN_STEPS_MAX`]. The output then includes the command that repeats the run.
    pub fn run<T: 'static>(&self, host: &Host, main: impl Future<Output = T> + 'static) -> T {
        run::run(&self.world, host.machine.number, main)
    }

    /// Whether `task` has not ended.
    pub fn is_live(&self, task: TaskId) -> bool {
        self.world.executor.is_live(task)
    }

    /// Returns the number of tasks that have not ended.
    pub fn live_tasks(&self) -> usize {
        self.world.executor.live()
    }

    /// Returns the number of streams that protocols hold, both ends of a connection counted.
    pub fn connections_open(&self) -> usize {
        self.world.network.open()
    }

    /// Returns the panics of tasks (but not of a run's main one) and offloaded jobs, each after its
    /// host's name.
    pub fn panics(&self) -> Vec<String> {
        self.world.panics()
    }

    /// Returns the time of the virtual clock.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Returns the last [`TRACE_EVENTS_KEPT`] events, a line each.
    pub fn trace(&self) -> String {
        self.world.trace_lines()
    }

    /// Returns a digest of all events: the same for the same seed, faults and code.
    pub fn trace_digest(&self) -> u64 {
        self.world.digest()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // tidy-allow(threads): asks whether this one panics, starts none
        if std::thread::panicking() {
            run::report(&self.world, "the test failed");
        }
        self.world.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    #[test]
    fn dropping_a_simulation_frees_its_world_whatever_was_going_on() {
        let sim = Sim::new(0, Faults::splits());
        let host = sim.host("one");
        let at: Address = ":80".parse().unwrap();
        let (io, far, abandoned) = (host.io(), host.io(), host.io());
        let mut listener = far.listen(&at).unwrap();
        let to = at.clone();
        sim.run(&host, async move {
            let mut stream = io.connect(&to).await.unwrap();
            stream.tx.push(Segment::Owned(vec![0; 100_000]));
        });
        sim.spawn(&host, Box::pin(async move { listener.accept().await.map(drop).unwrap() }));
        sim.spawn(&host, Box::pin(async move { abandoned.connect(&at).await.map(drop).unwrap() }));
        let world = Rc::downgrade(&sim.world);
        drop((sim, host, far));
        assert!(world.upgrade().is_none());
    }
}
