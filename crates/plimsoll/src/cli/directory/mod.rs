//! `plimsoll directory`: the operator's commands for the store of accounts, sessions and shares as a whole.
//!
//! They send no request to a server. Invariants: rows are verified by their number and digest. A URL is
//! never printed with its password.

mod check;
mod dump;
mod move_rows;
mod problems;
mod restore;

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use plimsoll_auth::directory::{Summary, without_password};
use plimsoll_cli::WrongUsage;
use plimsoll_wire::hex;
use serde_json::{Value, json};

use crate::config::{LogFormat, LogLevel};
use crate::exposure::warn_of_arguments;
use crate::operator_log::OperatorLog;

/// Check, dump, restore and move the directory of accounts, sessions and shares
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll directory check
  plimsoll directory dump accounts.dump --data /srv/plimsoll
  plimsoll directory restore accounts.dump --directory postgres://plimsoll@db/plimsoll
  plimsoll directory move --from sqlite:./directory.sqlite --to postgres://plimsoll@db/plimsoll

Stop the servers before restore and move. Each command has --help, with examples.")]
pub(crate) struct Directory {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    Check(check::Check),
    Dump(dump::Dump),
    Restore(restore::Restore),
    Move(move_rows::Move),
}

impl Directory {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let log = OperatorLog::start(LogFormat::Text, LogLevel(tracing::Level::WARN));
        let log = log.context("cannot start the log")?;
        warn_of_arguments();
        let done = match self.order {
            Order::Check(check) => check.run(),
            Order::Dump(dump) => dump.run(),
            Order::Restore(restore) => restore.run(),
            Order::Move(moving) => moving.run(),
        };
        log.finish();
        done
    }
}

/// Whether rows that a directory has may be removed.
#[derive(Args)]
struct Replacing {
    /// Remove the rows that are there first; asks before that
    #[arg(long)]
    replace: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Replacing {
    /// Fails unless the operator agrees that these rows of the directory are removed.
    fn agree(&self, url: &str, rows: &Summary) -> anyhow::Result<()> {
        let (url, rows) = (without_password(url), counts(rows));
        if !self.replace {
            bail!("{url} has rows already ({rows}): name an empty directory, or remove them with --replace");
        }
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            let text = "there is no terminal to ask on; add --yes if the rows are to be replaced";
            return Err(WrongUsage(text.to_owned()).into());
        }
        let mut out = std::io::stderr().lock();
        write!(out, "Remove all rows of {url} ({rows})? [y/N] ")?;
        out.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("Nothing was removed.");
        }
        Ok(())
    }
}

/// Formats the numbers of rows.
fn counts(rows: &Summary) -> String {
    let Summary { accounts, sessions, shares, networks, links, locks, .. } = rows;
    format!(
        "accounts: {accounts}, sessions: {sessions}, shares: {shares}, known networks: {networks}, \
         public links: {links}, locks: {locks}"
    )
}

/// Returns a JSON object of the numbers of rows, the digest, and more members.
fn json_of(rows: &Summary, more: &[(&str, Value)]) -> Value {
    let Summary { accounts, sessions, shares, networks, links, locks, digest } = rows;
    let mut all = json!({
        "accounts": accounts, "sessions": sessions, "shares": shares, "networks": networks, "links": links,
        "locks": locks,
        "digest": hex::encode(digest),
    });
    for (name, value) in more {
        all[*name] = value.clone();
    }
    all
}

/// Formats lines for a person, below a headline.
fn lines(headline: &str, lines: &[(&str, String)]) -> String {
    let mut text = format!("{headline}\n");
    for (name, line) in lines {
        text.push_str(&format!("  {name:<9} {line}\n"));
    }
    text
}
