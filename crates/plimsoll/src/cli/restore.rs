//! `plimsoll restore`: the arguments and the output.
//!
//! [`crate::backup`] restores, not this module.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plimsoll_cli::output::{files, print, print_json, size};

use crate::backup::{Ends, Restored, restore};
use crate::cli::account::DirectoryArgs;
use crate::config::LogLevel;
use crate::exposure::warn_of_arguments;
use crate::operator_log::OperatorLog;

/// Restore a backup of plimsoll backup into a new or empty data folder
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll restore /backup/2026-11-27 --data /srv/plimsoll
  plimsoll restore /backup/2026-11-27 --data /srv/plimsoll --end-sessions --end-links
  sudo install -d -o plimsoll -m 700 /srv/plimsoll && \\
    sudo plimsoll restore /backup/2026-11-27 --data /srv/plimsoll

It compares every file with its digest, and writes over nothing. As root, it acts as the user that
owns the folder or the nearest folder above it, else as the user that owned the data. Log-ins and
public links that were ended after the backup are valid again, unless you give --end-sessions and
--end-links.
JSON: {\"data\":\"/srv/plimsoll\",\"backup_of\":\"2026-11-27T03:00:12Z\",\"files\":1204,...}")]
pub(crate) struct Restore {
    /// The folder of the backup
    folder: PathBuf,
    #[command(flatten)]
    at: DirectoryArgs,
    /// End all log-ins, so that one that was ended after the backup is not valid again
    #[arg(long)]
    end_sessions: bool,
    /// End all public links, so that one that was ended after the backup does not work again
    #[arg(long)]
    end_links: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = self.at.config()?;
        let log = OperatorLog::start(config.fixed.log_format, LogLevel(tracing::Level::WARN));
        let log = log.context("cannot start the log")?;
        warn_of_arguments();
        let ends = Ends { sessions: self.end_sessions, links: self.end_links };
        let restored = restore(&config, &self.folder, ends);
        log.finish();
        let restored = restored?;
        if self.json { print_json(&restored) } else { print(summary(&restored)) }
    }
}

fn summary(restored: &Restored) -> String {
    let Restored { data, backup_of, owner, directory, dump, database, ended_log_ins, ended_links, .. } =
        restored;
    let counts = format!("{}, {}", files(restored.files), size(restored.bytes));
    let mut summary = format!("Restored into {}\n  backup    of {backup_of}: {counts}\n", data.display());
    let mut line = |name: &str, text: String| summary.push_str(&format!("  {name:<9} {text}\n"));
    line("verified", "every file has the digest of the backup".to_owned());
    line("owner", owner.clone());
    if let Some(directory) = directory {
        line("accounts", format!("in {}", directory.display()));
    }
    if let Some(database) = database {
        line("accounts", format!("in {database}; every row was read back"));
    }
    if let Some(ended) = ended_log_ins {
        line("log-ins", format!("{ended} were ended"));
    }
    if let Some(ended) = ended_links {
        line("links", format!("{ended} were ended"));
    }
    if let Some(dump) = dump {
        line("next", format!("load the dump {} into its database, then start the server", dump.display()));
    }
    summary
}
