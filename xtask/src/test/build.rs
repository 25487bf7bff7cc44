//! Builds everything that the tests need in one call of cargo, and lists the programs that contain tests.
//!
//! The binary under test is built here too: the tests get its path in an environment variable, so that none
//! of them calls cargo, which could wait for another cargo's lock.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::house;

/// The environment variable with the path of the binary under test.
const BINARY: &str = "PLIMSOLL_TEST_BINARY";

/// A program that contains tests, built by libtest or with its command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    /// The name of its cargo target, such as `behaviours` or `plimsoll_io`.
    pub(super) name: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

/// The result of the build.
pub(super) struct Built {
    pub(super) programs: Vec<Program>,
    binary: PathBuf,
}

/// Builds all tests and the binary. A long run uses a profile of its own, which is a few times faster: in a
/// debug build, its many seeds would take most of a day.
pub(super) fn build(is_long: bool) -> Result<Built> {
    let mut cargo = house::cargo();
    cargo.args(["build", "--workspace", "--tests", "--bin", "plimsoll"]);
    cargo.args(["--message-format", "json-render-diagnostics"]).args(profile(is_long));
    let output = cargo.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests cannot be built");
    let messages: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let programs = messages.iter().filter_map(program).collect();
    let binary = messages.iter().find_map(binary).context("cargo did not name the binary")?;
    Ok(Built { programs, binary })
}

/// Returns cargo's arguments for a long run or another.
fn profile(is_long: bool) -> &'static [&'static str] {
    if is_long { &["--profile", "long", "--features", house::EVERY_ENGINE] } else { &[] }
}

fn program(message: &Value) -> Option<Program> {
    let (path, target) = (message["executable"].as_str()?, &message["target"]);
    let is_test = message["profile"]["test"].as_bool()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let name = target["name"].as_str()?.replace('-', "_");
    is_test.then(|| Program { name, path: path.into(), folder: folder.to_owned() })
}

fn binary(message: &Value) -> Option<PathBuf> {
    let is_it = message["target"]["name"] == "plimsoll" && message["profile"]["test"] == false;
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}

impl Built {
    /// Returns the command that runs a program with these arguments.
    pub(super) fn command(&self, program: &Program, arguments: &[String], is_idle: bool) -> Command {
        let mut command = idle(&program.path, is_idle);
        command.args(arguments).current_dir(&program.folder);
        // Cargo sets the same.
        command.env("CARGO_MANIFEST_DIR", &program.folder);
        command.env(BINARY, &self.binary);
        command
    }
}

/// Returns the command that runs the examples in the documentation.
pub(super) fn documentation(is_long: bool) -> Command {
    let mut cargo = house::cargo();
    cargo.args(["test", "--doc", "--workspace", "--no-fail-fast"]).args(profile(is_long));
    cargo
}

/// Returns whether this machine can run a program on idle cores only.
pub(super) fn can_be_idle() -> bool {
    Command::new("chrt").arg("--version").output().is_ok_and(|done| done.status.success())
}

/// Returns a program as a command. If it is idle, the kernel runs it only on cores that nothing else needs.
pub(super) fn idle(program: &Path, is_idle: bool) -> Command {
    if !is_idle {
        return Command::new(program);
    }
    let mut command = Command::new("chrt");
    command.args(["--idle", "0"]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(name: &str, is_test: bool, executable: Option<&str>) -> Value {
        json!({
            "reason": "compiler-artifact", "manifest_path": "/w/crates/io/Cargo.toml",
            "executable": executable, "target": { "name": name }, "profile": { "test": is_test },
        })
    }

    #[test]
    fn test_programs_and_the_binary_are_distinguished() {
        let messages = [
            artifact("plimsoll-io", true, Some("/t/plimsoll_io-1")),
            artifact("plimsoll-io", false, None),
            artifact("plimsoll", true, Some("/t/plimsoll-2")),
            artifact("plimsoll", false, Some("/t/plimsoll")),
            json!({ "reason": "build-finished", "success": true }),
        ];
        let names: Vec<_> = messages.iter().filter_map(program).map(|program| program.name).collect();
        assert_eq!(names, ["plimsoll_io", "plimsoll"]);
        let found: Vec<_> = messages.iter().filter_map(binary).collect();
        assert_eq!(found, [Path::new("/t/plimsoll")]);
    }
}
