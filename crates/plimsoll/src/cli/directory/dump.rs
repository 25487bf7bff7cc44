//! `plimsoll directory dump`: writes all rows of a directory to a file that any store can be restored from.
//!
//! Files of accounts are not in it. Invariants: only the user can read the file. A failed dump leaves no
//! file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_auth::directory::Summary;
use plimsoll_cli::WrongUsage;
use plimsoll_cli::output::{print, print_json};
use serde_json::json;

use super::{counts, json_of, lines};
use crate::access::as_owner;
use crate::cli::account::DirectoryArgs;
use crate::directory_rows::{create_dump, dump, dump_to_file, open_current};
use crate::tiers::directory_url;

/// Write all accounts, sessions and shares to a file
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll directory dump accounts.dump
  plimsoll directory dump accounts.dump --config /etc/plimsoll/plimsoll.toml
  plimsoll directory dump - | zstd > accounts.dump.zst

The dump can be restored into any store: plimsoll directory restore. It is of one moment, also while
servers run. In Redis, the rows of each account are, and a last line says so if servers made
changes meanwhile. Tables of another version are refused. Keep the file secret, because it lets a reader guess
passwords offline; only you can read it.
JSON: {\"file\":\"accounts.dump\",\"accounts\":12,\"sessions\":31,\"shares\":4,\"networks\":9,
       \"digest\":\"...\",\"one_moment\":true}")]
pub(crate) struct Dump {
    /// The file, which must not exist; - is standard output
    file: PathBuf,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Dump {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = self.at.config()?;
        let is_printed = self.file.as_os_str() == "-";
        if is_printed && self.json {
            return Err(WrongUsage("--json needs a file for the dump".to_owned()).into());
        }
        // Created by the caller, who need not be the owner of the data.
        let file = if is_printed { None } else { Some(create_dump(&self.file)?) };
        let dumped = as_owner(&config, || {
            let mut directory = open_current(&directory_url(&config.fixed)?)?;
            let rows = match file {
                Some(file) => dump_to_file(&mut *directory, file)?,
                None => dump(&mut *directory, BufWriter::new(std::io::stdout()))?.1,
            };
            Ok((rows, directory.is_of_one_moment()))
        });
        let (rows, one_moment) = dumped.inspect_err(|_| {
            // An incomplete dump is removed.
            let _ = if is_printed { Ok(()) } else { std::fs::remove_file(&self.file) };
        })?;
        match (is_printed, self.json) {
            (true, _) => Ok(()),
            (false, true) => {
                print_json(&json_of(&rows, &[("file", json!(self.file)), ("one_moment", json!(one_moment))]))
            }
            (false, false) => print(text(&self.file, &rows, one_moment)),
        }
    }
}

fn text(file: &Path, rows: &Summary, one_moment: bool) -> String {
    let mut facts = vec![("rows", counts(rows))];
    if !one_moment {
        facts.push((
            "moment",
            "the rows of each account are of one moment; servers made changes meanwhile".to_owned(),
        ));
    }
    lines(&format!("Dumped to {}", file.display()), &facts)
}
