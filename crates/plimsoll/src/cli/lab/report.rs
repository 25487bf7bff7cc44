//! `plimsoll lab report` and `plimsoll lab compare`: reports of results folders.
//!
//! Nothing is measured here. Invariant: a report is made from a results folder alone, so that it can be
//! made again.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use clap::builder::Resettable;
use plimsoll_cli::output::{print, print_json};
use plimsoll_lab::compare::compare;
use plimsoll_lab::report;
use plimsoll_lab::results::Results;
use plimsoll_lab::transfer_log;
use plimsoll_lab::transfer_log::limits::DISCARDED;

/// Make the report of a results folder again, or document 001's tables from a transfer log
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab report lab-results/saturation-http
  plimsoll lab report --from-log transfers.jsonl --discarded 5

The first writes report.html, report.md and trials.csv into the folder. The second reads plimsoll's transfer
log or an xferlog whose file names are SIZE.TYPE.REPETITION.CONNECTIONS.NUMBER, such as 1MB.same.3.24.1.")]
pub(super) struct Report {
    /// The results folder
    #[arg(value_name = "DIR", required_unless_present = "from_log", conflicts_with = "from_log")]
    folder: Option<PathBuf>,
    /// A transfer log, of plimsoll or in xferlog's format
    #[arg(long, value_name = "FILE")]
    from_log: Option<PathBuf>,
    /// How many repetitions, from the first, the tables of a log leave out
    #[arg(long, value_name = "COUNT", default_value_t = DISCARDED, requires = "from_log")]
    discarded: u32,
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
        if let Some(path) = &self.from_log {
            let reading = || format!("cannot read {}", path.display());
            let file = BufReader::new(File::open(path).with_context(reading)?);
            let log = transfer_log::read(file).with_context(reading)?;
            log.check().with_context(|| format!("{}", path.display()))?;
            return print(transfer_log::tables(&log, self.discarded).text());
        }
        let folder = self.folder.as_deref().unwrap_or(Path::new("."));
        let results = Results::read(folder)?;
        report::write(folder, &results)?;
        print(report::summary(&results))
    }
}

impl Compare {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let comparison = compare(&Results::read(&self.one)?, &Results::read(&self.other)?);
        if self.json { print_json(&comparison) } else { print(comparison.text()) }
    }
}
