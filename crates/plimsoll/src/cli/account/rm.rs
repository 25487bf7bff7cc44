//! `plimsoll account rm`: removes an account, and moves its files away or deletes them.
//!
//! It ends no connection: requests in progress continue in the old home, which no other account has.
//! Invariants: the name becomes free only after the old home was moved. An interrupted command can be
//! repeated.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_auth::Account;
use plimsoll_auth::limits::{LOOK_TIME, POLL_TRUST_TIME};
use plimsoll_cli::WrongUsage;
use plimsoll_cli::output::{print, print_json};
use serde_json::json;

use super::directory_args::{DirectoryArgs, Opened, refused};
use super::output::AccountJson;
use super::quarantine::{delete, move_to_removed};

/// Remove an account with its sessions and shares; its files are moved away, or deleted
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account rm alice
  plimsoll account rm alice --yes
  plimsoll account rm alice --with-files

The files are moved to DATA/removed/NAME.TIME, where no later account of that name finds them.
Files at fronts of an authentication server or of a database, and at a storage server, stay where
they are, and no later account gets them: plimsoll doctor lists them.
It takes a second or two, until a running server knows that the account is disabled.
JSON: {\"removed\":{\"name\":\"alice\",...},\"files\":\"./plimsoll-data/removed/alice.20261120T134005Z\"};
       files is null if there were none, or if they were deleted")]
pub(crate) struct Rm {
    /// The name of the account
    name: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Delete its files, too
    #[arg(long)]
    with_files: bool,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Rm {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.yes && !std::io::stdin().is_terminal() {
            let text = "there is no terminal to ask on; add --yes if it is meant";
            return Err(WrongUsage(text.to_owned()).into());
        }
        let (name, yes, with_files) = (self.name, self.yes, self.with_files);
        let (account, moved, data) = self.at.run(async move |at| {
            let account = at.auth.account(&at.io, &name).await.map_err(refused(&name))?;
            if !yes {
                ask(&account.name, with_files)?;
            }
            let moved = remove(&at, &account).await?;
            Ok((account, moved, at.config.fixed.data))
        })?;
        let kept = if with_files { None } else { moved.as_ref() };
        if let Some(moved) = moved.as_ref().filter(|_| with_files) {
            delete(moved).context("The account is removed, but not all of its files")?;
        }
        if self.json {
            return print_json(&json!({"removed": AccountJson::from(&account), "files": kept}));
        }
        let files = match (kept, &moved) {
            (Some(kept), _) => format!("Its files are in {}.", kept.display()),
            (None, Some(_)) => "Its files are deleted.".to_owned(),
            (None, None) => format!(
                "It had no files in {}. Files at fronts or at a storage server stay there, in \
                 DATA/accounts/{}: move them away before another account gets that name.",
                data.display(),
                account.name
            ),
        };
        print(format!("The account {} is removed. {files}\n", account.name))
    }
}

/// Asks for confirmation.
fn ask(name: &str, with_files: bool) -> anyhow::Result<()> {
    let files = if with_files { "and delete all of its files" } else { "and put its files away" };
    let mut out = std::io::stderr().lock();
    write!(out, "Remove the account {name} with its shares, {files}? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("Nothing was removed.");
    }
    Ok(())
}

/// Removes the account. Its name stays taken until the home is moved away, so that no new account gets it.
async fn remove(at: &Opened, account: &Account) -> anyhow::Result<Option<PathBuf>> {
    let name = account.name.as_str();
    at.auth.set_enabled(&at.io, name, false).await.map_err(refused(name))?;
    // Until its cached account expires, a server could create the home again.
    at.io.sleep(POLL_TRUST_TIME + LOOK_TIME).await;
    let moved = move_to_removed(&at.config.fixed.data, name)
        .with_context(|| format!("The account {name} is disabled, but still there"))?;
    at.auth.remove(&at.io, name).await.map_err(refused(name))?;
    Ok(moved)
}
