//! `plimsoll lab`: the arguments and the output.
//!
//! It measures nothing itself (the laboratory does). Invariants: the exit code is 0 if the command did all
//! of its work. It is 1 if a trial failed or the run was ended early, and 2 if the command line or an
//! experiment file is wrong.

mod agent;
mod check;
mod list;
mod model;
mod report;
mod run;

use std::path::Path;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command, Subcommand};
use plimsoll_cli::WrongUsage;
use plimsoll_lab::experiment::load::setting_of_flag;
use plimsoll_lab::experiment::{Experiment, FileMistake};
use plimsoll_lab::run::Variation;
use plimsoll_wire::nearest::nearest;

use super::load::{Load, check_arguments};

/// The default folder for files and servers' data: on a disk, which /tmp may not be.
const WORK: &str = "/var/tmp";

/// Run experiments: put load on file servers, and find where they saturate
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  plimsoll lab list                                    the experiments and contenders that come with plimsoll
  plimsoll lab check my.toml                           find mistakes, and show what would run
  plimsoll lab run my.toml --out results               run it; the same again resumes
  plimsoll lab run saturation-http --quick             every kind of trial once, for a fraction of a second
  plimsoll lab compare results/before results/after    what differs beyond noise")]
pub(crate) struct Lab {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    List(list::List),
    Check(check::Check),
    Run(run::RunExperiments),
    Report(report::Report),
    Compare(report::Compare),
    Model(model::Model),
    #[command(hide = true)]
    Agent(agent::AgentServer),
}

/// Flags that vary an experiment.
#[derive(Args)]
struct VariationFlags {
    /// Contenders that take part [default: all]
    #[arg(long, value_name = "NAME,...")]
    only: Vec<String>,
    /// Points that take part, by the values of a variable
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = pair)]
    at: Vec<(String, String)>,
    /// Another value of a key: of load, order, conditions, sweep, open loop or contenders
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl VariationFlags {
    /// Returns the varied text of an experiment.
    fn of(&self, file: &Path) -> anyhow::Result<String> {
        let text = text_of(file)?;
        let variation = Variation { only: self.only.clone(), at: self.at.clone(), set: self.set.clone() };
        variation.of(&text).map_err(|error| mistake(file, &error))
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = pair.ok_or_else(|| format!("write KEY=VALUE, not {text:?}"))?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.order {
            Order::List(list) => list.run(),
            Order::Check(check) => check.run(),
            Order::Run(run) => run.run(),
            Order::Report(report) => report.run(),
            Order::Compare(compare) => compare.run(),
            Order::Model(model) => model.run(),
            Order::Agent(agent) => agent.run(),
        }
    }
}

/// Refuses arguments that the generator does not know, and names the values of a setting that has a few.
fn check_load(arguments: &[String]) -> anyhow::Result<()> {
    let command = Load::augment_args(Command::new("load").no_binary_name(true));
    let Err(error) = command.try_get_matches_from(arguments) else { return check_arguments(arguments) };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue)
        && let Some(value) = text(ContextKind::InvalidValue)
        && let Some(flag) = text(ContextKind::InvalidArg).and_then(|arg| arg.split(' ').next())
    {
        let setting = setting_of_flag(flag).unwrap_or(flag);
        anyhow::bail!("`{setting}` is {value:?}: write one of {}", valid.join(", "));
    }
    check_arguments(arguments)
}

/// Refuses a work folder that a run could not use: it creates the folder, but not those above it.
fn check_work(work: &Path) -> anyhow::Result<()> {
    let shown = work.display();
    let above = work.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(
        work.is_dir() || (!work.exists() && above.is_dir()),
        WrongUsage(format!("--work {shown}: there is no such folder; create it: mkdir -p {shown}"))
    );
    Ok(())
}

/// Returns the text of an experiment: of a file, or of one that comes with the program.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let built_in = file.to_str().and_then(list::built_in);
    if let (Some(text), false) = (built_in, file.exists()) {
        return Ok(text.to_owned());
    }
    let name = file.to_str().filter(|_| !file.exists()).unwrap_or_default();
    if let Some(near) = nearest(name, list::EXPERIMENTS.map(|(name, _)| name)) {
        anyhow::bail!("there is no file and no experiment {name:?}; did you mean {near:?}?");
    }
    std::fs::read_to_string(file).with_context(|| {
        let list = "`plimsoll lab list` shows the experiments that come with plimsoll";
        format!("cannot read {}; {list}", file.display())
    })
}

/// Parses an experiment and checks all that can be checked before anything is started.
fn checked(file: &Path, text: &str) -> anyhow::Result<Experiment> {
    let check = || -> anyhow::Result<Experiment> {
        let experiment = Experiment::parse(text)?;
        plimsoll_lab::run::check(&experiment, &check_load)?;
        Ok(experiment)
    };
    check().map_err(|error| mistake(file, &error))
}

/// Returns the error for a mistake of a file: `FILE, line N: …`.
fn mistake(file: &Path, error: &anyhow::Error) -> anyhow::Error {
    let gap = match error.downcast_ref::<FileMistake>() {
        Some(FileMistake { line: Some(_), .. }) => ", ",
        _ => ": ",
    };
    WrongUsage(format!("{}{gap}{error:#}", file.display())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"n\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n\
                        [load]\ntime = \"1s\"\n";

    #[test]
    fn a_value_that_the_generator_does_not_have_is_refused_with_those_that_it_has() {
        let refused = checked(Path::new("f"), &format!("{TEXT}pick = \"foo\"\n")).unwrap_err().to_string();
        assert!(refused.ends_with("`pick` is \"foo\": write one of same, each, random"), "{refused}");
    }

    #[test]
    fn a_mistake_of_a_file_has_the_file_and_the_line() {
        let refused = checked(Path::new("f.toml"), &format!("{TEXT}[order]\ngaps = 1\n")).unwrap_err();
        let expected = "f.toml, line 8: there is no key \"gaps\"; did you mean \"gap\"?";
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn the_name_of_an_experiment_that_is_mistyped_has_a_suggestion() {
        let refused = text_of(Path::new("saturation-htp")).unwrap_err().to_string();
        assert!(refused.ends_with("did you mean \"saturation-http\"?"), "{refused}");
    }
}
