//! `plimsoll account list`: lists all accounts.
//!
//! It changes nothing, and counts no files. Invariant: accounts are sorted by name.

use clap::Args;

use super::directory_args::{DirectoryArgs, unanswered};
use super::output::print_all;

/// List all accounts
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account list
  plimsoll account list --data /srv/plimsoll --json

JSON: [{\"name\":\"alice\",\"enabled\":true,\"quota\":{...},\"permissions\":{...},\"created\":\"...\"}]")]
pub(crate) struct List {
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let accounts = self.at.run(async |at| at.auth.accounts(&at.io).await.map_err(unanswered))?;
        print_all(self.json, &accounts)
    }
}
