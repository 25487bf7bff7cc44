//! The benchmark: runs all contenders side by side, each once per round, in random order.
//!
//! It formats and judges nothing ([`crate::bench::report`] does). Invariants: the contenders of a round are
//! measured directly one after another, so that drift of the machine affects them alike. Servers, files and
//! changed settings of the machine are removed or restored at the end, also after Ctrl-C.

mod case;
mod congestion;
mod generator;
mod limits;
pub mod report;
mod settings;
mod syscalls;
mod trial;
mod watch;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

pub use crate::machine::{Machine, now};
pub use case::{Case, Connections, all as all_cases, named as named_cases, quick as quick_cases};
pub use settings::{Programs, Settings, seconds_within};
pub use trial::{Calls, Measured, Trial};

use crate::contender::{Contender, Places, Running, Started, find_program};
use crate::stats::Chance;
use congestion::PutBack;
use trial::Scene;

/// A contender that took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entrant {
    /// Its name.
    pub name: String,
    /// Its distinguishing feature.
    pub about: String,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The version that it reports.
    pub version: String,
}

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The start time.
    pub begun: String,
    /// The duration in seconds.
    pub seconds: f64,
    /// Whether it was stopped early.
    pub stopped: bool,
    /// The machine.
    pub machine: Machine,
    /// The settings.
    pub settings: Settings,
    /// The contenders that took part.
    pub entrants: Vec<Entrant>,
    /// Contenders and congestion controls that were left out, and failures to count system calls, with
    /// reasons.
    pub left_out: Vec<String>,
    /// The cases.
    pub cases: Vec<Case>,
    /// All trials, in the order in which they ran.
    pub trials: Vec<Trial>,
    /// Counts of system calls, if enabled.
    pub calls: Vec<Calls>,
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Completed trials.
    pub done: usize,
    /// Trials in all.
    pub total: usize,
    /// The next trial: case, congestion control, contender.
    pub next: [&'a str; 3],
    /// The round of the next trial, from 1.
    pub round: u32,
    /// Whether the next trial is the first of its round.
    pub begins_round: bool,
    /// Estimate of the remaining time.
    pub left: Duration,
}

/// The configuration of a run.
pub struct Bench<'a> {
    /// The settings.
    pub settings: Settings,
    /// The contenders; those that cannot start are left out.
    pub contenders: Vec<Contender>,
    /// The cases.
    pub cases: Vec<Case>,
    /// The paths of the programs.
    pub programs: Programs,
    /// Set to end the run early.
    pub stop: &'a AtomicBool,
}

impl Bench<'_> {
    /// Runs the benchmark. `tell` is called before every trial.
    ///
    /// # Errors
    /// The reason why it did not start. A failed trial is not an error: the results include it.
    pub fn run(&self, tell: &mut dyn FnMut(&Progress<'_>)) -> Result<Results> {
        let (begun, started) = (now(), Instant::now());
        let machine = Machine::this();
        // Servers that drop root privileges must be able to read the folder.
        let folder = tempfile::Builder::new().prefix("plimsoll-bench.").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let root = folder.path().join("files");
        case::make_files(&self.cases, &root)?;
        let (servers, left_out) = self.start(folder.path(), &root);
        ensure!(!servers.is_empty(), "nobody is left to be measured: {}", left_out.join("; "));
        let mut results = Results {
            begun,
            seconds: 0.0,
            stopped: false,
            machine,
            settings: self.settings.clone(),
            entrants: servers.iter().map(|server| self.entrant(&server.contender)).collect(),
            left_out,
            cases: self.cases.clone(),
            trials: Vec::new(),
            calls: Vec::new(),
        };
        self.all_trials(&servers, &mut results, tell)?;
        self.count_calls(&servers, folder.path(), &mut results);
        results.seconds = started.elapsed().as_secs_f64();
        results.stopped = self.stop.load(Ordering::Relaxed);
        Ok(results)
    }

    /// Returns the maximum number of trials.
    pub fn trials(&self) -> usize {
        let rounds = usize::try_from(self.settings.rounds).unwrap_or(usize::MAX);
        let under = self.settings.congestion.len().max(1);
        self.cases.len() * self.contenders.len() * rounds * under
    }

    /// Returns the sum of [`Case::longer`] over all trials.
    pub fn longer(&self) -> usize {
        let each = self.trials() / self.cases.len().max(1);
        self.cases.iter().map(|case| case.longer() * each).sum()
    }

    /// Starts every contender. Returns those that started, and the reasons why others did not.
    fn start(&self, folder: &Path, root: &Path) -> (Vec<Running>, Vec<String>) {
        let (mut servers, mut left_out) = (Vec::new(), Vec::new());
        for (at, contender) in self.contenders.iter().enumerate() {
            let places = Started {
                root,
                own: folder,
                plimsoll: &self.programs.plimsoll,
                // Each searches from its own port on, so that none takes a port that another has chosen but
                // not bound yet.
                ports_from: u16::try_from(at * 10).unwrap_or(0),
            };
            match self.start_one(contender, &places) {
                Ok(server) => servers.push(server),
                Err(error) => left_out.push(format!("{}: {error:#}", contender.name)),
            }
        }
        (servers, left_out)
    }

    fn start_one(&self, contender: &Contender, places: &Started<'_>) -> Result<Running> {
        ensure!(contender.is_installed(), "it is not installed");
        if !contender.requires.is_empty() {
            let said = self.run_command(&contender.requires, places.own).context("it is not there")?;
            ensure!(said.status.success(), "{}", first_line(&said.stderr));
        }
        let server = Running::start(contender, self.settings.server_core, self.settings.logs, places)?;
        for case in &self.cases {
            let path = format!("{}/f0", case.size);
            server.check(&format!("/{path}"), &places.root.join(&path))?;
        }
        Ok(server)
    }

    fn entrant(&self, contender: &Contender) -> Entrant {
        let said = self.run_command(&contender.version, Path::new("/nowhere"));
        let version = said.map(|said| first_line(&[said.stdout, said.stderr].concat())).unwrap_or_default();
        let Contender { name, about, ours, .. } = contender.clone();
        Entrant { name, about, ours, version }
    }

    /// Runs a short command of a contender and returns its output.
    fn run_command(&self, words: &[String], dir: &Path) -> Result<std::process::Output> {
        let plimsoll = &self.programs.plimsoll;
        let places = Places { root: dir, port: 0, dir, plimsoll, logs: "" };
        let mut words = words.iter().map(|word| places.fill(word));
        let program = words.next().context("there is no command")?;
        let program = find_program(&program).with_context(|| format!("{program} is not installed"))?;
        Ok(Command::new(program).args(words).output()?)
    }

    fn all_trials(
        &self,
        servers: &[Running],
        results: &mut Results,
        tell: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<()> {
        let setting = PutBack::congestion()?;
        let mut turns = Turns::new(self, servers.len());
        for congestion in &self.under(&setting, results) {
            if *congestion != congestion::current() {
                setting.set(congestion)?;
            }
            for (case, round) in
                self.cases.iter().flat_map(|case| self.rounds().map(move |round| (case, round)))
            {
                for at in turns.order() {
                    if self.stop.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    let server = &servers[at];
                    tell(&turns.progress([&case.name, congestion, &server.contender.name], round));
                    let settle = turns.settle_seconds(&self.settings);
                    results.trials.push(self.trial(server, case, (congestion, round), settle));
                    turns.done += 1;
                    turns.longer_left = turns.longer_left.saturating_sub(case.longer());
                }
            }
        }
        Ok(())
    }

    /// Returns the requested congestion controls that can be set, or the machine's own if none can. Sets
    /// each to test it.
    fn under(&self, setting: &PutBack, results: &mut Results) -> Vec<String> {
        let mut under = self.settings.congestion.clone();
        under.retain(|congestion| {
            let set = setting.set(congestion);
            if let Err(error) = &set {
                results.left_out.push(format!("{}: {error}", cannot_set(congestion)));
            }
            set.is_ok()
        });
        if under.is_empty() { vec![results.machine.congestion.clone()] } else { under }
    }

    fn rounds(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.settings.rounds
    }

    fn trial(
        &self,
        server: &Running,
        case: &Case,
        (congestion, round): (&str, u32),
        settle_seconds: f64,
    ) -> Trial {
        let (measured, fault) = match self.scene().measure(server, case, settle_seconds) {
            Ok(measured) => (Some(measured), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let (case, congestion) = (case.name.clone(), congestion.to_owned());
        Trial { case, congestion, contender: server.contender.name.clone(), round, measured, fault }
    }

    fn count_calls(&self, servers: &[Running], folder: &Path, results: &mut Results) {
        let asked = if self.settings.syscalls { &self.cases[..] } else { &[] };
        for (case, server) in asked.iter().flat_map(|case| servers.iter().map(move |server| (case, server))) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            match self.scene().count(server, case, folder) {
                Ok(calls) => results.calls.push(calls),
                Err(error) => results
                    .left_out
                    .push(format!("system calls of {} at {}: {error:#}", server.contender.name, case.name)),
            }
        }
    }

    fn scene(&self) -> Scene<'_> {
        Scene { settings: &self.settings, programs: &self.programs, stop: self.stop }
    }
}

/// The order of the contenders, and the progress of the run.
struct Turns {
    chance: Chance,
    order: Vec<usize>,
    done: usize,
    total: usize,
    /// Sum of [`Case::longer`] over the remaining trials.
    longer_left: usize,
    started: Instant,
}

impl Turns {
    fn new(bench: &Bench<'_>, servers: usize) -> Turns {
        let of_servers = |planned: usize| planned / bench.contenders.len().max(1) * servers;
        let (total, longer_left) = (of_servers(bench.trials()), of_servers(bench.longer()));
        let chance = Chance::new(bench.settings.seed);
        Turns { chance, order: (0..servers).collect(), done: 0, total, longer_left, started: Instant::now() }
    }

    /// Returns the order of a new round.
    fn order(&mut self) -> Vec<usize> {
        self.chance.shuffle(&mut self.order);
        self.order.clone()
    }

    /// Returns how long the next trial may wait for idle cores, in seconds.
    fn settle_seconds(&self, settings: &Settings) -> f64 {
        let left = settings.budget_seconds - self.started.elapsed().as_secs_f64();
        settings.settle_within(left, self.total.saturating_sub(self.done), self.longer_left)
    }

    fn progress<'a>(&self, next: [&'a str; 3], round: u32) -> Progress<'a> {
        let done = u32::try_from(self.done.max(1)).unwrap_or(u32::MAX);
        let left = u32::try_from(self.total.saturating_sub(self.done)).unwrap_or(u32::MAX);
        let left = self.started.elapsed() / done * left;
        let begins_round = self.done.is_multiple_of(self.order.len());
        Progress { done: self.done, total: self.total, next, round, begins_round, left }
    }
}

fn cannot_set(congestion: &str) -> String {
    let available = congestion::available().join(", ");
    format!("congestion control {congestion} (only root can set it; there are {available})")
}

fn first_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().next().unwrap_or_default().trim().to_owned()
}
