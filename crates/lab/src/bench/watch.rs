//! Samples CPU times while the generator runs.
//!
//! The generator does not report the end of its warm-up. Therefore the server is sampled throughout, and a
//! window in the middle of the measured time is used. Invariant: the sampling must use only a negligible
//! part of a core.

use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::limits::OVERTIME_MAX;
use crate::contender::{Group, Spent, cores_busy};

/// Sampling interval.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The window, in fractions of the measured time before the generator's end.
const FROM: f64 = 0.9;
const TO: f64 = 0.2;

/// CPU time per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    /// Fraction of a core used by all processes of the server.
    pub(super) server: f64,
    /// Fraction of time that each core was busy.
    pub(super) cores: Vec<f64>,
}

struct Sample {
    at: Instant,
    spent: Spent,
    cores: Vec<Duration>,
}

impl Sample {
    fn at(processes: &[u32]) -> Sample {
        Sample { at: Instant::now(), spent: Spent::by(processes), cores: cores_busy() }
    }
}

/// Waits for the generator, which measures for `seconds`, and samples the server of `group` meanwhile.
///
/// # Errors
/// The run must stop, or the generator does not end.
pub(super) fn watch(
    mut generator: Child,
    group: Group,
    seconds: f64,
    stop: &AtomicBool,
) -> Result<(Output, Option<Shares>)> {
    let processes = group.processes();
    let until = Instant::now() + Duration::from_secs_f64(seconds) + OVERTIME_MAX;
    let mut looks = Vec::new();
    while generator.try_wait()?.is_none() {
        if stop.load(Ordering::Relaxed) || Instant::now() > until {
            end(&mut generator);
            bail!("the generator was ended");
        }
        looks.push(Sample::at(&processes));
        std::thread::sleep(LOOK_EVERY);
    }
    let ended = Instant::now();
    Ok((generator.wait_with_output()?, shares(&looks, ended, seconds)))
}

fn end(generator: &mut Child) {
    // The generator may already have ended.
    let _ = generator.kill();
    let _ = generator.wait();
}

fn shares(looks: &[Sample], ended: Instant, seconds: f64) -> Option<Shares> {
    let before = |part: f64| ended.checked_sub(Duration::from_secs_f64(seconds * part));
    let (from, to) = (before(FROM)?, before(TO)?);
    let first = looks.iter().find(|look| look.at >= from)?;
    let last = looks.iter().rev().find(|look| look.at <= to)?;
    let time = last.at.checked_duration_since(first.at).filter(|time| !time.is_zero())?;
    let share = |busy: Duration| busy.as_secs_f64() / time.as_secs_f64();
    let cores = last.cores.iter().zip(&first.cores);
    Some(Shares {
        server: share(last.spent.since(&first.spent)),
        cores: cores.map(|(last, first)| share(last.saturating_sub(*first))).collect(),
    })
}

/// Waits until every core is idle, because some servers keep working after the load has stopped. Returns
/// whether all became idle.
pub(super) fn settle(time_max: Duration, stop: &AtomicBool) -> bool {
    const WINDOW: Duration = Duration::from_millis(100);
    let until = Instant::now() + time_max;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let before = cores_busy();
        std::thread::sleep(WINDOW);
        let busy = cores_busy().into_iter().zip(before).map(|(after, before)| after.saturating_sub(before));
        if busy.into_iter().all(|busy| busy <= WINDOW / 10) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_what_was_measured_is_taken() {
        let begun = Instant::now();
        let processes = [std::process::id()];
        let look = |millis| Sample { at: begun + Duration::from_millis(millis), ..Sample::at(&processes) };
        let looks: Vec<Sample> = (0..60).map(|at| look(at * 20)).collect();
        // The generator ran for 1.2 s, of which the last second was measured: the window is 0.3 s to 1.0 s.
        let shares = shares(&looks, begun + Duration::from_millis(1200), 1.0).unwrap();
        assert!(shares.server >= 0.0 && !shares.cores.is_empty());
        assert_eq!(super::shares(&looks[..1], begun + Duration::from_millis(1200), 1.0), None);
        assert_eq!(super::shares(&[], begun, 1.0), None);
    }

    #[test]
    fn a_run_that_is_to_stop_ends_the_generator() {
        let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let stop = AtomicBool::new(true);
        let ended = watch(child, Group(u32::MAX), 1.0, &stop).unwrap_err();
        assert!(ended.to_string().contains("ended"));
        assert!(!settle(Duration::from_secs(1000), &stop));
    }
}
