//! Writes the reports of modelled systems into folders, to look at them in a browser.
//!
//! It measures nothing. Usage: `cargo run -p plimsoll-lab --example synthetic_report -- FOLDER`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plimsoll_lab::report;
use plimsoll_lab::results::synthetic::{ModelledProcess, SyntheticPlan, System};
use plimsoll_lab::results::{Results, TrialResult};

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).context("name a folder")?;
    let process =
        |name: &str, demand: f64| ModelledProcess { name: name.to_owned(), demand, cores: None, threads: 1 };
    let tiered = System {
        name: "plimsoll-tiered".to_owned(),
        processes: vec![process("front", 0.000_06), process("auth", 0.000_02), process("store", 0.000_09)],
        disk: 0.000_04,
        lock: 0.0,
        delay: 0.0004,
    };
    let systems = [
        System::simple("nginx-stock", 0.000_08, 0.0003),
        tiered,
        System::simple("a-long-name-of-a-contender", 0.000_12, 0.0005),
    ];
    let plan = SyntheticPlan {
        users: vec![1, 2, 4, 8, 16, 32, 64, 128, 256],
        think_ms: 1,
        noise: 0.02,
        drift: 0.05,
        has_reference: true,
        ..SyntheticPlan::default()
    };
    let mut curves = plan.results(&systems)?;
    disturb(&mut curves);
    write(&folder.join("curves"), &curves)?;
    let point = SyntheticPlan { users: vec![32], ..plan };
    write(&folder.join("point"), &point.results(&systems)?)?;
    let single = SyntheticPlan { users: vec![1, 2, 4, 8], has_reference: false, ..point };
    write(&folder.join("single"), &single.results(&systems[1..2])?)
}

/// Adds failures and marks.
fn disturb(results: &mut Results) {
    let trials = results.trials.iter_mut();
    for trial in trials.filter(|trial| trial.contender.starts_with('a') && trial.point["users"] == "128") {
        if trial.repetition == 2 {
            trial.result = TrialResult::Failed("the contender ended with exit status 1".to_owned());
        } else if let TrialResult::Measured(measured) = &mut trial.result {
            measured.marks.push("the cores were busy before the trial".to_owned());
        }
    }
}

fn write(folder: &Path, results: &Results) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    report::write(folder, results)?;
    std::fs::write(folder.join("summary.txt"), report::summary(results))?;
    Ok(())
}
