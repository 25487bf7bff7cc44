//! How a run is made: rounds, seconds, cores, and what differs from the defaults.
//!
//! It has no command line. What must hold: it is written beside the figures, so that they can be had again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a run is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Emulated clients, each with a connection.
    pub users: u32,
    /// How often each contender has its turn in each case.
    pub rounds: u32,
    /// How long a trial is measured; large files longer, as their case says.
    pub seconds: f64,
    /// How long it runs before that.
    pub warm_up_seconds: f64,
    /// How long idle cores are waited for before a trial, at most.
    pub settle_seconds: f64,
    /// How long all trials may take; on a machine that is never idle, less is waited for it.
    pub budget_seconds: f64,
    /// Decides in which order contenders have their turns.
    pub seed: u64,
    /// Whether every contender logs requests; otherwise none does.
    pub logs: bool,
    /// Whether system calls are counted, in one more trial for each contender and case.
    pub syscalls: bool,
    /// The core of the servers; anywhere if that is none.
    pub server_core: Option<usize>,
    /// The core of the generator.
    pub generator_core: Option<usize>,
    /// The congestion controls to run under; what the system has, if that is none.
    pub congestion: Vec<String>,
}

/// Where things are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program of ours that is measured.
    pub plimsoll: PathBuf,
    /// The generator: a program that has `load` as plimsoll has it.
    pub generator: PathBuf,
}

/// What a trial takes beside what is measured: settling, starting the generator, fetching what bodies are
/// compared with.
const BESIDE_SECONDS: f64 = 0.75;
/// The part of it that is for settling, on a machine with nothing else to do.
const SETTLE_USUAL_SECONDS: f64 = 0.2;
/// A shorter trial tells little, a longer one no more.
const SECONDS: std::ops::RangeInclusive<f64> = 0.3..=3.0;

/// How long a trial may be measured for `trials` of them, measured for `longer` times that together, to be
/// done in `budget_seconds`.
pub fn seconds_within(budget_seconds: f64, trials: usize, longer: usize) -> f64 {
    let measured = budget_seconds - BESIDE_SECONDS * as_float(trials);
    (measured / as_float(longer)).clamp(*SECONDS.start(), *SECONDS.end())
}

/// A count to reckon with; at least one.
pub(super) fn as_float(count: usize) -> f64 {
    u32::try_from(count.max(1)).map_or(f64::MAX, f64::from)
}

impl Settings {
    /// How long the next trial may wait for idle cores, so that `trials` more fit into `left_seconds`, which
    /// are measured for `longer` times `seconds` together.
    pub(super) fn settle_within(&self, left_seconds: f64, trials: usize, longer: usize) -> f64 {
        let beside = self.warm_up_seconds + BESIDE_SECONDS - SETTLE_USUAL_SECONDS;
        let unmeasured = left_seconds - self.seconds * as_float(longer);
        (unmeasured / as_float(trials) - beside).clamp(0.0, self.settle_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_idle_cores_is_less_when_time_is_short() {
        let settings = Settings {
            users: 1,
            rounds: 1,
            seconds: 1.0,
            warm_up_seconds: 0.25,
            settle_seconds: 3.0,
            budget_seconds: 200.0,
            seed: 1,
            logs: false,
            syscalls: false,
            server_core: None,
            generator_core: None,
            congestion: Vec::new(),
        };
        assert_eq!(settings.settle_within(200.0, 10, 10), 3.0);
        assert!((settings.settle_within(200.0, 100, 100) - 0.2).abs() < 1e-9);
        assert!((settings.settle_within(230.0, 100, 120) - 0.3).abs() < 1e-9);
        assert_eq!(settings.settle_within(-1.0, 100, 100), 0.0);
        assert_eq!(settings.settle_within(0.0, 0, 0), 0.0);
    }

    #[test]
    fn a_budget_is_shared_out_within_reason() {
        assert!((seconds_within(1600.0, 1000, 1000) - 0.85).abs() < 1e-9);
        assert!((seconds_within(1600.0, 1000, 1700) - 0.5).abs() < 1e-9);
        assert_eq!(seconds_within(1600.0, 10_000, 10_000), 0.3);
        assert_eq!(seconds_within(1600.0, 1, 1), 3.0);
        assert_eq!(seconds_within(60.0, 0, 0), 3.0);
    }
}
