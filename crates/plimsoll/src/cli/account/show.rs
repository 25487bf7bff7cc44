//! `plimsoll account show`: shows an account, without its password.
//!
//! It changes nothing. Invariant: the folder that it prints is always the account's own.

use clap::Args;
use plimsoll_cli::output::{columns, files, print, print_json, size, time};

use super::directory_args::{DirectoryArgs, refused};
use super::output::{AccountJson, Counted, bounds, created, log_in, permissions};
use super::quarantine::home_of;

/// Show an account
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account show alice
  plimsoll account show alice --json

JSON: as of plimsoll account list, for this account")]
pub(crate) struct Show {
    /// The name of the account
    name: String,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let name = self.name;
        let (counted, data) = self.at.run(async move |at| {
            let account = at.auth.account(&at.io, &name).await.map_err(refused(&name))?;
            Ok((Counted::of(account, &at.config)?, at.config.fixed.data))
        })?;
        if self.json {
            return print_json(&AccountJson::from(&counted));
        }
        let account = &counted.account;
        let rows = [
            ("account", account.name.clone()),
            ("number", account.id.to_string()),
            ("log-in", log_in(account).to_owned()),
            ("may", permissions(account.permissions)),
            ("quota", bounds(account.quota)),
            ("usage", usage(&counted)),
            ("uploads", counted.uploads()),
            ("created", time(&created(account))),
            ("files", home_of(&data, &account.name).join("files").display().to_string()),
        ];
        print(columns(&rows.map(|(label, value)| vec![label.to_owned(), value]), &[]))
    }
}

fn usage(counted: &Counted) -> String {
    counted.stored.map_or_else(
        || "unknown: the files are at a storage server".to_owned(),
        |stored| format!("{}, {}", size(stored.usage.bytes), files(stored.usage.files)),
    )
}
