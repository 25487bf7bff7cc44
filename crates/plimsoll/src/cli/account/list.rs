//! `plimsoll account list`: lists all accounts.
//!
//! It changes nothing. Invariant: accounts are sorted by name.

use clap::Args;

use super::directory_args::{DirectoryArgs, unanswered};
use super::output::{Counted, print_all};

/// List all accounts
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account list
  plimsoll account list --data /srv/plimsoll --json

The columns bytes and files are the quota. Interrupted uploads count against it, too. Counting takes
as long as looking at all files; --no-usage leaves it out.
JSON: [{\"name\":\"alice\",\"enabled\":true,\"quota\":{...},\"permissions\":{...},\"created\":\"...\",
        \"usage\":{\"bytes\":...,\"files\":...,\"folders\":...},
        \"uploads\":{\"count\":1,\"bytes\":9000000}}]")]
pub(crate) struct List {
    #[command(flatten)]
    at: DirectoryArgs,
    /// Do not count what the accounts store
    #[arg(long)]
    no_usage: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let no_usage = self.no_usage;
        let accounts = self.at.run(async move |at| {
            let accounts = at.auth.accounts(&at.io).await.map_err(unanswered)?.into_iter();
            let count = |account| match no_usage {
                true => Ok(Counted { account, stored: None }),
                false => Counted::of(account, &at.config),
            };
            accounts.map(count).collect::<anyhow::Result<Vec<_>>>()
        })?;
        print_all(self.json, &accounts)
    }
}
