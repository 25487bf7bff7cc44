//! A service centre with a queue: a thread that serves one request at a time, in the order of their arrival.
//!
//! Invariant: the times of service add up to the drawn ones. A sleep that ends late shortens the next one.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::draws::Draws;

/// A request that waits for the centre, and the sender that it is reported to when it is served.
pub(super) struct Job {
    pub(super) served: Sender<()>,
}

/// The work of a centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// Uses the processor.
    Spin,
    /// Waits without the processor, as the holder of a lock may.
    Hold,
}

/// A service centre.
pub(super) struct Station {
    draws: Draws,
    service: Service,
    sleeper: Sleeper,
}

impl Station {
    /// Starts the thread of a centre, and returns its queue.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(draws: Draws, service: Service) -> Result<Sender<Job>> {
        let (queue, jobs) = channel();
        let station = Station { draws, service, sleeper: Sleeper::default() };
        let name = if service == Service::Spin { "processor" } else { "lock" };
        thread::Builder::new().name(name.to_owned()).spawn(move || station.serve(&jobs))?;
        Ok(queue)
    }

    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            let time = self.draws.next();
            match self.service {
                Service::Spin => spin(time),
                Service::Hold => self.sleeper.sleep(time),
            }
            // A connection that has ended meanwhile has no use for it.
            let _ = job.served.send(());
        }
    }
}

/// Sleeps for given times in the mean: the kernel ends a sleep some 60 microseconds late.
#[derive(Default)]
pub(super) struct Sleeper {
    /// The time by which earlier sleeps were too long.
    late: Duration,
}

impl Sleeper {
    pub(super) fn sleep(&mut self, time: Duration) {
        let wanted = time.saturating_sub(self.late);
        self.late = self.late.saturating_sub(time);
        let begun = Instant::now();
        if !wanted.is_zero() {
            thread::sleep(wanted);
        }
        self.late += begun.elapsed().saturating_sub(wanted);
    }
}

/// Uses the processor for `time` of this thread's own processor time.
fn spin(time: Duration) {
    let until = processor_time() + time;
    while processor_time() < until {
        std::hint::spin_loop();
    }
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}
