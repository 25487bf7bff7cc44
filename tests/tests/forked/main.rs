//! The conformance suite under the engine `process`.
//!
//! Only a process with one thread can be forked, but cargo's harness runs each test on one of many threads.
//! So this program starts itself once more for each test. A test must run before any other thread exists.

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

/// The environment variable with the name of the test to run.
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

/// Runs a test in a separate process.
fn start(test: &str) -> Result<(), Failed> {
    let done = Command::new(std::env::current_exe()?).env(TEST, test).output()?;
    if done.status.success() {
        return Ok(());
    }
    let (out, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    Err(format!("{}\n{out}{errors}", done.status).into())
}
