//! Passes the commit and the features of this build to the program, for `plimsoll --version`.
//!
//! It generates no code. Invariant: it runs again only when the commit or the features change. A source
//! tree without git has no commit, unless `PLIMSOLL_COMMIT` names one.

use std::path::Path;
use std::process::Command;

/// The variable with the commit, where git cannot be asked: in a chroot, or in an unpacked archive.
const COMMIT: &str = "PLIMSOLL_COMMIT";
/// The features that the version names, by cargo's variable for each.
const FEATURES: [(&str, &str); 3] = [
    ("CARGO_FEATURE_MYSQL", "mysql"),
    ("CARGO_FEATURE_POSTGRES", "postgres"),
    ("CARGO_FEATURE_REDIS", "redis"),
];

#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs\ncargo::rerun-if-env-changed={COMMIT}");
    // Git appends to this file at each commit, checkout and rebase.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    // The name begins differently from those of settings: `cargo run` passes it on to the program.
    println!("cargo::rustc-env=BUILD_VERSION={}", version());
}

/// Returns the version with the commit and the features.
fn version() -> String {
    let number = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let given = std::env::var(COMMIT).ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    let built_in = FEATURES.iter().filter(|(variable, _)| std::env::var_os(variable).is_some());
    let features: Vec<&str> = built_in.map(|(_, name)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    format!("{number} (commit {commit}, features: {features})")
}

/// Returns the output of git, if this folder belongs to a repository.
fn git(arguments: &[&str]) -> Option<String> {
    // The checkout often has another owner than the account that builds it.
    let output = Command::new("git").args(["-c", "safe.directory=*"]).args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned()).filter(|printed| !printed.is_empty())
}
