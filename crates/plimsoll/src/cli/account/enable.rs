//! `plimsoll account enable`: lets an account log in again.
//!
//! It restores no session. Invariant: the account has its former password and shares.

use clap::Args;

use super::directory_args::{DirectoryArgs, refused};
use super::output::print_done;

/// Let an account log in again
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account enable alice
  plimsoll account enable alice --json

JSON: as of plimsoll account add")]
pub(crate) struct Enable {
    /// The name of the account
    name: String,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Enable {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let name = self.name;
        let account = self
            .at
            .run(async move |at| at.auth.set_enabled(&at.io, &name, true).await.map_err(refused(&name)))?;
        let text = format!("{} can log in again, with the password that it had.", account.name);
        print_done(self.json, &account, &text)
    }
}
