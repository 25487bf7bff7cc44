//! `plimsoll account adopt`: gives an account the home of its name.
//!
//! It moves no file. Invariant: no server has the data folder meanwhile, which could have the home open
//! for another account.

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_cli::output::{print, print_json};
use plimsoll_engine::SystemFs;
use plimsoll_store::{Error, give_home};
use serde_json::json;

use super::directory_args::{DirectoryArgs, refused};
use super::output::AccountJson;
use super::quarantine::home_of;
use crate::config::StoreAt;
use crate::locked_folder::take_data_folder;

/// Give an account the home of its name, whichever account that home belonged to
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account adopt alice --data /srv/plimsoll

A home records the number of its account. If the directory of accounts was lost, a new account with
an old name has another number, and cannot open the old home. Make sure that the person is the same,
stop the server, and type this. plimsoll doctor lists the homes that no account can open.
JSON: {\"adopted\":{\"name\":\"alice\",...},\"files\":\"./plimsoll-data/accounts/alice\"}")]
pub(crate) struct Adopt {
    /// The name of the account
    name: String,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Adopt {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let name = self.name;
        let (account, home) = self.at.run(async move |at| {
            let (fixed, data) = (&at.config.fixed, &at.config.fixed.data);
            if fixed.store != StoreAt::Local {
                bail!(
                    "The files are at a storage server. Type this there, or write the account's number into \
                     DATA/accounts/NAME/account; docs/accounts.md has the steps."
                );
            }
            let account = at.auth.account(&at.io, &name).await.map_err(refused(&name))?;
            let _held = take_data_folder(data).context("End the server first")?;
            let home = home_of(data, &account.name);
            give_home(&SystemFs, data, &account.name, account.id).map_err(|error| match error {
                Error::NotFound => anyhow::anyhow!("There is no home at {}.", home.display()),
                error => anyhow::anyhow!("cannot write into {}: {error}", home.display()),
            })?;
            Ok((account, home))
        })?;
        if self.json {
            return print_json(&json!({"adopted": AccountJson::from(&account), "files": home}));
        }
        print(format!("The home {} belongs to the account {} now.\n", home.display(), account.name))
    }
}
