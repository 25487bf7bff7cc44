//! The report of a run: tables, all trials as CSV and JSON, and plots.
//!
//! It measures nothing, and can be regenerated from the JSON. Invariant: no figure is in it that does not
//! follow from the trials.

mod cells;
mod csv;
mod figures;
mod markdown;
mod plots;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

pub use cells::{Cell, Ratio, Summary, cells};
pub use csv::csv;
pub use markdown::{markdown, summary};

use crate::bench::Results;

/// The file from which all others can be regenerated.
pub const RESULTS: &str = "results.json";

/// Writes all files into `folder`.
///
/// # Errors
/// The kernel's error.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let cells = cells(results);
    let keep = |name: &str, text: &str| fs::write(folder.join(name), text).with_context(|| name.to_owned());
    keep(RESULTS, &serde_json::to_string_pretty(results)?)?;
    keep("cells.json", &serde_json::to_string_pretty(&cells)?)?;
    keep("trials.csv", &csv(&results.trials))?;
    keep("report.md", &markdown(results, &cells))?;
    for (name, picture) in plots::all(results, &cells)? {
        keep(&name, &picture)?;
    }
    Ok(())
}

/// Describes the rounds: `5 rounds of 0.44 s, of 1.75 s at 10M-kept`.
fn rounds(results: &Results) -> String {
    let settings = &results.settings;
    let mut told = format!("{} rounds of {:.2} s", settings.rounds, settings.seconds);
    for case in &results.cases {
        let mut trials = results.trials.iter().filter(|trial| trial.case == case.name);
        let seconds = trials.find_map(|trial| Some(trial.measured.as_ref()?.seconds)).unwrap_or(0.0);
        if seconds > settings.seconds * 1.5 {
            let _ = write!(told, ", of {seconds:.2} s at {}", case.name);
        }
    }
    told
}

/// Reads the results of a run from `folder`.
///
/// # Errors
/// A missing or invalid file.
pub fn read(folder: &Path) -> Result<Results> {
    let file = folder.join(RESULTS);
    let text = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", file.display()))
}
