//! `plimsoll lab check`: mistakes of experiments, what machines lack for them, and what would run.
//!
//! It starts no contender. Invariant: the exit code is 0 only if no file has a mistake, and no machine is
//! known to lack anything for a contender that takes part.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use clap::builder::Resettable;
use plimsoll_cli::output::{print, print_json};
use plimsoll_lab::conditions::{Obstacle, distinct_obstacles};
use plimsoll_lab::experiment::Experiment;
use plimsoll_lab::run::{Findings, RemoteMachine, local_findings, remote_machines};

use super::{VariationFlags, WORK, check_work, checked};

/// Find mistakes and what machines lack, and show what would run
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab check my.toml
  plimsoll lab check saturation-http --json

It starts no contender. Contenders behind a prefix, such as ssh HOST, are on another machine: an agent
there is asked. A run leaves out a contender whose `requires` or `version` cannot be run; those are listed.

Exit code 2: a file has a mistake. 1: a machine cannot set a condition, lacks a program or a core, or
cannot be asked; the remedy is shown.")]
pub(super) struct Check {
    /// Experiment files, or names of `plimsoll lab list`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder for files that are served and for the servers' own data, as for lab run
    #[arg(long, value_name = "DIR", default_value = WORK)]
    work: PathBuf,
    #[command(flatten)]
    variation: VariationFlags,
    /// Print JSON, an object for each experiment
    #[arg(long, help_heading = Resettable::Reset)]
    json: bool,
}

/// The conditions, programs and cores that the machines lack for an experiment.
struct Lacking {
    obstacles: Vec<Obstacle>,
    findings: Findings,
    machines: Vec<RemoteMachine>,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        check_work(&self.work)?;
        let (mut all, mut missing, mut faults, mut silent) = (Vec::new(), 0, 0, 0);
        for file in &self.files {
            let experiment = checked(file, &self.variation.of(file)?)?;
            let lacking = self.lacking(&experiment)?;
            missing += lacking.obstacles().count();
            faults += lacking.findings().map(|one| one.faults.len()).sum::<usize>();
            silent += lacking.machines.iter().filter(|one| one.error.is_some()).count();
            if self.json {
                all.push(lacking.json(&experiment));
            } else {
                print(lacking.text(&experiment))?;
            }
        }
        if self.json {
            print_json(&all)?;
        }
        anyhow::ensure!(silent == 0, "machines that could not be asked: {silent}");
        anyhow::ensure!(missing == 0, "conditions that cannot be set: {missing}");
        anyhow::ensure!(faults == 0, "faults with which trials would fail: {faults}");
        Ok(())
    }

    fn lacking(&self, experiment: &Experiment) -> anyhow::Result<Lacking> {
        let program = std::env::current_exe().context("cannot find the path of plimsoll")?;
        let conditions = experiment.conditions_of(|contender| contender.prefix.is_empty())?;
        let obstacles = distinct_obstacles(&conditions, &self.work);
        let machines = remote_machines(experiment, &self.work, &AtomicBool::new(false))?;
        let mut findings = local_findings(experiment, &program)?;
        let left_out = machines.iter().map(|machine| &machine.findings).chain([&findings]);
        if left_out.map(|one| one.left_out.len()).sum::<usize>() == experiment.contenders.len() {
            findings.faults.push("no contender is left for a run".to_owned());
        }
        Ok(Lacking { obstacles, findings, machines })
    }
}

impl Lacking {
    fn obstacles(&self) -> impl Iterator<Item = &Obstacle> {
        self.obstacles.iter().chain(self.machines.iter().flat_map(|machine| &machine.obstacles))
    }

    fn findings(&self) -> impl Iterator<Item = &Findings> {
        [&self.findings].into_iter().chain(self.machines.iter().map(|machine| &machine.findings))
    }

    fn is_nothing(&self) -> bool {
        self.obstacles().next().is_none()
            && self.findings().all(|one| one.faults.is_empty())
            && self.machines.iter().all(|machine| machine.error.is_none())
    }

    fn json(&self, experiment: &Experiment) -> serde_json::Value {
        serde_json::json!({
            "name": experiment.name, "about": experiment.about, "trials": experiment.trials().len(),
            "contenders": experiment.contenders.len(), "outline": experiment.outline(),
            "obstacles": self.obstacles, "faults": self.findings.faults, "left_out": self.findings.left_out,
            "notes": self.findings.notes, "machines": self.machines,
        })
    }

    fn text(&self, experiment: &Experiment) -> String {
        let (trials, contenders) = (experiment.trials().len(), experiment.contenders.len());
        let verdict = if self.is_nothing() { "; no mistakes" } else { "" };
        let head = format!("{}: {trials} trials of {contenders} contenders{verdict}", experiment.name);
        let lines = self.lines();
        let gap = if lines.is_empty() { "" } else { "\n" };
        format!("{head}\n\n{}{gap}{lines}", experiment.outline_table())
    }

    /// Returns a line for each condition that a machine cannot set, for each finding, and for each machine
    /// that could not be asked.
    fn lines(&self) -> String {
        let mut lines = String::new();
        for obstacle in &self.obstacles {
            lines += &format!("  this machine cannot set the condition {obstacle}\n");
        }
        for machine in &self.machines {
            let name = machine.text();
            for obstacle in &machine.obstacles {
                lines += &format!("  {name} cannot set the condition {obstacle}\n");
            }
            if let Some(error) = &machine.error {
                lines += &format!("  {name} cannot be asked: {error}\n");
            }
        }
        for findings in self.findings() {
            for line in findings.faults.iter().chain(&findings.left_out) {
                lines += &format!("  {line}\n");
            }
            for note in &findings.notes {
                lines += &format!("  note: {note}\n");
            }
        }
        lines
    }
}
