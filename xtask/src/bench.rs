//! The benchmark against installed peers: builds what is measured, and starts the laboratory's own program.
//!
//! It measures nothing and installs nothing. What must hold: what is measured is a release build of this
//! tree, and the lean one, without what drawing needs.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::house;

/// The server's own build; the laboratory's must not give it more features.
const SERVER: [&str; 5] = ["build", "--release", "--locked", "--package", "plimsoll"];
const LABORATORY: [&str; 9] =
    ["build", "--release", "--locked", "--package", "plimsoll-lab", "--features", "bench", "--bin", "bench"];

/// Builds and runs it; `arguments` are its own.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    for build in [&SERVER[..], &LABORATORY[..]] {
        ensure!(house::cargo().args(build).status()?.success(), "cargo could not build it");
    }
    let built = target().join("release");
    let mut bench = std::process::Command::new(built.join("bench"));
    bench.arg("--plimsoll").arg(built.join("plimsoll"));
    bench.arg("--contenders").arg(house::root().join("crates/lab/contenders"));
    // In place of this process: Ctrl-C is for whoever has something to put back.
    Err(bench.args(arguments).exec().into())
}

/// Where cargo builds.
fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    house::root().join(chosen)
}
