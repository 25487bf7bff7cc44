//! The machines of contenders behind a prefix, and the conditions that they cannot set.
//!
//! It starts no contender. Invariant: an agent that was started to be asked has ended afterwards. As at the
//! start of every agent, it undoes the conditions of one that was killed.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use crate::agent::{Agent, Request};
use crate::conditions::Obstacle;
use crate::experiment::Experiment;
use crate::experiment::contender::Contender;

/// The program on another machine, if the contender does not state its path.
const PROGRAM: &str = "plimsoll";

/// A machine behind a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteMachine {
    /// The names of the contenders that run there.
    pub contenders: Vec<String>,
    /// Its address, as the generator reaches it.
    pub host: String,
    /// The conditions that it cannot set.
    pub obstacles: Vec<Obstacle>,
    /// The reason why it could not be asked.
    pub error: Option<String>,
}

impl RemoteMachine {
    /// Returns how a reader knows the machine.
    pub fn text(&self) -> String {
        let names: Vec<String> = self.contenders.iter().map(|name| format!("{name:?}")).collect();
        format!("the machine of {} ({})", names.join(", "), self.host)
    }
}

/// Returns the path of plimsoll on another machine.
pub(super) fn remote_program(contender: &Contender) -> &str {
    contender.plimsoll.as_deref().unwrap_or(PROGRAM)
}

/// Returns the machine behind a prefix, which is not asked.
pub(super) fn machine_behind(experiment: &Experiment, prefix: &[String]) -> RemoteMachine {
    let own = experiment.contenders.iter().filter(|contender| contender.prefix == prefix);
    let host = own.clone().next().map_or_else(String::new, |contender| contender.host.clone());
    let contenders = own.map(|contender| contender.name.clone()).collect();
    RemoteMachine { contenders, host, obstacles: Vec::new(), error: None }
}

/// Starts an agent on each machine behind a prefix, and asks it which conditions it cannot set. `work` is the
/// folder of agents. Setting `stop` ends the wait for a machine.
///
/// # Errors
/// A value of a condition is wrong.
pub fn remote_machines(
    experiment: &Experiment,
    work: &Path,
    stop: &AtomicBool,
) -> Result<Vec<RemoteMachine>> {
    let mut asked: Vec<&[String]> = Vec::new();
    let mut machines = Vec::new();
    for contender in experiment.contenders.iter().filter(|contender| !contender.prefix.is_empty()) {
        let prefix = contender.prefix.as_slice();
        if asked.contains(&prefix) {
            continue;
        }
        asked.push(prefix);
        let conditions = experiment.conditions_of(|other| other.prefix == prefix)?;
        let mut machine = machine_behind(experiment, prefix);
        let obstacles = Agent::start(prefix, remote_program(contender), work, stop)
            .and_then(|mut agent| agent.call(&Request::Obstacles(conditions)));
        match obstacles {
            Ok(obstacles) => machine.obstacles = obstacles,
            Err(error) => machine.error = Some(format!("{error:#}")),
        }
        machines.push(machine);
    }
    Ok(machines)
}
