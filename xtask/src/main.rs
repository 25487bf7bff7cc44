//! The project's own development tasks, in Rust: `cargo xtask help` lists them.
//!
//! Nothing here is part of the server, and the server never depends on it. A task is one file with one
//! `run`, which prints its findings. `main` prints its error; a task whose own output must come last
//! returns an exit code instead.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task prints its results to the terminal")]

mod check;
mod house;
mod leaks;
mod notices;
mod test;
mod tidy;

use std::process::ExitCode;

/// A task: its name on the command line, its summary, and its function.
struct Task {
    name: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> anyhow::Result<ExitCode>,
}

const TASKS: [Task; 7] = [
    Task {
        name: "check",
        summary: "format, house rules, lints, docs, licences",
        run: |_| done(check::run()),
    },
    Task { name: "lean", summary: "lints of builds without databases", run: |_| done(check::lean()) },
    Task { name: "tidy", summary: "[--update-allowed]  the house rules alone", run: tidy::run },
    Task {
        name: "test",
        summary: "[--long] [--check]  every test, and the count per engine; with the check on idle cores",
        run: test::run,
    },
    Task { name: "leaks", summary: "the conformance suite under LeakSanitizer", run: |_| done(leaks::run()) },
    Task {
        name: "notices",
        summary: "the licences of the libraries in the program, for the packages",
        run: |_| done(notices::run()),
    },
    Task { name: "help", summary: "this list", run: |_| done(help()) },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("help", String::as_str);
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("xtask: there is no task `{name}`; `cargo xtask help` lists them");
        return ExitCode::from(2);
    };
    match (task.run)(arguments.get(1..).unwrap_or_default()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn done(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}

fn help() -> anyhow::Result<()> {
    println!("cargo xtask TASK\n");
    for task in &TASKS {
        println!("  {:7} {}", task.name, task.summary);
    }
    Ok(())
}
