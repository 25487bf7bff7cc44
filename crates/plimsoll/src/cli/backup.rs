//! `plimsoll backup`: the arguments and the output.
//!
//! [`crate::backup`] takes the backup, not this module.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plimsoll_cli::output::{print, print_json};

use crate::backup::{Taken, take};
use crate::cli::account::DirectoryArgs;
use crate::config::LogLevel;
use crate::exposure::warn_of_arguments;
use crate::operator_log::OperatorLog;

/// Copy a server's data folder and its accounts, also while the server runs
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll backup /backup/2026-11-27 --data /srv/plimsoll
  plimsoll backup /backup/2026-11-27 --config /etc/plimsoll/plimsoll.toml
  plimsoll backup /backup/2026-11-27 --dump 'pg_dump plimsoll' --config /etc/plimsoll/plimsoll.toml

It takes the folders of plimsoll serve, auth and store. Each file is read back from the disk. A
backup that was interrupted is refused by plimsoll restore. As root, it reads as the user that owns
the data. Keep the backup as private as the data: it has the hashes of all passwords.
JSON: {\"backup\":\"/backup/2026-11-27\",\"files\":1204,\"bytes\":1340000,\"one_moment\":true,...}")]
pub(crate) struct Backup {
    /// The folder of the backup, which is new or empty
    folder: PathBuf,
    #[command(flatten)]
    at: DirectoryArgs,
    /// For accounts on a database server: a command whose output is a dump of it, in place of our own
    #[arg(long, value_name = "COMMAND")]
    dump: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = self.at.config()?;
        let log = OperatorLog::start(config.fixed.log_format, LogLevel(tracing::Level::WARN));
        let log = log.context("cannot start the log")?;
        warn_of_arguments();
        let taken = take(&config, &self.folder, self.dump.as_deref());
        log.finish();
        let taken = taken?;
        if self.json { print_json(&taken) } else { print(self.summary(&taken)) }
    }

    fn summary(&self, taken: &Taken) -> String {
        let mut summary = format!("Backed up to {}\n", self.folder.display());
        for (name, line) in taken.lines() {
            summary.push_str(&format!("  {name:<9} {line}\n"));
        }
        summary
    }
}
