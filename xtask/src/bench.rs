//! The benchmark against installed peers: builds the server and the lab's program, and starts the
//! latter.
//!
//! It measures nothing and installs nothing. Invariant: the measured server must be a release build of
//! this tree, with its own features only.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::house;

/// The server's own build; the lab's build must not add features to it.
const SERVER: [&str; 5] = ["build", "--release", "--locked", "--package", "plimsoll"];
const LABORATORY: [&str; 9] =
    ["build", "--release", "--locked", "--package", "plimsoll-lab", "--features", "bench", "--bin", "bench"];

/// Builds and runs the benchmark; `arguments` are its own.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    for build in [&SERVER[..], &LABORATORY[..]] {
        ensure!(house::cargo().args(build).status()?.success(), "cargo could not build it");
    }
    let built = target().join("release");
    let mut bench = std::process::Command::new(built.join("bench"));
    bench.arg("--plimsoll").arg(built.join("plimsoll"));
    bench.arg("--contenders").arg(house::root().join("crates/lab/contenders"));
    // Replaces this process, so that the benchmark receives Ctrl-C and can restore the machine's
    // settings.
    Err(bench.args(arguments).exec().into())
}

/// Returns cargo's target folder.
fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    house::root().join(chosen)
}
