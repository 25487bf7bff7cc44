//! The trials of profiles, after all others: one for each contender and case.
//!
//! Invariant: a profile that is in the results folder is not made again, unless it failed.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::session::Session;
use super::{Options, Pace, Progress, label, now, pause};
use crate::experiment::{Experiment, Trial};
use crate::profile::{Profiler, plain_name};
use crate::results::{FinishedProfile, ProfileResult, ResultsFolder};

/// The profiles of a run.
pub(super) struct Profiles<'a> {
    experiment: &'a Experiment,
    /// Those that the results folder lacks: their trials, and the names of their files.
    unfinished: Vec<(Trial, String)>,
    profiler: Profiler,
    /// The number of all.
    pub(super) total: usize,
}

/// Refuses a profiler that this machine lacks, or that has nothing to profile.
///
/// # Errors
/// The profiler is not installed: with the package to install. Or the laboratory starts no contender.
pub fn check_profiler(experiment: &Experiment, profiler: Profiler) -> Result<()> {
    let mut own = experiment.contenders.iter().filter(|contender| !contender.processes.is_empty());
    ensure!(
        own.clone().next().is_some(),
        "--profile needs a contender that the laboratory starts: there is none with a `command`"
    );
    if own.any(|contender| contender.prefix.is_empty()) {
        profiler.ensure_installed()?;
    }
    Ok(())
}

impl<'a> Profiles<'a> {
    /// Plans the profiles; none without a profiler. A profiler that a machine cannot run is refused.
    pub(super) fn plan(
        experiment: &'a Experiment,
        session: &mut Session<'_>,
        folder: &ResultsFolder,
        profiler: Option<Profiler>,
    ) -> Result<Profiles<'a>> {
        let (mut unfinished, mut total) = (Vec::new(), 0);
        let Some(profiler) = profiler else {
            return Ok(Profiles { experiment, unfinished, profiler: Profiler::Callgrind, total });
        };
        session.check_profiler(profiler)?;
        for (number, trial) in (1..).zip(experiment.profiled()) {
            if !session.takes_part(trial.contender) {
                continue;
            }
            let name = name(experiment, &trial, number, profiler);
            if folder.profile(&name)?.is_none_or(|outcome| outcome.is_failed()) {
                unfinished.push((trial, name));
            }
            total += 1;
        }
        Ok(Profiles { experiment, unfinished, profiler, total })
    }

    /// Makes the profiles that are missing, after `done` trials. Returns the number of those that failed;
    /// none if the run was ended meanwhile.
    pub(super) fn run(
        &self,
        session: &mut Session<'_>,
        folder: &ResultsFolder,
        done: usize,
        options: &Options<'_>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Option<usize>> {
        let trials: Vec<Trial> = self.unfinished.iter().map(|(trial, _)| trial.clone()).collect();
        let (mut pace, mut failed) = (Pace::new(self.experiment, &trials), 0);
        let total = done + self.total;
        for (done, (trial, name)) in (total - trials.len()..).zip(&self.unfinished) {
            let next = format!("{}  profile by {}", label(self.experiment, trial), self.profiler.name());
            progress(&Progress { done, total, next, left: pace.left(total - done) });
            let (begun, started) = (now(), Instant::now());
            let made = session.profile(trial, self.profiler, name);
            if options.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (result, files) =
                made.unwrap_or_else(|error| (ProfileResult::Failed(format!("{error:#}")), Vec::new()));
            let contender = self.experiment.contenders[trial.contender].name.clone();
            let (point, profiler) = (trial.point.clone(), self.profiler);
            let outcome = FinishedProfile { contender, point, profiler, begun, result };
            failed += usize::from(outcome.is_failed());
            folder.add_profile(name, &outcome, &files).context("the profile cannot be written")?;
            pause(self.experiment.order.gap()?, options.stop);
            pace.note(started.elapsed());
        }
        Ok(Some(failed))
    }
}

/// Returns the name of a profile's files. Its number keeps it apart from names that differ in other
/// characters.
fn name(experiment: &Experiment, trial: &Trial, number: usize, profiler: Profiler) -> String {
    let contender = &experiment.contenders[trial.contender].name;
    let values = trial.point.iter().map(|(name, value)| format!("-{name}={value}"));
    let values: String = values.collect();
    plain_name(&format!("{number:03}-{contender}{values}-{}", profiler.name()))
}
