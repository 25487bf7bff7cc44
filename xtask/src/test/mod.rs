//! Builds every test of the workspace, runs them side by side and counts the results.
//!
//! This is stricter than cargo: an ignored test is a failure, so is a run without tests, and so is a
//! behaviour that one engine has and another has not. A test that is skipped because this machine lacks
//! something fails too, unless `PLIMSOLL_ALLOW_SKIPS` names that. The last line is always
//! `N passed, M failed`, with `, K skipped` after it if there are any, which the build machine reads. Each
//! complaint counts as a failure there, so that a run that is not clean never reports `0 failed`. The
//! failures are repeated before it, because a build machine may keep only the end.

mod build;
mod conformance;
mod plan;
mod reading;
mod running;
mod verdict;

use std::fmt::Write as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use reading::Reading;

/// Seeds that the simulator tries in a long run; by default the tests have a smaller number. With this
/// many a run takes an hour on two idle cores; four times as many took too long.
const LONG_SEEDS: &str = "2500";

/// Lines of a failed test's output that are repeated.
const WORDS_TOLD_AGAIN: usize = 6;
/// Characters of each repeated line.
const LINE_TOLD_AGAIN: usize = 200;

#[derive(Debug, Default, PartialEq)]
struct Options {
    is_long: bool,
    /// Whether `cargo xtask check` runs on idle cores meanwhile.
    has_check: bool,
}

/// Runs the tests, then prints the results.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let built = build::build(options.is_long)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = plan::plan(&built, options.is_long, cores);
    let seeds = options.is_long.then_some(LONG_SEEDS);
    let results = running::run(&built, &plan, seeds, options.has_check.then(check).transpose()?);
    let engines = conformance::Table::of(&results.reading.blocks, options.is_long);
    print!("{engines}");
    let complaints = verdict::complaints(&results.reading, &engines, &results.errors);
    print!("{}", failures(&results.reading));
    for skipped in &results.reading.skipped {
        println!("skipped: {skipped}");
    }
    for complaint in &complaints {
        println!("complaint: {complaint}");
    }
    let mut totals = results.reading.totals();
    totals.failed += complaints.len();
    println!("{totals}");
    // Not an error, because its message would follow the last line.
    Ok(if totals.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the command that checks everything besides the tests.
fn check() -> Result<Command> {
    let own = std::env::current_exe().context("a task knows its own path")?;
    let mut command = build::idle(&own, build::can_be_idle());
    command.arg("check");
    Ok(command)
}

/// Returns the failed tests, each with the first lines of its output.
fn failures(reading: &Reading) -> String {
    let mut text = String::new();
    for block in &reading.blocks {
        for (name, words) in block.failed() {
            let _ = writeln!(text, "failed: {name} of {}", block.binary);
            for line in words.iter().filter(|line| !line.is_empty()).take(WORDS_TOLD_AGAIN) {
                let _ = writeln!(text, "  {line:.LINE_TOLD_AGAIN$}");
            }
        }
    }
    text
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    for argument in arguments {
        match argument.as_str() {
            "--long" => options.is_long = true,
            "--check" => options.has_check = true,
            unknown => bail!("there is no option `{unknown}`; usage: cargo xtask test [--long] [--check]"),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_or_refused() {
        let parsed =
            |arguments: &[&str]| parse(&arguments.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert_eq!(parsed(&[]).unwrap(), Options::default());
        assert_eq!(parsed(&["--check", "--long"]).unwrap(), Options { is_long: true, has_check: true });
        assert!(parsed(&["--fast"]).is_err());
    }

    #[test]
    fn a_failure_is_repeated_with_the_first_lines_of_its_output() {
        let mut reading = Reading::default();
        let output = "running 1 test\nfailures:\n---- a stdout ----\n"
            .lines()
            .chain(["words"; 99])
            .chain(["failures:"]);
        output.for_each(|line| reading.line(line));
        reading.name_blocks("behaviours");
        assert_eq!(failures(&reading), format!("failed: a of behaviours\n{}", "  words\n".repeat(6)));
    }
}
