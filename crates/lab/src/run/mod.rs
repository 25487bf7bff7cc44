//! Runs an experiment: starts contenders, puts load on them in the planned order, and writes each trial
//! down.
//!
//! It analyses nothing. Invariants: a trial that fails or hangs ends as that, and the run goes on. A finished
//! trial is on the disk before the next starts. Every process and folder of the run ends with it.

mod limits;
mod machines;
mod maxima;
mod profiles;
mod quick;
mod requirements;
mod session;
mod tables;
mod trial;
mod variation;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};

use crate::experiment::open_loop::OpenLoop;
use crate::experiment::{Experiment, Trial};
use crate::profile::Profiler;
use crate::results::{Entrant, FinishedTrial, Machine, ResultsFolder, Run, TrialResult};
pub use machines::{RemoteMachine, remote_machines};
use maxima::Maxima;
use profiles::Profiles;
pub use profiles::check_profiler;
pub use quick::quick;
pub use requirements::{Findings, local_findings};
use session::Session;
pub use variation::Variation;

/// The parameters of a run that are not in its file.
pub struct Options<'a> {
    /// The results folder.
    pub out: &'a Path,
    /// The folder for files and servers, on the machine of each contender.
    pub work: &'a Path,
    /// The path of plimsoll: the run uses its generator and its agent.
    pub program: PathBuf,
    /// Set to end the run early.
    pub stop: &'a AtomicBool,
    /// Refuses arguments that the generator does not know.
    pub check_load: &'a dyn Fn(&[String]) -> Result<()>,
    /// The profiler of an additional trial for each contender and case.
    pub profiler: Option<Profiler>,
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Finished trials, those of an earlier start included.
    pub done: usize,
    /// All trials.
    pub total: usize,
    /// The next trial, as a reader knows it.
    pub next: String,
    /// An estimate of the time until the end.
    pub left: Duration,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether all trials are finished.
    pub is_complete: bool,
    /// The number of trials without figures. The next run repeats them.
    pub failed: usize,
}

/// Runs the trials of an experiment that its results folder lacks. `progress` is called before each.
///
/// # Errors
/// The reason why nothing was started, or why no trial can be written down.
pub fn run(text: &str, options: &Options<'_>, progress: &mut dyn FnMut(&Progress)) -> Result<Ended> {
    let experiment = Experiment::parse(text)?;
    check(&experiment, options.check_load)?;
    options.profiler.map_or(Ok(()), |profiler| check_profiler(&experiment, profiler))?;
    // A run that is refused leaves no folder of results.
    let mut session = Session::start(&experiment, options)?;
    let (mut folder, finished) = ResultsFolder::open(options.out, text)?;
    let run = describe(&experiment, &session, folder.run()?);
    folder.write_run(&run)?;
    let trials: Vec<Trial> =
        experiment.trials().into_iter().filter(|trial| session.takes_part(trial.contender)).collect();
    ensure!(!trials.is_empty(), "no contender is left: {}", run.notes.join("; "));
    let profiles = Profiles::plan(&experiment, &mut session, &folder, options.profiler)?;
    let maxima = Maxima::new(&experiment, run, &finished);
    let plan = Plan::new(&experiment, trials, &finished, profiles.total);
    let ended = plan.run(&mut session, &mut folder, maxima, options, progress)?;
    if !ended.is_complete {
        return Ok(ended);
    }
    let failed = profiles.run(&mut session, &folder, plan.total - profiles.total, options, progress)?;
    Ok(Ended { is_complete: failed.is_some(), failed: ended.failed + failed.unwrap_or(0) })
}

/// The trials of a run.
struct Plan<'a> {
    experiment: &'a Experiment,
    unfinished: Vec<Trial>,
    /// The number of all trials, and of the profiles after them.
    total: usize,
    /// The number of the finished trials.
    done: usize,
    pace: Pace,
}

impl<'a> Plan<'a> {
    fn new(
        experiment: &'a Experiment,
        trials: Vec<Trial>,
        finished: &[FinishedTrial],
        profiles: usize,
    ) -> Plan<'a> {
        let percent = |open_loop: &Option<OpenLoop>| open_loop.map(|one| one.percent);
        let keys: BTreeSet<_> = finished
            .iter()
            .map(|one| (one.contender.as_str(), &one.point, percent(&one.open_loop), one.repetition))
            .collect();
        let (pace, all) = (Pace::new(experiment, &trials), trials.len());
        let is_finished = |trial: &Trial| {
            let name = experiment.contenders[trial.contender].name.as_str();
            keys.contains(&(name, &trial.point, percent(&trial.open_loop), trial.repetition))
        };
        let unfinished: Vec<Trial> = trials.into_iter().filter(|trial| !is_finished(trial)).collect();
        Plan { experiment, done: all - unfinished.len(), unfinished, total: all + profiles, pace }
    }

    fn run(
        &self,
        session: &mut Session<'_>,
        folder: &mut ResultsFolder,
        mut maxima: Maxima,
        options: &Options<'_>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Ended> {
        let Plan { experiment, total, mut done, .. } = *self;
        let (mut pace, mut failed) = (self.pace, 0);
        for trial in &self.unfinished {
            let (next, left) = (label(experiment, trial), pace.left(total - done));
            progress(&Progress { done, total, next, left });
            let begun = Instant::now();
            let trial = maxima.with_rate(trial, folder)?;
            let Some(outcome) = one(session, experiment, &trial, options) else {
                return Ok(Ended { is_complete: false, failed });
            };
            // It is no failure of the contender, and neither would be those of the trials after it.
            if let (TrialResult::Failed(reason), true) = (&outcome.result, session.has_lost_an_agent()) {
                bail!("an agent has ended ({reason}): run the same again to resume");
            }
            maxima.note(&outcome);
            failed += usize::from(outcome.measured().is_none());
            folder.add(&outcome)?;
            done += 1;
            pause(experiment.order.gap()?, options.stop);
            pace.note(begun.elapsed());
        }
        Ok(Ended { is_complete: true, failed })
    }
}

/// Refuses what can be found out before anything is started.
///
/// # Errors
/// The first setting that cannot work.
pub fn check(experiment: &Experiment, check_load: &dyn Fn(&[String]) -> Result<()>) -> Result<()> {
    let first = experiment.trials().into_iter().filter(|trial| trial.repetition == 1);
    for trial in first.filter(|trial| !experiment.has_load_tool(trial.contender)) {
        let settings = experiment.settings(&trial)?;
        trial::plain_arguments(&settings)
            .and_then(|arguments| check_load(&arguments))
            .with_context(|| format!("contender {:?}", experiment.contenders[trial.contender].name))?;
    }
    Ok(())
}

/// Runs one trial; returns `None` if the run was ended meanwhile.
fn one(
    session: &mut Session<'_>,
    experiment: &Experiment,
    trial: &Trial,
    options: &Options<'_>,
) -> Option<FinishedTrial> {
    if options.stop.load(Ordering::Relaxed) {
        return None;
    }
    let (begun, started) = (now(), Instant::now());
    let result = match trial.open_loop {
        Some(OpenLoop { rate: None, .. }) => {
            Err(anyhow!("it has no rate: no closed loop of its case was measured"))
        }
        _ => session.trial(trial),
    };
    if options.stop.load(Ordering::Relaxed) {
        return None;
    }
    let result = match result {
        Ok(measured) => TrialResult::Measured(Box::new(measured)),
        Err(error) => TrialResult::Failed(format!("{error:#}")),
    };
    Some(FinishedTrial {
        contender: experiment.contenders[trial.contender].name.clone(),
        point: trial.point.clone(),
        open_loop: trial.open_loop,
        repetition: trial.repetition,
        begun,
        seconds: started.elapsed().as_secs_f64(),
        result,
    })
}

fn describe(experiment: &Experiment, session: &Session<'_>, before: Option<Run>) -> Run {
    let mut run = before.unwrap_or_else(|| Run {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        begun: now(),
        machine: Machine::this(),
        contenders: Vec::new(),
        maxima: Vec::new(),
        notes: Vec::new(),
    });
    let (present, before) = (session.entrants(), std::mem::take(&mut run.contenders));
    run.notes.extend(session.notes().iter().cloned().chain(budgets(experiment)));
    for former in &before {
        let now = present.iter().find(|entrant| entrant.name == former.name);
        if let Some(now) = now.filter(|now| now.version != former.version) {
            let (name, then, now) = (&now.name, &former.version, &now.version);
            run.notes
                .push(format!("contender {name:?} was {then:?}, and is {now:?} since the run was resumed"));
        }
    }
    // Earlier trials may be of a contender that is left out now.
    let former = before.into_iter().filter(|former| present.iter().all(|now| now.name != former.name));
    run.contenders = former.collect();
    run.contenders.extend(present);
    let place = |entrant: &Entrant| experiment.contenders.iter().position(|one| one.name == entrant.name);
    run.contenders.sort_by_key(place);
    let mut known = BTreeSet::new();
    run.notes.retain(|note| known.insert(note.clone()));
    run
}

/// Returns a sentence for each file set that its budget made smaller.
fn budgets(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    for trial in experiment.trials() {
        let files = experiment.settings(&trial).ok().and_then(|settings| settings.files);
        let Some(files) = files.filter(|files| files.count < files.planned) else { continue };
        let note = format!(
            "file set {:?} has {} files because of its budget; its largest number of users asks for {}",
            files.folder, files.count, files.planned
        );
        let is_same = |other: &String| other.starts_with(&format!("file set {:?}", files.folder));
        match notes.iter().position(is_same) {
            Some(at) => notes[at] = note,
            None => notes.push(note),
        }
    }
    notes
}

/// Returns a trial as a reader knows it: `nginx  users = 8  repetition 2`.
fn label(experiment: &Experiment, trial: &Trial) -> String {
    let known = experiment.variables().into_iter().filter_map(|name| Some((name, trial.point.get(name)?)));
    let mut point: Vec<String> = known.map(|(name, value)| format!("{name} = {value}")).collect();
    point.extend(trial.open_loop.map(|open_loop| open_loop.text()));
    let name = &experiment.contenders[trial.contender].name;
    format!("{name}  {}  repetition {}", point.join(", "), trial.repetition)
}

fn now() -> String {
    format_rfc3339(since_1970(SystemTime::now()))
}

/// Waits, unless the run is to end.
fn pause(time: Duration, stop: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(20);
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
    }
}

/// How long trials take.
#[derive(Clone, Copy)]
struct Pace {
    /// The time of a trial by the experiment's file.
    planned: Duration,
    taken: Duration,
    trials: u32,
}

impl Pace {
    /// The time of a trial besides the load.
    const BESIDE: Duration = Duration::from_secs(1);

    fn new(experiment: &Experiment, trials: &[Trial]) -> Pace {
        let time = |trial: &Trial| {
            let settings = experiment.settings(trial).ok()?;
            settings.load.planned_time().ok().flatten()
        };
        let times: Vec<Duration> = trials.iter().filter_map(time).collect();
        let mean = times.iter().sum::<Duration>() / u32::try_from(times.len().max(1)).unwrap_or(u32::MAX);
        let gap = experiment.order.gap().unwrap_or_default();
        Pace { planned: mean + gap + Pace::BESIDE, taken: Duration::ZERO, trials: 0 }
    }

    fn note(&mut self, taken: Duration) {
        self.taken += taken;
        self.trials += 1;
    }

    fn left(&self, trials: usize) -> Duration {
        let each = self.taken.checked_div(self.trials).unwrap_or(self.planned);
        each * u32::try_from(trials).unwrap_or(u32::MAX)
    }
}
