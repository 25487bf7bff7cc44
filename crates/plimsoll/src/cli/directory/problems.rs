//! Finds rows that contradict one another.
//!
//! It repairs nothing. Invariant: its memory is bounded by the accounts and the shares, not by the sessions.

use std::collections::BTreeSet;

use plimsoll_auth::directory::StoredRow;
use plimsoll_auth::names::account_name;

use crate::limits::NAMES_SHOWN_MAX;

/// The bytes of a session's number, and of a network's hash.
const HASH_BYTES: usize = 32;

/// The problems of the rows so far.
#[derive(Default)]
pub(super) struct Problems {
    accounts: BTreeSet<i64>,
    names: BTreeSet<String>,
    shares: BTreeSet<(i64, i64, Vec<u8>)>,
    found: Vec<String>,
    more: usize,
}

impl Problems {
    /// Checks a row. Accounts come first.
    pub(super) fn check(&mut self, row: &StoredRow) {
        match row {
            StoredRow::Account(row) => {
                let name = &row.name;
                if account_name(name.as_bytes()).ok().as_ref() != Some(name) {
                    self.note(format!("the account {} has no valid name: {name:?}", row.id));
                }
                if !row.hash.starts_with('$') {
                    self.note(format!("the account {name:?} has no hash of a password"));
                }
                if !self.names.insert(name.clone()) {
                    self.note(format!("two accounts have the name {name:?}"));
                }
                if !self.accounts.insert(row.id) {
                    self.note(format!("two accounts have the number {}", row.id));
                }
            }
            StoredRow::Session(row) => {
                self.check_account("a session", row.account);
                if row.id.len() != HASH_BYTES {
                    self.note(format!("a session of the account {} has no valid number", row.account));
                }
            }
            StoredRow::Share(row) => {
                self.check_account("a share's owner", row.owner);
                self.check_account("a share's recipient", row.holder);
                if !self.shares.insert((row.owner, row.holder, row.path.clone())) {
                    self.note(format!("the share {} is there twice", row.id));
                }
            }
            StoredRow::Network(row) => {
                self.check_account("a known network", row.account);
                if row.network.len() != HASH_BYTES {
                    self.note(format!("a network of the account {} has no valid hash", row.account));
                }
            }
            StoredRow::Link(row) => {
                self.check_account("a public link's owner", row.owner);
                if row.secret.len() != HASH_BYTES {
                    self.note(format!("the public link {} has no valid secret", row.id));
                }
            }
            StoredRow::Lock(row) => {
                self.check_account("the owner of a locked path", row.owner);
                self.check_account("a lock's holder", row.holder);
            }
        }
    }

    fn check_account(&mut self, of: &str, id: i64) {
        if !self.accounts.contains(&id) {
            self.note(format!("{of} is the account {id}, which does not exist"));
        }
    }

    /// Adds a problem that is not in a row.
    pub(super) fn note(&mut self, problem: String) {
        if self.found.len() < NAMES_SHOWN_MAX { self.found.push(problem) } else { self.more += 1 }
    }

    /// Returns the first problems, and how many more there are.
    pub(super) fn into_lines(self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.found.into_iter().chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_auth::directory::{StoredAccount, StoredSession, StoredShare};

    use super::*;

    fn account(id: i64, name: &str) -> StoredRow {
        StoredRow::Account(StoredAccount {
            id,
            name: name.to_owned(),
            hash: "$argon2id$".to_owned(),
            version: 1,
            quota_bytes: None,
            quota_files: None,
            permissions: 15,
            enabled: true,
            created: 0,
        })
    }

    fn session(account: i64) -> StoredRow {
        StoredRow::Session(StoredSession { id: vec![1; 32], account, created: 0, expires: 1 })
    }

    fn share(id: &str, holder: i64) -> StoredRow {
        let (id, path) = (id.to_owned(), b"a".to_vec());
        StoredRow::Share(StoredShare { id, owner: 1, holder, path, writes: false, created: 0, expires: None })
    }

    fn found(rows: &[StoredRow]) -> String {
        let mut problems = Problems::default();
        rows.iter().for_each(|row| problems.check(row));
        problems.into_lines().join("; ")
    }

    #[test]
    fn rows_that_contradict_one_another_are_found() {
        let good = [account(1, "alice"), account(2, "bob"), session(1), share("1", 2)];
        assert_eq!(found(&good), "");
        for (row, why) in [
            (account(3, "Carol"), "no valid name: \"Carol\""),
            (account(3, "bob"), "two accounts have the name \"bob\""),
            (session(7), "a session is the account 7, which does not exist"),
            (share("2", 2), "the share 2 is there twice"),
            (share("2", 9), "a share's recipient is the account 9"),
        ] {
            let problems = found(&[&good[..], &[row]].concat());
            assert!(problems.contains(why), "{problems}");
        }
        let many: Vec<StoredRow> = (0..25).map(session).collect();
        assert!(found(&many).ends_with("and 15 more"), "{}", found(&many));
    }
}
