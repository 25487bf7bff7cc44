//! Homes and their accounts, in a process that has both the directory of accounts and the data folder.
//!
//! Homes of older versions name no account. Invariant: such a home gets its account once, when this version
//! first opens the data folder, and never because a later account has its name.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use plimsoll_auth::Directory;
use plimsoll_auth::directory::{file_of, without_password};
use plimsoll_engine::SystemFs;
use plimsoll_store::{FoundHome, NO_ACCOUNT, give_home, homes};

use crate::config::{AuthAt, Config};
use crate::limits::NAMES_SHOWN_MAX;
use crate::tiers::{directory_url, open_directory};

/// The marker file. It exists once the owner of each home in the data folder has been looked up.
const SETTLED: &str = "homes.settled";

/// Homes that no account may open as things stand.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Quarantined {
    /// The names of their folders.
    pub(crate) names: Vec<String>,
}

impl Quarantined {
    /// Returns the first names, and the number of the rest.
    pub(crate) fn summary(&self) -> String {
        let summary =
            self.names.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(NAMES_SHOWN_MAX) {
            0 => summary,
            more => format!("{summary} and {more} more"),
        }
    }
}

/// Gives each home of an older version to the account of its name. A home without such an account is
/// quarantined. Where accounts are on an authentication server, these homes stay unmarked, which also
/// quarantines them.
pub(crate) fn settle(config: &Config) -> anyhow::Result<()> {
    let fixed = &config.fixed;
    if fixed.auth != AuthAt::Embedded {
        return Ok(());
    }
    warn_of_new_directory(config)?;
    let settled = fixed.data.join(SETTLED);
    if settled.exists() {
        return Ok(());
    }
    let failed = || format!("cannot look up the accounts of the homes in {}", fixed.data.display());
    let is_unmarked = |home: &FoundHome| home.account.is_none();
    let has_unmarked = homes(&SystemFs, &fixed.data).with_context(failed)?.iter().any(is_unmarked);
    // Checked before the directory is opened, because opening creates a missing file.
    let is_missing = file_of(&fixed.directory).is_some_and(|file| !file.exists());
    anyhow::ensure!(!(has_unmarked && is_missing), no_directory_for_old_homes(config));
    let mut directory = open_directory(&directory_url(fixed)?)?;
    // With a wrong directory, every home would be marked as ownerless for good.
    let is_empty = directory.accounts().with_context(failed)?.is_empty();
    anyhow::ensure!(!(has_unmarked && is_empty), no_directory_for_old_homes(config));
    let without = give_to_accounts(&fixed.data, &mut *directory).with_context(failed)?;
    if !without.names.is_empty() {
        tracing::warn!(
            homes = without.summary(),
            "homes have no account in the directory; they are quarantined, and no new account gets them; \
             plimsoll doctor says what to do"
        );
    }
    mark(&settled, &fixed.data).with_context(failed)
}

fn no_directory_for_old_homes(config: &Config) -> String {
    let (data, directory) = (config.fixed.data.display(), without_password(&config.fixed.directory));
    format!(
        "{data} has homes of an earlier version, and {directory} has no account. Restore the directory of \
         accounts from a backup, or name the right one with --directory. To go on without those homes, type: \
         touch {data}/{SETTLED}"
    )
}

fn give_to_accounts(data: &Path, directory: &mut dyn Directory) -> anyhow::Result<Quarantined> {
    let mut without = Quarantined::default();
    for home in homes(&SystemFs, data)?.into_iter().filter(|home| home.account.is_none()) {
        let owner = directory.account(&home.name)?.map_or(NO_ACCOUNT, |found| found.account.id);
        give_home(&SystemFs, data, &home.name, owner)?;
        if owner == NO_ACCOUNT {
            without.names.push(home.name);
        }
    }
    Ok(without)
}

fn mark(settled: &Path, data: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(settled)?.sync_all()?;
    std::fs::File::open(data)?.sync_all()
}

/// Logs an error if the directory of accounts is missing although homes exist: it was most likely lost.
fn warn_of_new_directory(config: &Config) -> anyhow::Result<()> {
    let Some(file) = file_of(&config.fixed.directory).filter(|file| !file.exists()) else { return Ok(()) };
    let left = homes(&SystemFs, &config.fixed.data)
        .with_context(|| format!("cannot list the homes in {}", config.fixed.data.display()))?;
    if left.is_empty() {
        return Ok(());
    }
    let left = Quarantined { names: left.into_iter().map(|home| home.name).collect() };
    tracing::error!(
        directory = %file.display(),
        homes = left.summary(),
        "there is no directory of accounts, but there are homes: if it was lost, end the server and restore \
         it from a backup; the homes are quarantined, and no new account gets them"
    );
    Ok(())
}

/// Returns the homes that no account can open. With a `directory`, a home must belong to the account of its
/// name there. Without one, only homes that are marked as ownerless or unmarked count.
pub(crate) fn quarantined(data: &Path, directory: Option<&mut dyn Directory>) -> anyhow::Result<Quarantined> {
    let all = homes(&SystemFs, data)?;
    let mut names = Vec::new();
    match directory {
        Some(directory) => {
            for FoundHome { name, account } in all {
                let owner = directory.account(&name)?.map(|found| found.account.id);
                if account.is_none() || account != owner {
                    names.push(name);
                }
            }
        }
        None => {
            let without = |home: &FoundHome| home.account.is_none_or(|account| account == NO_ACCOUNT);
            names.extend(all.into_iter().filter(without).map(|home| home.name));
        }
    }
    Ok(Quarantined { names })
}

#[cfg(test)]
mod tests {
    use plimsoll_auth::directory::NewAccount;
    use plimsoll_auth::{MemoryDirectory, Permissions, Quota};

    use super::*;

    fn directory(accounts: &[(i64, &str)]) -> MemoryDirectory {
        let mut directory = MemoryDirectory::new();
        for (id, name) in accounts {
            let new = NewAccount {
                id: *id,
                name: (*name).to_owned(),
                hash: String::new(),
                quota: Quota::default(),
                permissions: Permissions::default(),
                enabled: true,
                created: 0,
            };
            directory.add_account(&new).unwrap().unwrap();
        }
        directory
    }

    fn names(found: &Quarantined) -> Vec<&str> {
        found.names.iter().map(String::as_str).collect()
    }

    #[test]
    fn an_old_home_is_given_to_the_account_of_its_name_and_to_no_later_one() {
        let data = tempfile::tempdir().unwrap();
        for name in ["alice", "bob"] {
            std::fs::create_dir_all(data.path().join("accounts").join(name).join("files")).unwrap();
        }
        // A home whose creation was interrupted has no files and is not given to an account.
        std::fs::create_dir_all(data.path().join("accounts/carol")).unwrap();
        let mut before = directory(&[(5, "alice")]);
        let at = |directory: &mut MemoryDirectory| quarantined(data.path(), Some(directory)).unwrap();
        assert_eq!(names(&at(&mut before)), ["alice", "bob"]);
        assert_eq!(names(&give_to_accounts(data.path(), &mut before).unwrap()), ["bob"]);
        assert_eq!(names(&at(&mut before)), ["bob"]);
        assert_eq!(names(&quarantined(data.path(), None).unwrap()), ["bob"]);
        let mut lost = directory(&[(6, "alice"), (7, "bob")]);
        assert!(give_to_accounts(data.path(), &mut lost).unwrap().names.is_empty());
        assert_eq!(names(&at(&mut lost)), ["alice", "bob"]);
        give_home(&SystemFs, data.path(), "alice", 6).unwrap();
        assert_eq!(names(&at(&mut lost)), ["bob"]);
    }

    #[test]
    fn many_names_are_shown_as_the_first_and_a_count() {
        let names = (0..12).map(|number| format!("n{number}")).collect();
        assert!(Quarantined { names }.summary().ends_with("n9 and 2 more"));
    }
}
