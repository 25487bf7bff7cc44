//! The conformance suite under the engine `process`.
//!
//! What can be forked is a process with one thread, and a test under cargo's harness is a thread of many. So
//! this program starts itself once more for each test. What must hold: a test runs before there is any
//! other thread.

#[allow(
    clippy::wildcard_imports,
    dead_code,
    unused_imports,
    reason = "a test that is not one of the suite is the harness' alone"
)]
#[path = "../behaviours/main.rs"]
mod behaviours;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use plimsoll_tests::forked::Alone;

/// Names the test that this process is for.
const TEST: &str = "PLIMSOLL_TEST_ALONE";

fn main() -> ExitCode {
    match std::env::var_os(TEST) {
        Some(name) => run(&name),
        None => {
            let trials = Alone::all().map(|(name, _)| {
                let test = name.clone();
                Trial::test(name, move || start(&test))
            });
            libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
        }
    }
}

fn run(wanted: &OsString) -> ExitCode {
    match Alone::all().find(|(name, _)| name.as_str() == wanted) {
        Some((_, test)) => {
            test();
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// Runs a test in a process of its own.
fn start(test: &str) -> Result<(), Failed> {
    let done = Command::new(std::env::current_exe()?).env(TEST, test).output()?;
    if done.status.success() {
        return Ok(());
    }
    let (out, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    Err(format!("{}\n{out}{errors}", done.status).into())
}
