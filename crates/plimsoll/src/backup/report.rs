//! The contents of a backup, for the operator.
//!
//! It looks at no file. Invariant: it names all data of the server that the backup lacks.

use std::path::{Path, PathBuf};

use plimsoll_auth::directory::CopiedDirectory;
use plimsoll_cli::output::{files, size, text};
use serde::Serialize;

use super::directory::Accounts;
use super::manifest::Sum;
use super::mirror::Counts;
use super::{DIRECTORY, DUMP};
use crate::config::{Config, StoreAt};
use crate::limits::NAMES_SHOWN_MAX;

/// A complete backup.
#[derive(Debug, Serialize)]
pub(crate) struct Taken {
    backup: PathBuf,
    data: PathBuf,
    /// The file with the accounts; none if they are not in the backup.
    accounts: Option<AccountsTaken>,
    homes: u64,
    files: u64,
    bytes: u64,
    cloned: u64,
    copied: u64,
    /// Whether everything in the backup was so at one moment.
    one_moment: bool,
    /// The homes whose files are each whole, but not of one moment.
    changing: Vec<String>,
    /// Sockets, pipes and devices, which are not in the backup.
    special: Vec<String>,
    /// Data that a restored server needs, and that is not in the backup.
    elsewhere: Vec<String>,
    /// Data that is left out by intent.
    left_out: Vec<&'static str>,
}

/// The accounts of a backup.
#[derive(Debug, Serialize)]
struct AccountsTaken {
    file: &'static str,
    #[serde(flatten)]
    counts: Option<CountsTaken>,
}

#[derive(Debug, Serialize)]
struct CountsTaken {
    accounts: u64,
    log_ins: u64,
    shares: u64,
    ended_log_ins: u64,
}

impl From<CopiedDirectory> for CountsTaken {
    fn from(copied: CopiedDirectory) -> CountsTaken {
        let CopiedDirectory { accounts, sessions: log_ins, shares, revoked: ended_log_ins } = copied;
        CountsTaken { accounts, log_ins, shares, ended_log_ins }
    }
}

/// The facts about a backup besides its files.
pub(super) struct Facts<'a> {
    pub(super) config: &'a Config,
    pub(super) accounts: &'a Accounts,
    pub(super) copied: Option<CopiedDirectory>,
    pub(super) homes: u64,
    pub(super) changing: Vec<Vec<u8>>,
    pub(super) one_moment: bool,
}

impl Taken {
    pub(super) fn new(backup: &Path, facts: Facts<'_>, sum: &Sum, counts: &Counts) -> Taken {
        let Facts { config, accounts, copied, homes, changing, one_moment } = facts;
        let shown = |paths: &mut dyn Iterator<Item = &Vec<u8>>| {
            let mut shown: Vec<String> = paths.map(|path| text(path)).collect();
            shown.sort();
            shown
        };
        let file = match accounts {
            Accounts::File(_) => Some(DIRECTORY),
            Accounts::Database(_) | Accounts::Dump(_) => Some(DUMP),
            Accounts::NotIncluded(_) => None,
        };
        Taken {
            backup: backup.to_owned(),
            data: config.fixed.data.clone(),
            accounts: file.map(|file| AccountsTaken { file, counts: copied.map(CountsTaken::from) }),
            homes,
            files: sum.files,
            bytes: sum.bytes,
            cloned: counts.cloned,
            copied: counts.copied,
            one_moment,
            changing: shown(&mut changing.iter()),
            special: shown(&mut counts.special.iter()),
            elsewhere: places_not_included(config, accounts),
            left_out: vec![
                "uploads in progress",
                "the configuration, certificates, sites, and logs outside of the data folder",
            ],
        }
    }

    /// Returns the lines for a person.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("accounts", self.accounts_line())];
        let counts = format!("{} cloned, {} copied", self.cloned, self.copied);
        let homes = match self.homes {
            1 => "1 home".to_owned(),
            homes => format!("{homes} homes"),
        };
        lines.push(("files", format!("{}, {}, in {homes}; {counts}", files(self.files), size(self.bytes))));
        lines.push(("moment", self.moment_line()));
        lines.push(("verified", "every file was read back from the disk".to_owned()));
        let not_copied = (!self.special.is_empty())
            .then(|| format!("sockets, pipes and devices: {}", first(&self.special)));
        let left_out = self.left_out.iter().map(|path| (*path).to_owned()).chain(not_copied);
        lines.push(("left out", left_out.collect::<Vec<_>>().join("; ")));
        lines.extend(self.elsewhere.iter().map(|path| ("next", path.clone())));
        lines
    }

    fn accounts_line(&self) -> String {
        match &self.accounts {
            None => "not in this backup".to_owned(),
            Some(AccountsTaken { file, counts: None }) => format!("the output of the command, in {file}"),
            Some(AccountsTaken { file, counts: Some(counts) }) => {
                let CountsTaken { accounts, log_ins, shares, ended_log_ins } = counts;
                let ended = match ended_log_ins {
                    0 => String::new(),
                    ended => format!("; {ended} more had ended"),
                };
                format!("{accounts}, with log-ins: {log_ins}, shares: {shares}, in {file}{ended}")
            }
        }
    }

    fn moment_line(&self) -> String {
        match (self.one_moment, self.changing.is_empty()) {
            (true, _) => "accounts and files are of one moment".to_owned(),
            (false, true) => {
                "each home is of one moment, the accounts are of a later time: the server is busy".to_owned()
            }
            (false, false) => format!(
                "each file is whole; these homes changed all the time, so their files are of different \
                 moments: {}",
                first(&self.changing)
            ),
        }
    }
}

/// Returns the first names, and the number of the rest.
fn first(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns where the rest of the server's data is.
fn places_not_included(config: &Config, accounts: &Accounts) -> Vec<String> {
    let mut all = Vec::new();
    if let Accounts::NotIncluded(place) = accounts {
        all.push(place.clone());
    }
    if let StoreAt::Remote(url) = &config.fixed.store {
        all.push(format!("the files are at the storage server {url}: back them up there"));
    }
    let secret = &config.fixed.secret_file;
    if secret.exists() && secret.parent() != Some(config.fixed.data.as_path()) {
        all.push(format!("the secret {} is not in the data folder: keep a copy", secret.display()));
    }
    all
}
