//! Runs a trial on operating system threads: each runs one event loop with its share of the users.
//!
//! It measures nothing. Invariants: running threads share only the start, the end and the request counter;
//! a trial that is stopped early still yields the figures so far.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_engine::{EngineKind, run_all, since_start};
use plimsoll_io::Stop;

use crate::cpu;
use crate::crowd::{Common, Crowd};
use crate::limits::LAST_ANSWERS_TIME_MAX;
use crate::measure::Measure;
use crate::outcome::Outcome;
use crate::progress::ProgressReporter;
use crate::workload::Workload;

/// The engine, the stop signal and the progress callback of a trial.
pub struct Trial {
    /// The engine that runs the users.
    pub engine: EngineKind,
    /// Ends the trial early.
    pub stop: Stop,
    /// Reports progress.
    pub progress: ProgressReporter,
}

/// The reason why a trial has no figures.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// A user could not get ready, so that the trial did not start.
    #[error("there was no start: {0}")]
    NoStart(String),
    /// A requested target is invalid, or a reference file cannot be read.
    #[error("the workload cannot be made ready: {0}")]
    NotReady(io::Error),
    /// The threads cannot be pinned to these cores.
    #[error("--cpu names a core that is not there or not ours; `nproc --all` counts them, from 0 on")]
    NoCore(#[source] io::Error),
    /// The kernel refused a thread, or the engine.
    #[error("cannot run")]
    System(#[from] io::Error),
}

/// Runs one trial of a workload.
///
/// # Errors
/// Returns [`NotRun`] if the trial did not start.
pub fn run(workload: &Workload, trial: Trial) -> Result<Outcome, NotRun> {
    cpu::keep_to(&workload.cpus).map_err(NotRun::NoCore)?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let run = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
    let progress = Arc::new(trial.progress);
    let common =
        Common::new(workload, &trial.stop, &progress, |_| since_start(), run).map_err(NotRun::NotReady)?;
    let threads = workload.threads.clamp(1, workload.users.max(1));
    let mut others = Vec::new();
    for thread in 1..threads {
        let (common, engine) = (common.clone(), trial.engine);
        let named = std::thread::Builder::new().name(format!("users-{thread}"));
        others.push(named.spawn(move || run_part(&common, engine, thread, threads))?);
    }
    let mut all = run_part(&common, trial.engine, 0, threads)?;
    for other in others {
        let joined = other.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        all.add(&joined?);
    }
    match common.shared.barrier.given_up() {
        Some(why) => Err(NotRun::NoStart(why)),
        None => {
            let outcome = Outcome::new(workload, &all.measure, all.share, all.unanswered);
            Ok(outcome.with_window(&all.measure, engine_start()))
        }
    }
}

/// Returns the start of the engine's clock on CLOCK_MONOTONIC, as precisely as two reads of the clock are
/// close together.
fn engine_start() -> Duration {
    cpu::monotonic().saturating_sub(since_start().since_start())
}

/// The counts of a thread.
struct Part {
    measure: Measure,
    unanswered: u64,
    /// Fraction of a core that the thread used during the measurement.
    share: f64,
}

impl Part {
    fn add(&mut self, other: &Part) {
        self.measure.add(&other.measure);
        self.unanswered += other.unanswered;
        self.share = self.share.max(other.share);
    }
}

fn run_part(common: &Common, engine: EngineKind, thread: usize, threads: usize) -> io::Result<Part> {
    let ran = run_users(common, engine, thread, threads);
    if let Err(error) = &ran {
        // Otherwise the other threads would wait for this thread's users.
        common.shared.barrier.give_up(format!("a thread has failed: {error}"));
    }
    let (measure, unanswered) = ran?.counted();
    let measure = measure.ok_or_else(|| io::Error::other("users have not ended"))?;
    let share = measure.cpu.as_secs_f64() / measure.time.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(Part { measure, unanswered, share })
}

fn run_users(common: &Common, engine: EngineKind, thread: usize, threads: usize) -> io::Result<Crowd> {
    let mut gathered = None;
    run_all(engine, &common.shared.stop, LAST_ANSWERS_TIME_MAX, |io| {
        match Crowd::of(common, io, thread, threads) {
            Ok((crowd, tasks)) => {
                gathered = Some(Ok(crowd));
                tasks
            }
            Err(error) => {
                gathered = Some(Err(error));
                Vec::new()
            }
        }
    })?;
    let crowd = gathered.unwrap_or_else(|| Err(io::Error::other("no users")))?;
    let uploads = crowd.to_verify();
    if !uploads.is_empty() {
        run_all(engine, &Stop::new(), Duration::ZERO, |io| vec![crowd.verifying(io, uploads)])?;
    }
    Ok(crowd)
}
