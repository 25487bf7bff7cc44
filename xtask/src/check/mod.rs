//! Everything that a change must satisfy besides its tests, in one run.
//!
//! Each step prints one line with its time. A failing step does not hide the next: all run, and the end
//! names those that failed. Duplicate versions are reported but never fail the check, because this
//! project does not choose them.

mod duplicates;
mod lean;
mod licences;
mod spdx;

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{house, tidy};

pub(crate) use lean::run as lean;

struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 7] = [
    Step { name: "format", run: format },
    Step { name: "tidy", run: tidy::check },
    Step { name: "lints", run: lints },
    Step { name: "docs", run: docs },
    Step { name: "scripts", run: scripts },
    Step { name: "licences", run: licences::run },
    Step { name: "duplicates", run: duplicates::run },
];

/// Runs every step; an error names those that failed.
pub(crate) fn run() -> Result<()> {
    let failed: Vec<&str> = STEPS.iter().filter(|step| !holds(step)).map(|step| step.name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    println!("check: all {} steps hold", STEPS.len());
    Ok(())
}

fn holds(step: &Step) -> bool {
    let started = Instant::now();
    let result = (step.run)();
    if let Err(error) = &result {
        eprintln!("{error:#}");
    }
    let verdict = if result.is_ok() { "ok" } else { "FAILED" };
    println!("check: {:10} {verdict:6} {:6.1} s", step.name, started.elapsed().as_secs_f64());
    result.is_ok()
}

fn format() -> Result<()> {
    succeed(house::cargo().args(["fmt", "--all", "--check"]), "run `cargo fmt --all`")
}

fn lints() -> Result<()> {
    // With the tests of a long run, so that a commit cannot break them.
    let selection = ["--workspace", "--all-targets", "--features", house::EVERY_ENGINE];
    let lint = ["--", "-D", "warnings"];
    succeed(house::cargo().args(["clippy", "--quiet"]).args(selection).args(lint), "clippy has findings")
}

fn docs() -> Result<()> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    succeed(house::cargo().args(arguments).env("RUSTDOCFLAGS", "-Dwarnings"), "rustdoc has findings")
}

/// Checks the types of the web page's scripts. The compiler is a tool of development: it makes nothing.
fn scripts() -> Result<()> {
    let compiler = house::test_tools().join("node_modules/typescript/bin/tsc");
    ensure!(
        compiler.is_file(),
        "TypeScript is missing: run `tests/tools/install packages.sha512`, which needs npm"
    );
    let arguments = ["--project", "crates/web/assets"];
    succeed(
        Command::new("node").current_dir(house::root()).arg(compiler).args(arguments),
        "the web page's scripts have findings",
    )
}

fn succeed(command: &mut Command, advice: &str) -> Result<()> {
    let status = command.status()?;
    ensure!(status.success(), "{advice}");
    Ok(())
}
