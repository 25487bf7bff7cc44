//! `plimsoll account add`: creates an account.
//!
//! It works even if sign-up is closed. Invariant: without a quota of its own, the account always gets the
//! server's quota for new accounts.

use anyhow::anyhow;
use clap::Args;
use plimsoll_auth::names::account_name;
use plimsoll_auth::{Error, Permissions, Quota, Secret};
use plimsoll_cli::{PasswordFrom, typed_for};

use super::directory_args::{DirectoryArgs, unanswered};
use super::output::print_done;
use crate::config::AtMost;

/// Add an account
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account add alice
  plimsoll account add alice --quota-bytes 10GiB --quota-files 100000
  plimsoll account add alice --password-file ./password --json

The data folder is created if it is missing.
JSON: {\"name\":\"alice\",\"enabled\":true,\"quota\":{\"bytes\":10737418240,\"files\":null},
       \"permissions\":{\"read\":true,\"write\":true,\"delete\":true,\"share\":true,
       \"operate\":false,\"parents\":false,
       \"administer\":false},\"created\":\"...\"}")]
pub(crate) struct Add {
    /// The name of the account
    name: String,
    /// Bytes that it may store, such as 10GiB, or none for no bound; default: by the configuration
    #[arg(long, value_name = "SIZE")]
    quota_bytes: Option<AtMost>,
    /// Files that it may store, or none for no bound; default: by the configuration
    #[arg(long, value_name = "COUNT")]
    quota_files: Option<AtMost>,
    #[command(flatten)]
    password: PasswordFrom,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Add {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        account_name(self.name.as_bytes())?;
        let given = self.password.given()?;
        let (name, bytes, files) = (self.name, self.quota_bytes, self.quota_files);
        let account = self.at.run_making(async move |at| {
            if at.auth.account(&at.io, &name).await.is_ok() {
                return Err(taken(&name));
            }
            let password = given.map_or_else(|| typed_for(&name), Ok)?;
            let password = Secret::from(password.as_str());
            let live = &at.config.live;
            let quota = Quota {
                bytes: bytes.unwrap_or(live.quota_bytes).0,
                files: files.unwrap_or(live.quota_files).0,
            };
            let added = at.auth.add(&at.io, &name, &password, quota, Permissions::default()).await;
            added.map_err(|error| match error {
                Error::NameTaken => taken(&name),
                other => unanswered(other),
            })
        })?;
        print_done(self.json, &account, &format!("{0} has an account: plimsoll login {0}", account.name))
    }
}

/// Returns the error for a name that is taken, with the next step.
pub(super) fn taken(name: &str) -> anyhow::Error {
    anyhow!(
        "There is an account {name:?} already. Choose another name, or see it: plimsoll account show {name}"
    )
}
