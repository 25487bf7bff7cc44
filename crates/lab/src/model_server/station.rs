//! A service centre with a queue: a thread that serves one request at a time, in the order of their arrival.
//!
//! It draws no times. Invariants: the times of service add up to the drawn ones. A sleep that ends late
//! shortens the next one, and so does the processor time of the server's other work: all of it together is
//! the drawn time.

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
    /// The processor time of this process at the end of the last service.
    used: Duration,
}

impl Station {
    /// Starts the thread of a centre, and returns its queue.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(draws: Draws, service: Service) -> Result<Sender<Job>> {
        let (queue, jobs) = channel();
        let station = Station { draws, service, sleeper: Sleeper::default(), used: processor_time() };
        let name = if service == Service::Spin { "processor" } else { "lock" };
        thread::Builder::new().name(name.to_owned()).spawn(move || station.serve(&jobs))?;
        Ok(queue)
    }

    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            let time = self.draws.next();
            match self.service {
                Service::Spin => self.spin(time),
                Service::Hold => self.sleeper.sleep(time),
            }
            // A connection that has ended meanwhile has no use for it.
            let _ = job.served.send(());
        }
    }

    /// Uses the processor until this process has used `time` more of it.
    fn spin(&mut self, time: Duration) {
        self.used += time;
        while processor_time() < self.used {
            std::hint::spin_loop();
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

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}
