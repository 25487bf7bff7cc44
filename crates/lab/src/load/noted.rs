//! What is shown while a trial runs: counts of all threads, now and then.
//!
//! No figure that is kept comes from here. What must hold: who watches costs the trial next to nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::load::measure::Measure;

/// How far a trial is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// What is seen counts; before that, it warms up.
    pub is_measured: bool,
    /// How long it was measured.
    pub time: Duration,
    /// Whole and right answers.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Errors of all kinds.
    pub errors: u64,
}

/// Whoever watches.
type Watch = Box<dyn Fn(Look) + Send + Sync>;

/// Where threads note how far they are.
#[derive(Default)]
pub struct Noted {
    watch: Option<Watch>,
    threads: Mutex<Vec<Look>>,
}

impl Noted {
    /// Has `watch` called now and then, by a thread of the trial: it must not wait.
    #[must_use]
    pub fn watched(watch: Watch) -> Noted {
        Noted { watch: Some(watch), threads: Mutex::default() }
    }

    /// Takes down how far a thread is; the first one shows all.
    pub(crate) fn look(&self, thread: usize, is_measured: bool, time: Duration, measure: &Measure) {
        let Some(watch) = &self.watch else { return };
        let (requests, errors) = (measure.latencies.count(), measure.wrongs());
        let own = Look { is_measured, time, requests, bytes: measure.bytes, errors };
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() <= thread {
            threads.resize(thread + 1, Look::default());
        }
        threads[thread] = own;
        if thread == 0 {
            let sum = |of: fn(&Look) -> u64| threads.iter().map(of).sum();
            watch(Look {
                requests: sum(|look| look.requests),
                bytes: sum(|look| look.bytes),
                errors: sum(|look| look.errors),
                ..own
            });
        }
    }
}
