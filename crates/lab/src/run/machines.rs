//! The machines of contenders behind a prefix, and what they lack: conditions, programs and cores.
//!
//! It starts no contender. Invariant: an agent that was started to be asked has ended afterwards. As at the
//! start of every agent, it undoes the conditions of one that was killed.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::requirements::{Findings, Requirements};
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
    /// The programs and cores that it lacks.
    #[serde(flatten)]
    pub findings: Findings,
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
    RemoteMachine { contenders, host, obstacles: Vec::new(), findings: Findings::default(), error: None }
}

/// Starts an agent on each machine behind a prefix, and asks it what the machine lacks. `work` is the folder
/// of agents. Setting `stop` ends the wait for a machine.
///
/// # Errors
/// A value is wrong at a point.
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
        let program = remote_program(contender);
        let requirements = Requirements::of(experiment, prefix, program)?;
        let name = machine.text();
        let ask = || -> Result<(Vec<Obstacle>, Findings)> {
            let mut agent = Agent::start(prefix, program, work, stop)?;
            let missing: Vec<String> = agent.call(&Request::MissingPrograms(requirements.programs()))?;
            let findings = requirements.findings(&missing, agent.greeting.machine.cores, &name);
            Ok((agent.call(&Request::Obstacles(conditions))?, findings))
        };
        match ask() {
            Ok((obstacles, findings)) => (machine.obstacles, machine.findings) = (obstacles, findings),
            Err(error) => machine.error = Some(format!("{error:#}")),
        }
        machines.push(machine);
    }
    Ok(machines)
}
