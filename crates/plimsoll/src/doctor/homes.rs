//! Checks that each home in the data folder has its account.
//!
//! It changes no home, and no tables of accounts. Invariant: a home that no account can open is reported with
//! the next step.

use plimsoll_auth::Directory;
use plimsoll_auth::directory::file_of;

use super::Finding;
use crate::access;
use crate::config::{AuthAt, Config, StoreAt};
use crate::directory_rows::open_current;
use crate::homes::{Quarantined, quarantined};
use crate::tiers::{directory_url, open_directory};

const CHECK: &str = "homes";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let fixed = &config.fixed;
    if !fixed.accounts || fixed.store != StoreAt::Local || !fixed.data.join("accounts").is_dir() {
        return Vec::new();
    }
    // SQLite creates files when it opens the directory, and the data's owner must own them.
    vec![match access::as_owner(config, || look(config)) {
        Ok(found) => judge(&found),
        Err(error) => Finding::warn(CHECK, format!("could not be checked: {error:#}")),
    }]
}

fn look(config: &Config) -> anyhow::Result<Quarantined> {
    let fixed = &config.fixed;
    let is_missing = file_of(&fixed.directory).is_some_and(|file| !file.exists());
    let mut directory: Option<Box<dyn Directory>> = match fixed.auth {
        // Opening the directory would create it.
        AuthAt::Embedded if is_missing => return quarantined_without_directory(config),
        AuthAt::Embedded => {
            let url = directory_url(fixed)?;
            // Opening it for use would create or upgrade the tables, which is up to a server.
            open_current(&url)?;
            Some(open_directory(&url)?)
        }
        AuthAt::Remote(_) => None,
    };
    match &mut directory {
        Some(directory) => quarantined(&fixed.data, Some(&mut **directory)),
        None => quarantined(&fixed.data, None),
    }
}

/// Returns all homes: without a directory, none has an account.
fn quarantined_without_directory(config: &Config) -> anyhow::Result<Quarantined> {
    let all = plimsoll_store::homes(&plimsoll_engine::SystemFs, &config.fixed.data)?;
    Ok(Quarantined { names: all.into_iter().map(|home| home.name).collect() })
}

fn judge(found: &Quarantined) -> Finding {
    if found.names.is_empty() {
        return Finding::ok(CHECK, "each home has its account");
    }
    let seen = format!(
        "homes whose account is gone or is another one, which no account can open: {}",
        found.summary()
    );
    Finding::warn(CHECK, seen).with_fix(
        "if the directory of accounts was lost, restore it from a backup; if the person is the same, end the \
         server and type: plimsoll account adopt NAME --data DATA; if the home is not needed: \
         mv DATA/accounts/NAME DATA/removed-NAME",
        "back up the directory of accounts together with the files: docs/backup.md",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_home_without_its_account_is_a_warning_with_the_command_that_gives_it_back() {
        assert_eq!(judge(&Quarantined::default()).verdict, Verdict::Ok);
        let found = judge(&Quarantined { names: vec!["alice".to_owned()] });
        assert!(found.seen.contains("alice") && found.now.unwrap().contains("plimsoll account adopt NAME"));
    }
}
