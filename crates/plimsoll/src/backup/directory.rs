//! The directory of accounts in a backup: a copy of its file, or a dump of its database.
//!
//! It knows no database. Invariant: a backup without accounts says where they are, and what to do.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use plimsoll_auth::directory::{CopiedDirectory, Opening, Summary, copy_file, file_of, without_password};
use plimsoll_cli::WrongUsage;
use zeroize::Zeroizing;

use super::{DIRECTORY, DUMP};
use crate::access::as_owner;
use crate::config::{AuthAt, Config};
use crate::directory_rows::{create_dump, dump_to_file, open_current, open_existing, refuse_partial};
use crate::tiers::directory_url;

/// Where the accounts come from.
pub(super) enum Accounts {
    /// A file of SQLite.
    File(PathBuf),
    /// A database, which this program dumps.
    Database(Zeroizing<String>),
    /// The output of a command of the operator.
    Dump(String),
    /// They are not in the backup; the sentence says where they are.
    NotIncluded(String),
}

impl Accounts {
    pub(super) fn of(config: &Config, dump: Option<&str>) -> anyhow::Result<Accounts> {
        let url = without_password(&config.fixed.directory);
        if let AuthAt::Remote(server) = &config.fixed.auth {
            let server = server.to_string();
            return Ok(Accounts::NotIncluded(format!(
                "the accounts are at the authentication server {server}: back them up there, after this"
            )));
        }
        match (file_of(&config.fixed.directory), dump) {
            (Some(_), Some(_)) => Err(WrongUsage(format!(
                "--dump is for accounts on a database server, and these are in {url}, which is copied \
                 without it"
            ))
            .into()),
            (Some(file), None) if file.exists() => Ok(Accounts::File(file)),
            (Some(file), None) => Ok(Accounts::NotIncluded(format!(
                "there is no directory of accounts at {}, as at a storage server: back it up where it is, \
                 after this",
                file.display()
            ))),
            (None, Some(dump)) => Ok(Accounts::Dump(dump.to_owned())),
            (None, None) => Ok(Accounts::Database(directory_url(&config.fixed)?)),
        }
    }

    /// Copies them into the folder `to`, in place of an earlier copy. Returns their numbers, if known, and
    /// whether they are of one moment.
    pub(super) fn copy(&self, config: &Config, to: &Path) -> anyhow::Result<(Option<CopiedDirectory>, bool)> {
        match self {
            Accounts::File(file) => as_owner(config, || {
                let copy = to.join(DIRECTORY);
                if copy.exists() {
                    std::fs::remove_file(&copy).context("cannot copy the directory of accounts again")?;
                }
                let failure = "cannot copy the directory of accounts";
                let mut directory = open_existing(&config.fixed.directory, Opening::Inspect)?;
                refuse_partial(&mut *directory).context(failure)?;
                drop(directory);
                let copied = copy_file(file, &copy).context(failure)?;
                Ok((Some(copied), true))
            }),
            Accounts::Database(url) => as_owner(config, || {
                let failure = || format!("cannot dump the accounts at {}", without_password(url));
                let (copied, one_moment) = dump_database(url, &to.join(DUMP)).with_context(failure)?;
                Ok((Some(copied), one_moment))
            }),
            Accounts::Dump(command) => {
                let copied = dump(command, &to.join(DUMP));
                copied
                    .map(|()| (None, true))
                    .with_context(|| format!("the command of --dump failed: {command}"))
            }
            Accounts::NotIncluded(_) => Ok((None, true)),
        }
    }
}

/// Dumps a database. Its tables are not upgraded: the backup belongs to the version that runs.
fn dump_database(url: &str, to: &Path) -> anyhow::Result<(CopiedDirectory, bool)> {
    let mut directory = open_current(url)?;
    if to.exists() {
        std::fs::remove_file(to)?;
    }
    let Summary { accounts, sessions, shares, .. } = dump_to_file(&mut *directory, create_dump(to)?)?;
    Ok((CopiedDirectory { accounts, sessions, shares, revoked: 0 }, directory.is_of_one_moment()))
}

/// Runs the command as the user that started this program.
fn dump(command: &str, to: &Path) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    let ended = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(file).status()?;
    ensure!(ended.success(), "{ended}");
    ensure!(to.metadata()?.len() > 0, "it wrote nothing to standard output");
    Ok(())
}
