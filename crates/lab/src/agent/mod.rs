//! The agent: the part of the laboratory on the machine of a contender.
//!
//! `plimsoll lab run` starts `plimsoll lab agent`, on this machine or behind a prefix such as `ssh HOST`,
//! and sends it requests over its standard input, a JSON object on each line; each has one response on its
//! standard output. The agent makes files, starts processes, samples them and sets conditions. It decides
//! nothing about an experiment. Invariants: at the end of its input, however the laboratory ended, the
//! agent ends every process that it started, removes its files and puts back its settings; requests are
//! handled one after another.

mod client;
mod files;
mod limits;
mod probe;
mod processes;
mod server;
mod workspace;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::experiment::conditions::{Cache, Settings};
use crate::results::{Machine, MachineUse, ProcessUse};

pub use client::Agent;
pub use probe::clock;
pub use server::serve;

/// A request to the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Creates the agent's folder below `work`, and describes the machine.
    Hello {
        /// The folder in which the agent's own is created.
        work: PathBuf,
    },
    /// Returns the machine's clock.
    Clock,
    /// Runs a command to its end.
    Run(Command),
    /// Returns as many free TCP ports.
    Ports(usize),
    /// Creates a new folder for a contender's start, and removes that of its last one.
    Folder {
        /// The name of the contender.
        name: String,
    },
    /// Makes the files of a set, unless they are there.
    MakeFiles(FileSet),
    /// Removes the files of a set.
    RemoveFiles(FileSet),
    /// Returns the conditions of the list that the machine cannot set.
    Obstacles(Vec<Settings>),
    /// Returns the programs of the list that are not installed.
    MissingPrograms(Vec<String>),
    /// Sets the conditions, if others hold, but not that of the page cache. Contenders that run under
    /// others are ended.
    SetConditions(Box<Settings>),
    /// Prepares the page cache for a trial with the files of a set. Files that are to be dropped at an
    /// interval are dropped until the probe ends.
    PrepareCache(Cache, FileSet),
    /// Starts the processes of a contender, in their order.
    Start {
        /// The name of the contender.
        name: String,
        /// Its processes.
        processes: Vec<Process>,
    },
    /// Ends the processes of a contender.
    Stop {
        /// The name of the contender.
        name: String,
    },
    /// Waits until all cores are idle, for so many seconds at most.
    Settle(f64),
    /// Starts to sample a contender and the machine.
    StartProbe {
        /// The name of the contender.
        name: String,
    },
    /// Ends the sampling, and returns the use of resources between two times of the machine's clock.
    EndProbe {
        /// The start of the measured time.
        from: f64,
        /// Its end.
        to: f64,
    },
}

/// The files of a set in a folder below the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// The folder.
    pub folder: String,
    /// The name of a file; `{}` stands for its number.
    pub pattern: String,
    /// Bytes of each file.
    pub bytes: u64,
    /// The number of files.
    pub count: u64,
    /// The seed of their contents.
    pub seed: u64,
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Additions to the environment.
    pub environment: BTreeMap<String, String>,
    /// The cores that it may use; empty for all.
    pub cores: Vec<usize>,
    /// The seconds after which it is ended.
    pub seconds_max: f64,
    /// Its standard input.
    #[serde(default)]
    pub input: String,
}

/// A process of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The name in the experiment.
    pub name: String,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Additions to the environment.
    pub environment: BTreeMap<String, String>,
    /// The file that gets its configuration, and the configuration.
    pub config: (PathBuf, String),
    /// The cores that it may use; empty for all.
    pub cores: Vec<usize>,
    /// The addresses (`HOST:PORT`) that must accept connections before the next process starts.
    pub ready: Vec<String>,
}

/// The agent's description of itself and of its machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of plimsoll.
    pub version: String,
    /// The machine.
    pub machine: Machine,
}

/// Where contenders run under the conditions that hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The folder that they serve.
    pub root: PathBuf,
    /// The address at which they listen, if there is a link; otherwise the contender's own.
    pub address: Option<IpAddr>,
    /// Whether the conditions are new: all contenders were ended.
    pub is_new: bool,
}

/// The folders of a start of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folders {
    /// The folder of its configuration and of the output of its processes. Only the agent's user may write
    /// to it.
    pub control: PathBuf,
    /// The folder of its own data. Only the agent's user may write to it.
    pub data: PathBuf,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// The use of resources during a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// By the processes of the contender.
    pub processes: Vec<ProcessUse>,
    /// By the machine.
    pub machine: Option<MachineUse>,
    /// How often the files were dropped from the page cache, if they were to be.
    pub drops: Option<u64>,
}

/// A response of the agent: the value, or the reason why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Response {
    Value(serde_json::Value),
    Error(String),
}
