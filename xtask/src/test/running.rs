//! Runs the parts of a plan side by side, and reads their output.
//!
//! The output of each part is printed in one piece when the part ends, because lines of several programs
//! make no sense between each other. Standard error passes through: tests write to it only what is urgent.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::build::{self, Built};
use super::plan::{Part, Plan};
use super::reading::{self, Reading};

/// The results of all parts that have ended.
#[derive(Default)]
pub(super) struct Results {
    pub(super) reading: Reading,
    /// Errors besides failed tests, one line each.
    pub(super) errors: Vec<String>,
}

/// Runs everything to its end, and `beside` on idle cores. With `seeds`, it is a long run with that many.
pub(super) fn run(built: &Built, plan: &Plan, seeds: Option<&str>, beside: Option<Command>) -> Results {
    let results = Mutex::<Results>::default();
    let is_idle = build::can_be_idle();
    let each = |parts: &[Part], is_idle| {
        for part in parts {
            let mut command = built.command(&part.program, &part.arguments, is_idle);
            if let Some(seeds) = seeds {
                command.env("PLIMSOLL_LONG", "1").env("PLIMSOLL_SEEDS", seeds);
            }
            note(&results, &format!("{} ({})", part.program.name, part.name), &part.program.name, command);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            // First, because it calls cargo, and another cargo in the same folder would have it wait.
            note(&results, "documentation", "", build::documentation(seeds.is_some()));
            if let Some(command) = beside {
                scope.spawn(|| note_status(&results, command));
            }
            each(&plan.computing, is_idle);
        });
        thread::scope(|scope| {
            for parts in &plan.waiting {
                scope.spawn(|| each(parts, false));
            }
        });
        each(&plan.alone, false);
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one program with tests, prints its output and adds it to the results. `name` is its program's, or
/// empty if cargo names several.
fn note(results: &Mutex<Results>, title: &str, name: &str, command: Command) {
    let start = Instant::now();
    let read = read(command);
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    match read {
        Ok(Run { mut reading, output, is_success }) => {
            reading.name_blocks(name);
            let totals = reading.totals();
            // The terminal may be gone; the results count all the same.
            let _ = std::io::stdout().lock().write_all(&output);
            println!("xtask: {title}: {totals} in {:.1} s\n", start.elapsed().as_secs_f64());
            if !is_success && totals.failed == 0 {
                results
                    .errors
                    .push(format!("`{title}` failed, though no test of it did; its output is above"));
            }
            results.reading.add(reading);
        }
        Err(error) => results.errors.push(format!("`{title}` cannot be run: {error:#}")),
    }
}

/// Runs a command that is no test, and prints its output.
fn note_status(results: &Mutex<Results>, mut command: Command) {
    let output = command.stdin(Stdio::null()).output();
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    match output {
        Ok(output) => {
            let _ = std::io::stderr().lock().write_all(&output.stderr);
            let _ = std::io::stdout().lock().write_all(&output.stdout);
            if !output.status.success() {
                results.errors.push("the check failed; its output is above".to_owned());
            }
        }
        Err(error) => results.errors.push(format!("the check cannot be run: {error}")),
    }
}

struct Run {
    reading: Reading,
    output: Vec<u8>,
    is_success: bool,
}

/// Runs a command, and reads both its outputs.
fn read(mut command: Command) -> Result<Run> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let stderr = child.stderr.take().context("no standard error")?;
    let stdout = child.stdout.take().context("no standard output")?;
    let errors = thread::spawn(move || {
        let mut reading = Reading::default();
        each_line(stderr, |line| {
            eprintln!("{line}");
            reading.error_line(line);
        });
        reading
    });
    let (mut reading, mut output) = (Reading::default(), Vec::new());
    each_line(stdout, |line| {
        reading.line(line);
        output.extend_from_slice(line.as_bytes());
        output.push(b'\n');
        if reading::is_failure(line) {
            println!("{line}");
        }
    });
    let is_success = child.wait()?.success();
    reading.add_errors(errors.join().unwrap_or_default());
    Ok(Run { reading, output, is_success })
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
    fn a_line_that_is_no_text_does_not_end_the_reading() {
        let mut seen = 0;
        each_line(&b"a\n\xff\nb"[..], |_| seen += 1);
        assert_eq!(seen, 3);
    }

    #[test]
    fn both_outputs_of_a_program_are_read() {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "echo 'running 1 test'; echo 'test a ... ok'; echo 'skipped: a: uring: none' >&2; exit 3",
        ]);
        let Run { reading, output, is_success } = read(shell).unwrap();
        assert!(!is_success && output.starts_with(b"running 1 test\n"));
        assert_eq!(reading.blocks[0].tests[0].name, "a");
        assert_eq!(reading.skipped, ["a: uring: none"]);
    }
}
