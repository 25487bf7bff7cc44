//! Progress of a running trial: sums over all threads, reported at intervals.
//!
//! No final figure comes from here. Invariant: reporting costs the trial almost nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::measure::Measure;

/// The progress of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the counts are measured; otherwise the trial warms up.
    pub is_measured: bool,
    /// Duration of the measurement so far.
    pub time: Duration,
    /// Complete and correct responses.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Errors of all kinds.
    pub errors: u64,
}

/// A callback for progress.
type Watch = Box<dyn Fn(Progress) + Send + Sync>;

/// Collects the progress of the threads.
#[derive(Default)]
pub struct ProgressReporter {
    watch: Option<Watch>,
    threads: Mutex<Vec<Progress>>,
}

impl ProgressReporter {
    /// Has `watch` called at intervals, on a thread of the trial: it must not block.
    #[must_use]
    pub fn watched(watch: Watch) -> ProgressReporter {
        ProgressReporter { watch: Some(watch), threads: Mutex::default() }
    }

    /// Records the progress of a thread. Thread 0 also reports the sum over all threads.
    pub(crate) fn look(&self, thread: usize, is_measured: bool, time: Duration, measure: &Measure) {
        let Some(watch) = &self.watch else { return };
        let (requests, errors) = (measure.latencies.count(), measure.wrongs());
        let own = Progress { is_measured, time, requests, bytes: measure.bytes, errors };
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() <= thread {
            threads.resize(thread + 1, Progress::default());
        }
        threads[thread] = own;
        if thread == 0 {
            let sum = |of: fn(&Progress) -> u64| threads.iter().map(of).sum();
            watch(Progress {
                requests: sum(|look| look.requests),
                bytes: sum(|look| look.bytes),
                errors: sum(|look| look.errors),
                ..own
            });
        }
    }
}
