//! `plimsoll account import`: creates accounts from the output of `export`.
//!
//! It changes no existing account. Invariant: all lines are imported, or none. With `--skip-existing`,
//! lines with taken names are left out.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use plimsoll_auth::names::account_name;
use plimsoll_auth::{Account, Exported};
use plimsoll_cli::output::{print, print_json};

use super::directory_args::{DirectoryArgs, Opened, unanswered};
use super::output::AccountJson;

/// Create accounts from lines that were exported
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account import accounts.jsonl
  plimsoll account import - < accounts.jsonl
  plimsoll account import --skip-existing accounts.jsonl

It imports all accounts or none: a wrong line is an error, and so is a taken name, unless
--skip-existing leaves that account as it is. Passwords stay the same. An account keeps its number,
by which its home knows it, unless another account has that number. The data folder is created if it
is missing.
JSON: as of plimsoll account list, for the imported accounts")]
pub(crate) struct Import {
    /// The file, or - for standard input
    file: PathBuf,
    /// Leave accounts that exist as they are, and import the others
    #[arg(long)]
    skip_existing: bool,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shown = self.file.display().to_string();
        let text = read(&self.file).with_context(|| format!("cannot read {shown}"))?;
        let accounts = parse(&text).with_context(|| shown.clone())?;
        let (all, skip_existing) = (accounts.len(), self.skip_existing);
        let made = self.at.run_making(async move |at| {
            let accounts = without_taken(&at, accounts, skip_existing).await?;
            import(&at, accounts).await.context("No account was imported")
        })?;
        if self.json {
            return print_json(&made.iter().map(AccountJson::from).collect::<Vec<_>>());
        }
        let skipped = match all - made.len() {
            0 => String::new(),
            skipped => format!(", {skipped} skipped because their names are taken"),
        };
        print(format!("Accounts from {shown}: {}{skipped}\n", made.len()))
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() != "-" {
        return std::fs::read_to_string(path);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// Parses the accounts of all lines but empty ones. Each name may occur once.
fn parse(text: &str) -> anyhow::Result<Vec<Exported>> {
    let mut accounts = Vec::new();
    let mut names = HashSet::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let account: Exported =
            serde_json::from_str(line).map_err(|error| anyhow!("line {number} is no account: {error}"))?;
        let name = account_name(account.name.as_bytes()).with_context(|| format!("line {number}"))?;
        if !names.insert(name) {
            bail!("line {number}: the account {:?} is in it twice. Remove one of the two.", account.name);
        }
        accounts.push(account);
    }
    Ok(accounts)
}

/// Returns the accounts whose names are free. Without `skip_existing`, a name that is taken is an error.
async fn without_taken(
    at: &Opened,
    accounts: Vec<Exported>,
    skip_existing: bool,
) -> anyhow::Result<Vec<Exported>> {
    let there = at.auth.accounts(&at.io).await.map_err(unanswered)?;
    let there: HashSet<&str> = there.iter().map(|account| account.name.as_str()).collect();
    let is_taken = |account: &Exported| there.contains(account.name.to_ascii_lowercase().as_str());
    let (taken, free): (Vec<Exported>, Vec<Exported>) = accounts.into_iter().partition(is_taken);
    if !taken.is_empty() && !skip_existing {
        let names: Vec<&str> = taken.iter().map(|account| account.name.as_str()).collect();
        bail!(
            "No account was imported, because these exist already: {}. Leave them as they are with \
             --skip-existing, or remove their lines.",
            names.join(", ")
        );
    }
    Ok(free)
}

/// Creates the accounts in turn. If one fails, those before it are removed again.
async fn import(at: &Opened, accounts: Vec<Exported>) -> anyhow::Result<Vec<Account>> {
    let mut made: Vec<Account> = Vec::new();
    for account in accounts {
        match at.auth.import(&at.io, account).await {
            Ok(account) => made.push(account),
            Err(error) => {
                for account in &made {
                    at.auth.remove(&at.io, &account.name).await.map_err(unanswered)?;
                }
                return Err(unanswered(error));
            }
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let line = |name: &str| format!("{{\"name\":\"{name}\",\"password\":\"$argon2id$\"}}\n");
        assert_eq!(parse(&format!("{}\n{}", line("alice"), line("bob"))).unwrap().len(), 2);
        assert_eq!(parse("").unwrap(), []);
        for (text, expected) in [
            (line("alice") + "{\"name\":", "line 2 "),
            (line("../alice"), "line 1"),
            (line("alice") + "\n" + &line("Alice"), "line 3"),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
