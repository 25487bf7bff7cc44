//! The workspace: its folder, its files, its packages.
//!
//! The only module that calls git or `cargo metadata`. It returns their output and never judges it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The feature with which behaviours run under engines that a run on each commit leaves out, too.
pub(crate) const EVERY_ENGINE: &str = "plimsoll-tests/every-engine";

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), PathBuf::from)
}

/// Returns the folder that `tests/tools/install` fills.
pub(crate) fn test_tools() -> PathBuf {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = || path("XDG_CACHE_HOME").unwrap_or_else(|| path("HOME").unwrap_or_default().join(".cache"));
    path("PLIMSOLL_TEST_TOOLS").unwrap_or_else(|| cache().join("plimsoll-test-tools"))
}

/// Returns a command for the `cargo` that started this task, in the folder of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start `{name}`; is it installed?"))?;
    ensure!(output.status.success(), "`{name}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns every file that git tracks or would track, with its path from the root. Binary files are left
/// out.
pub(crate) fn files() -> Result<Vec<(String, String)>> {
    let mut git = Command::new("git");
    // The checkout on a build machine often has another owner than the account that runs this.
    git.args(["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root());
    let listed = output(&mut git)?;
    let mut paths: Vec<&str> = listed.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths.into_iter().filter_map(read).collect())
}

fn read(path: &str) -> Option<(String, String)> {
    Some((path.to_owned(), std::fs::read_to_string(root().join(path)).ok()?))
}

/// Returns cargo's metadata of the workspace's packages, without dependencies.
pub(crate) fn own_packages() -> Result<Value> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns cargo's metadata of every package in this machine's build, including dependencies.
pub(crate) fn all_packages() -> Result<Value> {
    let host = host()?;
    let filter = ["metadata", "--format-version", "1", "--filter-platform", &host];
    Ok(serde_json::from_str(&output(cargo().args(filter))?)?)
}

/// Returns the target triple of this machine, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host() -> Result<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}
