//! Third-party clients: Python's HTTP clients, a tus client, a WebSocket client, and one generated from the
//! API's description, which tests valid and invalid requests.
//!
//! `tests/tools/install` installs them. An error that they report must fail the test.

mod python;
mod schemathesis;
mod tus;
mod websocket;

use std::path::PathBuf;
use std::process::Command;

use plimsoll_tests::binary::tool;
use plimsoll_tests::skips::{Need, skip};

/// Returns the folder that `tests/tools/install` fills.
fn tools() -> PathBuf {
    let given = std::env::var_os("PLIMSOLL_TEST_TOOLS").map(PathBuf::from);
    given.unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cache");
        cache.unwrap_or_else(home).join("plimsoll-test-tools")
    })
}

/// Returns whether the tools are installed. If no package index was reachable, skips the test.
pub(crate) fn are_there() -> bool {
    let there = tools().join("requirements.txt").is_file();
    if !there {
        skip(Need::Clients, "its client is not there: run tests/tools/install");
    }
    there
}

/// Returns the folder with packages of npm. If they are not installed, skips the test.
pub(crate) fn node_modules() -> Option<PathBuf> {
    let there = tools().join("packages.sha512").is_file();
    if !there {
        skip(Need::Clients, "its packages of npm are not there: run tests/tools/install");
    }
    there.then(|| tools().join("node_modules"))
}

/// Returns a program of the virtual environment.
pub(crate) fn from_python(program: &str) -> Command {
    tool(tools().join("python/bin").join(program).to_str().expect("text"))
}

/// Returns the path of a file next to these tests.
fn beside(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/binary/clients").join(name)
}

/// Returns a script next to these tests as a command.
fn script(name: &str) -> Command {
    let mut python = from_python("python");
    python.arg(beside(name));
    python
}
