//! The results of an experiment, and the folder that holds them.
//!
//! A folder has `experiment.toml` (the experiment as it ran), `run.json` ([`Run`]) and `trials.jsonl` (a
//! [`FinishedTrial`] for each finished trial, one a line). Reports are made from these alone. Invariants: a
//! trial is in the folder completely or not at all, also after a kill; a measured trial is never changed.

mod figures;
mod folder;
mod profiles;
pub mod synthetic;

use serde::{Deserialize, Serialize};

use crate::experiment::open_loop::OpenLoop;
use crate::experiment::template::Values;

pub use figures::{
    DiskUse, Generator, Latency, LinkUse, LittlesLaw, LoadFigures, MachineUse, Pressure, ProcessUse, Starts,
    UserFigures, Window,
};
pub(crate) use folder::replace;
pub use folder::{Results, ResultsFolder};
pub use profiles::{FinishedProfile, ProcessProfile, ProfileResult};

/// What is known of a run besides its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of plimsoll that ran it.
    pub plimsoll: String,
    /// The time of its first start (RFC 3339).
    pub begun: String,
    /// The machine of the generator.
    pub machine: Machine,
    /// The contenders that take part, in the order of the experiment.
    pub contenders: Vec<Entrant>,
    /// The maximum throughputs from which the rates of open-loop trials were computed.
    #[serde(default)]
    pub maxima: Vec<Maximum>,
    /// Deviations from the experiment, each a sentence: contenders that were left out, budgets that made
    /// file sets smaller.
    pub notes: Vec<String>,
}

/// A contender that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrant {
    /// Its name.
    pub name: String,
    /// Its distinguishing feature.
    pub about: String,
    /// The version that it reports.
    pub version: String,
    /// Whether the others are compared with it.
    pub reference: bool,
    /// Its machine, if it is another than the generator's.
    pub machine: Option<Machine>,
}

/// The maximum throughput of a contender's closed loops in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maximum {
    /// The name of the contender.
    pub contender: String,
    /// The values of its variables, without the number of users.
    pub case: Values,
    /// The maximum throughput.
    pub requests_per_second: f64,
}

/// The properties of a machine that affect figures; an unreadable one is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU model.
    pub cpu: String,
    /// The number of cores.
    pub cores: usize,
    /// The memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The congestion control of TCP.
    pub congestion: String,
    /// The MTU of loopback in bytes.
    pub loopback_mtu: String,
    /// The maximum length of a listener's accept queue.
    pub somaxconn: String,
    /// The range of the ephemeral ports.
    pub ports: String,
}

/// A finished trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedTrial {
    /// The name of the contender.
    pub contender: String,
    /// The values of the variables that concern it.
    pub point: Values,
    /// Its rate if it is an open loop at a share of the maximum throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The time of its start (RFC 3339).
    pub begun: String,
    /// The whole time that it took in seconds, preparations included.
    pub seconds: f64,
    /// How it ended.
    pub result: TrialResult,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialResult {
    /// With figures.
    Measured(Box<Measured>),
    /// Without figures, for this reason.
    Failed(String),
}

/// The figures of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figures of the generator.
    pub load: LoadFigures,
    /// The use of each process of the contender in the measured time.
    pub processes: Vec<ProcessUse>,
    /// The use of the contender's machine in the measured time; `None` if it could not be sampled.
    pub machine: Option<MachineUse>,
    /// Signs of a distorted measurement, each a sentence.
    pub marks: Vec<String>,
}

/// The mark of a trial before which the cores of the contender's machine did not become idle.
pub const BEGAN_BUSY: &str = "the machine was not idle at the start";

impl Measured {
    /// Returns whether other work used the machine when the trial began.
    pub fn began_busy(&self) -> bool {
        self.marks.iter().any(|mark| mark == BEGAN_BUSY)
    }
}

impl FinishedTrial {
    /// Returns the figures, if there are some.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.result {
            TrialResult::Measured(measured) => Some(measured),
            TrialResult::Failed(_) => None,
        }
    }
}
