//! `plimsoll account passwd`: sets a new password.
//!
//! It does not require the old one. Invariant: afterwards every session of the account has ended.

use clap::Args;
use plimsoll_auth::Secret;
use plimsoll_cli::{PasswordFrom, typed_for};

use super::directory_args::{DirectoryArgs, refused};
use super::output::print_done;

/// Set the password of an account; all its sessions end
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account passwd alice
  plimsoll account passwd alice --password-file ./password
  PLIMSOLL_NEW_PASSWORD=... plimsoll account passwd alice

Without a file, the new password is $PLIMSOLL_NEW_PASSWORD, else $PLIMSOLL_PASSWORD, else typed.
JSON: as of plimsoll account add")]
pub(crate) struct Passwd {
    /// The name of the account
    name: String,
    #[command(flatten)]
    password: PasswordFrom,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Passwd {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (given, name) = (self.password.given_new()?, self.name);
        let account = self.at.run(async move |at| {
            at.auth.account(&at.io, &name).await.map_err(refused(&name))?;
            let password = given.map_or_else(|| typed_for(&name), Ok)?;
            let password = Secret::from(password.as_str());
            at.auth.set_password(&at.io, &name, &password).await.map_err(refused(&name))?;
            at.auth.account(&at.io, &name).await.map_err(refused(&name))
        })?;
        let text = format!("The password of {} is set. All its sessions have ended.", account.name);
        print_done(self.json, &account, &text)
    }
}
