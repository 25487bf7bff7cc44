//! `plimsoll account disable`: forbids an account to log in.
//!
//! It removes nothing. Invariant: afterwards its sessions have ended, and its shares are not valid.

use clap::Args;

use super::directory_args::{DirectoryArgs, refused};
use super::output::print_done;

/// Forbid an account to log in; its sessions end, and its shares become invalid
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account disable alice
  plimsoll account disable alice --json

JSON: as of plimsoll account add")]
pub(crate) struct Disable {
    /// The name of the account
    name: String,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Disable {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let name = self.name;
        let account = self
            .at
            .run(async move |at| at.auth.set_enabled(&at.io, &name, false).await.map_err(refused(&name)))?;
        let text = format!(
            "{} cannot log in any more. Its sessions have ended, and its shares do not hold.",
            account.name
        );
        print_done(self.json, &account, &text)
    }
}
