//! `plimsoll directory restore`: stores the rows of a dump in a directory.
//!
//! Invariants: a file that is not a whole dump changes nothing; standard input, which is read once, may
//! leave the directory closed. Rows that are there are removed only on order. The directory is closed to
//! servers until the rows were read back and found equal.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plimsoll_auth::directory::{Opening, Summary, file_of, without_password};
use plimsoll_cli::output::{print, print_json};
use serde_json::json;

use super::{Replacing, counts, json_of, lines};
use crate::access::as_owner;
use crate::cli::account::DirectoryArgs;
use crate::config::Config;
use crate::directory_rows::{Dump, fill, open, open_dump, read_dump, refuse_running_server};
use crate::locked_folder::make_data_folder;
use crate::tiers::directory_url;

/// Store the accounts, sessions and shares of a dump in an empty directory
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll directory restore accounts.dump
  plimsoll directory restore accounts.dump --directory postgres://plimsoll@db/plimsoll
  zstd -dc accounts.dump.zst | plimsoll directory restore - --replace --yes

Stop the servers first. The store may be another kind than that of the dump. A file that is not a
whole dump changes nothing. From standard input (-), that is noticed at its end only, and the
directory stays closed. A server refuses the directory until all rows are stored, read back and found
equal. Log-ins that were ended after the dump are valid again.
JSON: {\"directory\":\"sqlite:...\",\"accounts\":12,\"sessions\":31,\"shares\":4,\"networks\":9,
       \"digest\":\"...\"}")]
pub(crate) struct Restore {
    /// The dump; - is standard input
    file: PathBuf,
    #[command(flatten)]
    at: DirectoryArgs,
    #[command(flatten)]
    replacing: Replacing,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = self.at.config()?;
        let url = without_password(&config.fixed.directory);
        // Opened by the caller, who need not be the owner of the data.
        let dump = self.open().with_context(|| self.failure())?;
        let rows = as_owner(&config, || self.restore(&config, dump))?;
        if self.json {
            return print_json(&json_of(&rows, &[("directory", json!(url))]));
        }
        let verified = "every row was read back".to_owned();
        print(lines(&format!("Restored into {url}"), &[("rows", counts(&rows)), ("verified", verified)]))
    }

    fn failure(&self) -> String {
        format!("cannot restore {}", self.file.display())
    }

    fn open(&self) -> anyhow::Result<Dump> {
        if self.file.as_os_str() == "-" {
            return read_dump(std::io::stdin());
        }
        open_dump(&self.file)
    }

    fn restore(&self, config: &Config, mut dump: Dump) -> anyhow::Result<Summary> {
        let url = &config.fixed.directory;
        refuse_running_server(url)?;
        if config.fixed.has_directory_in_data() && !file_of(url).is_some_and(|file| file.exists()) {
            make_data_folder(&config.fixed.data)?;
        }
        let mut directory = open(&directory_url(&config.fixed)?, Opening::Transfer)?;
        let agree = |there: &Summary| self.replacing.agree(url, there);
        let rows = fill(&mut *directory, agree, |each| dump.read_rows(each).map(drop));
        let rows = rows.with_context(|| self.failure())?;
        directory.close("")?;
        Ok(rows)
    }
}
