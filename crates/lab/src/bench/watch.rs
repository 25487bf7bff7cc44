//! What a trial costs, watched from outside while the generator runs.
//!
//! The generator does not say when its warm-up ends, so the server is looked at all the time, and a part in
//! the middle of what was measured is taken. What must hold: the looking itself costs no core anything
//! worth telling.

use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::contender::{Group, Spent, cores_busy};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The part of the measured time, counted back from the generator's end, that is taken.
const FROM: f64 = 0.9;
const TO: f64 = 0.2;
/// How long a generator may take beyond what it was to measure.
const BEYOND_MAX: Duration = Duration::from_secs(60);

/// CPU time for each second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    /// All processes of the server, of a core.
    pub(super) server: f64,
    /// How busy each core was.
    pub(super) cores: Vec<f64>,
}

struct Look {
    at: Instant,
    spent: Spent,
    cores: Vec<Duration>,
}

impl Look {
    fn at(processes: &[u32]) -> Look {
        Look { at: Instant::now(), spent: Spent::by(processes), cores: cores_busy() }
    }
}

/// Waits for the generator, which measures for `seconds`, and watches the server of `group` meanwhile.
///
/// # Errors
/// The run is to stop, or the generator does not end.
pub(super) fn watch(
    mut generator: Child,
    group: Group,
    seconds: f64,
    stop: &AtomicBool,
) -> Result<(Output, Option<Shares>)> {
    let processes = group.processes();
    let until = Instant::now() + Duration::from_secs_f64(seconds) + BEYOND_MAX;
    let mut looks = Vec::new();
    while generator.try_wait()?.is_none() {
        if stop.load(Ordering::Relaxed) || Instant::now() > until {
            end(&mut generator);
            bail!("the generator was ended");
        }
        looks.push(Look::at(&processes));
        std::thread::sleep(LOOK_EVERY);
    }
    let ended = Instant::now();
    Ok((generator.wait_with_output()?, shares(&looks, ended, seconds)))
}

fn end(generator: &mut Child) {
    // It may have ended by itself.
    let _ = generator.kill();
    let _ = generator.wait();
}

fn shares(looks: &[Look], ended: Instant, seconds: f64) -> Option<Shares> {
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

/// Waits until every core is idle, for some servers go on after their load has stopped; whether it came to
/// that.
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
        let look = |millis| Look { at: begun + Duration::from_millis(millis), ..Look::at(&processes) };
        let looks: Vec<Look> = (0..60).map(|at| look(at * 20)).collect();
        // It ran for 1.2 s, of which the last second was measured: 0.3 s to 1.0 s are looked at.
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
