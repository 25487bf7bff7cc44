//! `plimsoll directory move`: moves all rows of a directory to another store.
//!
//! Invariants: until the rows are verified, at most the source is open to servers. The source is closed for
//! good only after the rows were read back from the target, and the source was read again and had not
//! changed. A failed move leaves the source as it was. Nothing is removed from a target that is the source.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use plimsoll_auth::directory::{DirectoryRows, Opening, Summary, file_of, without_password};
use plimsoll_auth::limits::{DATABASE_TIME, POLL_TRUST_TIME};
use plimsoll_cli::WrongUsage;
use plimsoll_cli::output::{print, print_json};
use plimsoll_wire::hex;
use serde_json::json;
use zeroize::Zeroizing;

use super::{Replacing, counts, json_of, lines};
use crate::access::as_owner;
use crate::config::Config;
use crate::directory_rows::{fill, open, open_existing, refuse_partial, refuse_running_server};
use crate::tiers::url_with_password_of;

/// How a reason begins for which a directory is closed after a move.
const MOVED: &str = "it was moved to ";
/// How long a server that runs may still use a database after it was closed: a call begins so long after the
/// last check, and takes so long.
const SERVERS_STOP_TIME: Duration = POLL_TRUST_TIME.saturating_add(DATABASE_TIME);

/// Move all accounts, sessions and shares to another store
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll directory move --from sqlite:/srv/plimsoll/directory.sqlite \\
    --to postgres://plimsoll@/plimsoll?host=/run/postgresql
  plimsoll directory move --from postgres://plimsoll@db/plimsoll --to sqlite:./d.sqlite --replace

Stop the servers first. Sessions move, too, so log-ins stay valid. All rows are read back from the
target, and the source is read again: if a server has changed it meanwhile, the move fails, and the
source is as it was. After a move, servers refuse the source, unless you give --keep. Then name the
target in the configuration (directory), and start the servers. To go back, move the other way with
--replace.
JSON: {\"from\":\"sqlite:...\",\"to\":\"postgres://...\",\"accounts\":12,...,\"digest\":\"...\"}")]
pub(crate) struct Move {
    /// Where the accounts are
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where they go
    #[arg(long, value_name = "URL")]
    to: String,
    /// The file with the password for --from
    #[arg(long, value_name = "FILE")]
    from_password_file: Option<PathBuf>,
    /// The file with the password for --to
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// Leave the source open to servers
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    replacing: Replacing,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Move {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.from == self.to {
            return Err(WrongUsage("--from and --to are the same directory".to_owned()).into());
        }
        // The file of either side decides whose rights are needed.
        let file = if file_of(&self.from).is_some() { &self.from } else { &self.to };
        let mut flag = OsString::from("--directory=");
        flag.push(file);
        let config = Config::of_server([flag], None)?;
        // Read by the caller, who need not be the owner of the data.
        let from = url(&self.from, self.from_password_file.as_deref())?;
        let to = url(&self.to, self.to_password_file.as_deref())?;
        let rows = as_owner(&config, || self.move_rows(&from, &to))?;
        let (from, to) = (without_password(&self.from), without_password(&self.to));
        if self.json {
            return print_json(&json_of(&rows, &[("from", json!(from)), ("to", json!(to))]));
        }
        let source = if self.keep { "is open to servers" } else { "is closed to servers" };
        print(lines(
            &format!("Moved to {to}"),
            &[
                ("rows", counts(&rows)),
                ("verified", "every row was read back, and the source had not changed".to_owned()),
                ("source", format!("{from} {source}")),
                ("next", format!("name {to} in the configuration of the servers, and start them")),
            ],
        ))
    }

    fn move_rows(&self, from: &str, to: &str) -> anyhow::Result<Summary> {
        refuse_running_server(&self.from)?;
        refuse_running_server(&self.to)?;
        let shown = without_password(&self.from);
        let no_rows = || format!("{shown} has no rows to move: is --from right?");
        // No tables are created in a database that was named by mistake.
        ensure!(open_existing(from, Opening::Inspect)?.schema()?.version > 0, no_rows());
        let mut source = open(from, Opening::Transfer)?;
        let closed = source.schema()?.closed;
        ensure!(!closed.starts_with(MOVED), "{shown} is not in use: {closed}");
        refuse_partial(&mut *source).context(shown.clone())?;
        ensure!(!Summary::of(&mut *source)?.is_empty(), no_rows());
        let mut target = open(to, Opening::Transfer)?;
        let there = Summary::of(&mut *target)?;
        if !there.is_empty() {
            self.replacing.agree(&self.to, &there)?;
        }
        let reason =
            format!("its rows are being moved to {} (move {})", without_password(&self.to), token()?);
        source.close(&reason)?;
        let moved =
            refuse_same_store(&mut *target, &reason).and_then(|()| self.copy(&mut *source, &mut *target));
        if moved.is_err() {
            source.close(&closed).context("the source is still closed to servers; repeat the move")?;
        }
        let rows = moved.context("nothing was moved")?;
        target.close("")?;
        let reason = if self.keep { closed } else { format!("{MOVED}{}", without_password(&self.to)) };
        source.close(&reason)?;
        Ok(rows)
    }

    fn copy(
        &self,
        source: &mut dyn DirectoryRows,
        target: &mut dyn DirectoryRows,
    ) -> anyhow::Result<Summary> {
        let rows = fill(target, |_| Ok(()), |each| source.read_rows(each))?;
        if file_of(&self.from).is_none() {
            // The requests of a server that was not stopped, such as a sign-up, have ended or failed by then.
            // A closed file refuses them at once.
            sleep(SERVERS_STOP_TIME);
        }
        if Summary::of(source)? != rows {
            bail!("a server has changed the source meanwhile: stop all servers, and repeat with --replace");
        }
        Ok(rows)
    }
}

/// Fails if the target is closed for the same reason as the source, so that both are one store. The move
/// would remove its rows.
fn refuse_same_store(target: &mut dyn DirectoryRows, reason: &str) -> anyhow::Result<()> {
    ensure!(target.schema()?.closed != reason, "--from and --to lead to the same store");
    Ok(())
}

/// Returns digits that no other move has.
fn token() -> io::Result<String> {
    let mut number = [0; 16];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
    Ok(hex::encode(&number))
}

/// Returns the URL, with the password of its file.
fn url(url: &str, password: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    password.map_or_else(|| Ok(Zeroizing::new(url.to_owned())), |file| url_with_password_of(url, file))
}
