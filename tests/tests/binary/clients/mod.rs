//! Clients that nobody here wrote: Python's HTTP clients, a client of tus, and one that is made from the
//! description of the API and tries what that allows, and what it does not.
//!
//! `tests/tools/install` brings them. What must hold: what they report as wrong fails the test.

mod python;
mod schemathesis;
mod tus;

use std::path::PathBuf;
use std::process::Command;

use plimsoll_tests::binary::{skipped, tool};

/// The folder that `tests/tools/install` has filled.
fn tools() -> PathBuf {
    let given = std::env::var_os("PLIMSOLL_TEST_TOOLS").map(PathBuf::from);
    given.unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cache");
        cache.unwrap_or_else(home).join("plimsoll-test-tools")
    })
}

/// Whether the tools are there; they are not where no package index could be reached.
pub(crate) fn are_there(test: &str) -> bool {
    let there = tools().join("requirements.txt").is_file();
    if !there {
        skipped(test, "its client is not there: run tests/tools/install");
    }
    there
}

/// A program of the virtual environment.
pub(crate) fn from_python(program: &str) -> Command {
    tool(tools().join("python/bin").join(program).to_str().expect("text"))
}

/// A file beside these tests.
fn beside(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/binary/clients").join(name)
}

/// A script beside these tests.
fn script(name: &str) -> Command {
    let mut python = from_python("python");
    python.arg(beside(name));
    python
}
