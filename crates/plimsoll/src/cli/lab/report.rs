//! `plimsoll lab report` and `plimsoll lab compare`: reports of results folders.
//!
//! Nothing is measured here. Invariant: a report is made from a results folder alone, so that it can be
//! made again.

use std::path::PathBuf;

use clap::Args;
use clap::builder::Resettable;
use plimsoll_cli::output::{print, print_json};
use plimsoll_lab::compare::compare;
use plimsoll_lab::report;
use plimsoll_lab::results::Results;

/// Make the report of a results folder again: report.html, report.md and trials.csv
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab report lab-results/saturation-http")]
pub(super) struct Report {
    /// The results folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Show in which figures two results folders of one experiment differ beyond noise
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab compare results/before results/after
  plimsoll lab compare results/before results/after --json")]
pub(super) struct Compare {
    /// The results folder of the earlier run
    #[arg(value_name = "DIR")]
    one: PathBuf,
    /// The results folder of the later run
    #[arg(value_name = "DIR")]
    other: PathBuf,
    /// Print JSON
    #[arg(long, help_heading = Resettable::Reset)]
    json: bool,
}

impl Report {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let results = Results::read(&self.folder)?;
        report::write(&self.folder, &results)?;
        print(report::summary(&results))
    }
}

impl Compare {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let comparison = compare(&Results::read(&self.one)?, &Results::read(&self.other)?);
        if self.json { print_json(&comparison) } else { print(comparison.text()) }
    }
}
