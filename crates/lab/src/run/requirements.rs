//! The programs and cores that contenders need of their machine, found out before anything is started.
//!
//! It runs no command of an experiment. Invariant: a contender that a run leaves out is reported as that, and
//! no other fault of it is.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::conditions::{find_program, missing_programs};
use crate::experiment::contender::Contender;
use crate::experiment::template::{Values, fill};
use crate::experiment::{Experiment, Trial, core_list};
use crate::results::Machine;

/// The programs and cores that a machine lacks for an experiment, in one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Reasons why trials would fail, each with a remedy.
    pub faults: Vec<String>,
    /// The contenders that a run leaves out, each with the reason and a remedy.
    pub left_out: Vec<String>,
    /// Facts that may be intended.
    pub notes: Vec<String>,
}

/// The programs and cores that the contenders of one machine need.
pub(super) struct Requirements {
    contenders: Vec<ContenderRequirements>,
}

/// A program, and the key whose command it is.
type Program = (String, &'static str);

/// The programs and cores that a contender needs.
struct ContenderRequirements {
    name: String,
    package: Option<String>,
    /// The programs without which a run leaves it out.
    admission: BTreeSet<Program>,
    /// The programs without which its trials fail.
    programs: BTreeSet<Program>,
    /// The values of `cores`.
    cores: BTreeSet<String>,
}

impl Requirements {
    /// Returns what the contenders behind a prefix need. `plimsoll` is the path of the program there.
    ///
    /// # Errors
    /// A value that is wrong at a point.
    pub(super) fn of(experiment: &Experiment, prefix: &[String], plimsoll: &str) -> Result<Requirements> {
        let mut contenders = Vec::new();
        for (at, contender) in experiment.contenders.iter().enumerate() {
            if contender.prefix == prefix {
                contenders.push(ContenderRequirements::of(experiment, at, plimsoll)?);
            }
        }
        Ok(Requirements { contenders })
    }

    /// Returns all programs, each once.
    pub(super) fn programs(&self) -> Vec<String> {
        let all = self.contenders.iter().flat_map(|one| one.admission.iter().chain(&one.programs));
        let distinct: BTreeSet<&String> = all.map(|(program, _)| program).collect();
        distinct.into_iter().cloned().collect()
    }

    /// Returns what a machine with so many cores and without the programs `missing` lacks.
    pub(super) fn findings(&self, missing: &[String], cores: usize, machine: &str) -> Findings {
        let mut findings = Findings::default();
        for contender in &self.contenders {
            let name = &contender.name;
            let lacks = |programs: &BTreeSet<Program>| {
                let mut lacking = programs.iter().filter(|(program, _)| missing.contains(program));
                lacking.next().map(|program| no_program(program, contender.package.as_deref(), machine))
            };
            if let Some(reason) = lacks(&contender.admission) {
                findings.left_out.push(format!("contender {name:?} is left out of a run: {reason}"));
                continue;
            }
            let lists = contender.cores.iter().filter_map(|list| no_cores(list, cores, machine));
            let faults = lacks(&contender.programs).into_iter().chain(lists);
            findings.faults.extend(faults.map(|reason| format!("contender {name:?}: {reason}")));
        }
        findings
    }
}

impl ContenderRequirements {
    fn of(experiment: &Experiment, at: usize, plimsoll: &str) -> Result<ContenderRequirements> {
        let contender = &experiment.contenders[at];
        let (mut admission, mut programs, mut cores) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for trial in first_trials(experiment, at) {
            let values = experiment.planned_values(&trial, &experiment.settings(&trial)?, plimsoll)?;
            for (key, command) in [("requires", &contender.requires), ("version", &contender.version)] {
                admission.extend(program(command, &values)?.map(|program| (program, key)));
            }
            let processes = contender.processes.iter().map(|process| ("command", &process.command));
            let before = contender.before.iter().map(|command| ("before", command));
            let after = contender.after.iter().map(|command| ("after", command));
            for (key, command) in processes.chain(before).chain(after) {
                programs.extend(program(command, &values)?.map(|program| (program, key)));
            }
            for list in contender.processes.iter().filter_map(|process| process.cores.as_ref()) {
                cores.insert(fill(&list.0, &values)?);
            }
        }
        let (name, package) = (contender.name.clone(), contender.package.clone());
        Ok(ContenderRequirements { name, package, admission, programs, cores })
    }
}

/// Finds out what this machine lacks: for the contenders without a prefix, for the generator and for load
/// tools. `plimsoll` is the path of the program.
///
/// # Errors
/// A value that is wrong at a point.
pub fn local_findings(experiment: &Experiment, plimsoll: &Path) -> Result<Findings> {
    let here = Requirements::of(experiment, &[], &plimsoll.display().to_string())?;
    let cores = Machine::this().cores;
    let mut findings = here.findings(&missing_programs(&here.programs()), cores, THIS_MACHINE);
    let mut lists = BTreeSet::new();
    for (at, contender) in experiment.contenders.iter().enumerate() {
        let start = format!("contender {:?} is left out", contender.name);
        if findings.left_out.iter().any(|line| line.starts_with(&start)) {
            continue;
        }
        for trial in first_trials(experiment, at) {
            let settings = experiment.settings(&trial)?;
            let values = experiment.planned_values(&trial, &settings, "plimsoll")?;
            if let Some(tool) = &contender.load_tool {
                add(&mut findings.faults, missing_tool(contender, &tool.command, &values)?);
            }
            let Some(own) = settings.load.cores() else { continue };
            lists.insert(own.to_owned());
            if contender.prefix.is_empty() {
                add(&mut findings.notes, shared(contender, own, &values)?);
            }
        }
    }
    let faults = lists.iter().filter_map(|list| no_cores(list, cores, THIS_MACHINE));
    findings.faults.extend(faults.map(|reason| format!("[load]: {reason}")));
    Ok(findings)
}

const THIS_MACHINE: &str = "this machine";

fn first_trials(experiment: &Experiment, contender: usize) -> impl Iterator<Item = Trial> {
    let trials = experiment.trials().into_iter();
    trials.filter(move |trial| trial.contender == contender && trial.repetition == 1)
}

/// Returns the program of a command, unless the contender makes it in a folder of the run.
fn program(command: &[String], values: &Values) -> Result<Option<String>> {
    let words = command.iter().map(|word| fill(word, values)).collect::<Result<Vec<_>>>()?;
    // A run drops empty words.
    Ok(words.into_iter().find(|word| !word.is_empty()).filter(|word| !word.contains('{')))
}

fn missing_tool(contender: &Contender, command: &[String], values: &Values) -> Result<Option<String>> {
    let missing = program(command, values)?.filter(|program| find_program(program).is_none());
    Ok(missing.map(|missing| {
        let reason = no_program(&(missing, "load_tool.command"), contender.package.as_deref(), THIS_MACHINE);
        format!("contender {:?}: {reason}", contender.name)
    }))
}

/// Returns a note if a contender and the generator use the same core.
fn shared(contender: &Contender, own: &str, values: &Values) -> Result<Option<String>> {
    let own = core_list(own)?;
    for list in contender.processes.iter().filter_map(|process| process.cores.as_ref()) {
        let cores = core_list(&fill(&list.0, values)?)?;
        if let Some(core) = cores.into_iter().find(|core| own.contains(core)) {
            let name = &contender.name;
            return Ok(Some(format!("contender {name:?} and the generator share core {core}")));
        }
    }
    Ok(None)
}

fn add(lines: &mut Vec<String>, line: Option<String>) {
    lines.extend(line.filter(|line| !lines.contains(line)));
}

fn no_program((program, key): &Program, package: Option<&str>, machine: &str) -> String {
    let remedy = match package {
        Some(package) => format!("install it, on Debian: apt-get install {package}"),
        None => "install it, or correct its name".to_owned(),
    };
    format!("`{key}`: {machine} has no program {program:?}: {remedy}")
}

/// Returns the fault of a list with a core that a machine with so many cores does not have.
fn no_cores(list: &str, cores: usize, machine: &str) -> Option<String> {
    // A wrong list is refused with the file.
    let missing = core_list(list).ok()?.into_iter().find(|core| *core >= cores)?;
    let known = if cores == 1 { "core 0".to_owned() } else { format!("cores 0-{}", cores.saturating_sub(1)) };
    Some(format!("`cores` is {list:?}, and {machine} has no core {missing}: select from {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(contender: &str, cores: usize) -> Experiment {
        let text = format!(
            "name = \"n\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n{contender}\n\
             [load]\ntime = \"1s\"\ncores = {cores}\n"
        );
        Experiment::parse(&text).unwrap()
    }

    fn found(contender: &str, cores: usize) -> Findings {
        local_findings(&experiment(contender, cores), Path::new("/bin/sh")).unwrap()
    }

    #[test]
    fn a_missing_program_is_a_fault_with_its_key_and_a_remedy() {
        for (contender, fault) in [
            ("command = [\"no-such-server\", \"{port}\"]", "`command`"),
            ("command = [\"sh\", \"{port}\"]\nbefore = [[\"sh\"], [\"no-such-server\"]]", "`before`"),
            ("command = [\"{plimsoll}\", \"{port}\"]\nafter = [[\"no-such-server\"]]", "`after`"),
            (
                "command = [\"sh\"]\n\
                 load_tool = { command = [\"no-such-server\"], bytes = \"/b\", seconds = \"/s\" }",
                "`load_tool.command`",
            ),
        ] {
            let line = format!(
                "contender \"a\": {fault}: this machine has no program \"no-such-server\": \
                 install it, or correct its name"
            );
            let expected = Findings { faults: vec![line], ..Findings::default() };
            assert_eq!(found(contender, 0), expected);
        }
        // The contender makes this one itself.
        assert_eq!(found("command = [\"{dir}/server\", \"{port}\"]", 0), Findings::default());
    }

    #[test]
    fn a_contender_that_a_run_leaves_out_is_reported_as_that_with_its_package() {
        let more = "command = [\"no-such-server\"]\npackage = \"such\"\ncores = 0\n";
        for key in ["requires", "version"] {
            let found = found(&format!("{more}{key} = [\"no-such-server\", \"--version\"]"), 0);
            let line = format!(
                "contender \"a\" is left out of a run: `{key}`: \
                 this machine has no program \"no-such-server\": \
                 install it, on Debian: apt-get install such"
            );
            assert_eq!(found, Findings { left_out: vec![line], ..Findings::default() });
        }
    }

    #[test]
    fn cores_that_a_machine_does_not_have_are_faults_and_shared_cores_are_noted() {
        let shared = found("command = [\"sh\"]\ncores = 0", 0);
        assert_eq!(shared.faults, [""; 0]);
        assert_eq!(shared.notes, ["contender \"a\" and the generator share core 0"]);
        let faults = found("command = [\"sh\"]\ncores = 1022", 1023).faults;
        let [of_contender, of_load] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(
            of_contender.starts_with("contender \"a\": `cores` is \"1022\", and this machine has no core")
        );
        assert!(of_load.starts_with("[load]: `cores` is \"1023\""), "{of_load}");
        let here =
            Requirements::of(&experiment("command = [\"sh\"]\ncores = \"0,3-4\"", 0), &[], "").unwrap();
        let faults = here.findings(&[], 4, "it").faults;
        assert_eq!(
            faults,
            ["contender \"a\": `cores` is \"0,3-4\", and it has no core 4: select from cores 0-3"]
        );
    }
}
