//! Runs every test of the workspace by cargo, passes the output through and counts the results.
//!
//! This is stricter than cargo: an ignored test is a failure, so is a run without tests, and so is a
//! behaviour that one engine has and another has not. The last line is always `N passed, M failed`,
//! which the build machine reads. Each complaint counts as a failure there, so that a run that is not
//! clean never reports `0 failed`. The failures are repeated before it, because a build machine may keep
//! only the end.

mod conformance;
mod reading;
mod verdict;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::house;
use reading::Reading;

/// Seeds that the simulator tries in a long run; by default the tests have a smaller number. With this
/// many a run takes an hour on two idle cores; four times as many took too long.
const LONG_SEEDS: &str = "2500";

/// The feature that runs the behaviours also under the engines that a run on each commit leaves out.
const EVERY_ENGINE: &str = "plimsoll-tests/every-engine";

/// Lines of a failed test's output that are repeated.
const WORDS_TOLD_AGAIN: usize = 6;
/// Characters of each repeated line.
const LINE_TOLD_AGAIN: usize = 200;

struct Options<'a> {
    is_long: bool,
    /// Passed to `cargo test`. With any, only a part of the tests runs, so the engines are not compared.
    extra: &'a [String],
}

/// Runs the tests, then prints the results.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let (reading, status) = watch(&options)?;
    let engines = conformance::Table::of(&reading.blocks, options.is_long);
    print!("{engines}");
    let is_whole = options.extra.is_empty();
    let complaints = verdict::complaints(&reading, &engines, is_whole, status.success());
    print!("{}", failures(&reading));
    for complaint in &complaints {
        println!("complaint: {complaint}");
    }
    let failed = reading.totals().failed + complaints.len();
    println!("{} passed, {failed} failed", reading.totals().passed);
    // Not an error, because its message would follow the last line.
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the failed tests, each with the first lines of its output.
fn failures(reading: &Reading) -> String {
    let mut told = String::new();
    for block in &reading.blocks {
        for (name, words) in block.failed() {
            let _ = writeln!(told, "failed: {name} of {}", block.binary);
            for line in words.iter().filter(|line| !line.is_empty()).take(WORDS_TOLD_AGAIN) {
                let _ = writeln!(told, "  {line:.LINE_TOLD_AGAIN$}");
            }
        }
    }
    told
}

fn parse(arguments: &[String]) -> Result<Options<'_>> {
    let (own, extra) = match arguments.iter().position(|argument| argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, Default::default()),
    };
    if let Some(unknown) = own.iter().find(|argument| *argument != "--long") {
        bail!("there is no option `{unknown}`; usage: cargo xtask test [--long] [-- EXTRA]");
    }
    Ok(Options { is_long: !own.is_empty(), extra })
}

/// Runs cargo and reads both its outputs concurrently.
fn watch(options: &Options<'_>) -> Result<(Reading, ExitStatus)> {
    let mut command = house::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if options.is_long {
        // The shipped build, and a few times faster: in a debug build, this many seeds take most of a
        // day.
        command
            .arg("--release")
            .args(["--features", EVERY_ENGINE])
            .env("PLIMSOLL_LONG", "1")
            .env("PLIMSOLL_SEEDS", LONG_SEEDS);
    }
    command.args(options.extra);
    let mut child = command.spawn().context("cannot start cargo")?;
    let stderr = child.stderr.take().context("cargo has no standard error")?;
    let stdout = child.stdout.take().context("cargo has no standard output")?;
    let names = thread::spawn(move || binaries(stderr));
    let mut reading = Reading::default();
    each_line(stdout, |line| {
        println!("{line}");
        reading.line(line);
    });
    reading.name_blocks(&names.join().unwrap_or_default());
    Ok((reading, child.wait()?))
}

/// Passes standard error through, and collects the test binaries that cargo announces there.
fn binaries(stderr: impl Read) -> Vec<String> {
    let mut names = Vec::new();
    each_line(stderr, |line| {
        eprintln!("{line}");
        names.extend(reading::announced(line));
    });
    names
}

fn each_line(source: impl Read, mut act: impl FnMut(&str)) {
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    // A test may print bytes that are not UTF-8; they must not end the run.
    while source.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        act(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_dashes_is_cargos() {
        let arguments = ["--long", "--", "--test", "behaviours"].map(str::to_owned);
        let options = parse(&arguments).unwrap();
        assert!(options.is_long);
        assert_eq!(options.extra, ["--test", "behaviours"]);
        assert!(parse(&["--fast".to_owned()]).is_err());
    }

    #[test]
    fn what_failed_is_told_again_with_the_first_of_its_words() {
        let mut reading = Reading::default();
        let output = "running 1 test\nfailures:\n---- a stdout ----\n"
            .lines()
            .chain(["words"; 99])
            .chain(["failures:"]);
        output.for_each(|line| reading.line(line));
        reading.name_blocks(&["behaviours".to_owned()]);
        assert_eq!(failures(&reading), format!("failed: a of behaviours\n{}", "  words\n".repeat(6)));
    }

    #[test]
    fn a_line_that_is_no_text_does_not_end_the_reading() {
        let mut seen = 0;
        each_line(&b"a\n\xff\nb"[..], |_| seen += 1);
        assert_eq!(seen, 3);
    }
}
