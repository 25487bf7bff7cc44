//! The settings of a run: rounds, durations, cores, and deviations from the defaults.
//!
//! It does not parse a command line. Invariant: settings are stored with the figures, so that a run can be
//! repeated.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The settings of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Number of emulated clients, each with a connection.
    pub users: u32,
    /// Number of trials of each contender in each case.
    pub rounds: u32,
    /// Duration of a trial's measurement in seconds. Large files take longer, by
    /// `Case::longer`.
    pub seconds: f64,
    /// Duration of the warm-up before it, in seconds.
    pub warm_up_seconds: f64,
    /// Maximum wait for idle cores before a trial, in seconds.
    pub settle_seconds: f64,
    /// Time for all trials in seconds. On a machine that is never idle, it bounds the waits.
    pub budget_seconds: f64,
    /// Seed of the order of contenders.
    pub seed: u64,
    /// Whether all contenders log requests; otherwise none does.
    pub logs: bool,
    /// Whether to count system calls, in one more trial for each contender and case.
    pub syscalls: bool,
    /// The core of the servers; None for any.
    pub server_core: Option<usize>,
    /// The core of the generator; None for any.
    pub generator_core: Option<usize>,
    /// The congestion controls to run under; empty for the machine's own.
    pub congestion: Vec<String>,
}

/// The paths of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The plimsoll program under measurement.
    pub plimsoll: PathBuf,
    /// The generator: a program with plimsoll's command `load`.
    pub generator: PathBuf,
}

/// Overhead of a trial besides the measurement: settling, starting the generator, downloading reference
/// bodies.
const BESIDE_SECONDS: f64 = 0.75;
/// Share of settling in it, on an otherwise idle machine.
const SETTLE_USUAL_SECONDS: f64 = 0.2;
/// Limits of a trial's duration: a shorter one is inaccurate, a longer one no more accurate.
const SECONDS: std::ops::RangeInclusive<f64> = 0.3..=3.0;

/// Returns the measured duration per trial, in seconds, with which a run fits `budget_seconds`. It has
/// `trials`, and measures `longer` times that duration in total.
pub fn seconds_within(budget_seconds: f64, trials: usize, longer: usize) -> f64 {
    let measured = budget_seconds - BESIDE_SECONDS * as_float(trials);
    (measured / as_float(longer)).clamp(*SECONDS.start(), *SECONDS.end())
}

/// Converts a count to a float, at least 1.
pub(super) fn as_float(count: usize) -> f64 {
    u32::try_from(count.max(1)).map_or(f64::MAX, f64::from)
}

impl Settings {
    /// Returns how long the next trial may wait for idle cores, so that the remaining `trials` fit
    /// `left_seconds`. They measure `longer` times `seconds` in total.
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
