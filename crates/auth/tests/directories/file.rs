//! Tests of directories in a file only: mode, upgrades, and other processes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;

use plimsoll_auth::directory::{CopiedDirectory, copy_file};
use plimsoll_auth::{Directory as _, NetworkHash, SqliteDirectory};

use crate::{NOW, add, new_account, session, session_id};

fn open(path: &Path) -> SqliteDirectory {
    SqliteDirectory::open(path).unwrap()
}

#[test]
fn only_its_owner_can_read_the_file_and_those_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut directory = open(&folder.path().join("d.sqlite"));
    add(&mut directory, "alice");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    names.sort();
    assert_eq!(names, ["d.sqlite", "d.sqlite-revoked", "d.sqlite-shm", "d.sqlite-wal"]);
}

#[test]
fn a_reopened_directory_has_its_accounts_and_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    let mut directory = open(&path);
    let alice = add(&mut directory, "alice");
    directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
    drop(directory);
    let mut directory = open(&path);
    assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
    assert!(directory.session(session_id(1), NOW).unwrap().is_some());
}

#[test]
fn a_change_is_seen_once_by_every_other_connection_and_not_by_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    let (mut one, mut other) = (open(&path), open(&path));
    one.has_foreign_changes().unwrap();
    other.has_foreign_changes().unwrap();
    let alice = add(&mut one, "alice");
    assert!(!one.has_foreign_changes().unwrap());
    assert!(other.has_foreign_changes().unwrap());
    assert!(!other.has_foreign_changes().unwrap());
    assert!(other.account("alice").unwrap().is_some());
    other.remove_account(alice.id).unwrap();
    assert!(one.has_foreign_changes().unwrap());
}

#[test]
fn an_account_disabled_in_the_file_itself_has_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    let mut directory = open(&path);
    let alice = add(&mut directory, "alice");
    directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
    rusqlite::Connection::open(&path).unwrap().execute("UPDATE accounts SET enabled = 0", ()).unwrap();
    assert_eq!(directory.session(session_id(1), NOW).unwrap(), None);
}

#[test]
fn to_open_a_file_that_is_set_up_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    let mut one = open(&path);
    drop(open(&path));
    assert!(!one.has_foreign_changes().unwrap());
}

#[test]
fn many_that_open_a_new_file_at_once_all_can_and_no_name_is_given_twice() {
    for _ in 0..24 {
        let folder = tempfile::tempdir().unwrap();
        let (path, start) = (folder.path().join("d.sqlite"), Barrier::new(8));
        let made = std::thread::scope(|scope| {
            let one = || {
                start.wait();
                open(&path).add_account(&new_account("alice")).unwrap().is_some()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).filter(|made| *made).count()
        });
        assert_eq!(made, 1);
    }
}

/// The tables of the first version, as far as an upgrade needs them.
const FIRST_VERSION: &str = "
    CREATE TABLE accounts (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
        hash TEXT NOT NULL, version INTEGER NOT NULL, quota_bytes INTEGER, quota_files INTEGER,
        permissions INTEGER NOT NULL,
        enabled INTEGER NOT NULL, created INTEGER NOT NULL) STRICT;
    CREATE TABLE sessions (id BLOB NOT NULL PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts (id)
        ON DELETE CASCADE, created INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE shares (id TEXT NOT NULL PRIMARY KEY, owner INTEGER NOT NULL, holder INTEGER NOT NULL,
        path BLOB NOT NULL, permission INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER,
        UNIQUE (owner, holder, path)) STRICT;
    INSERT INTO accounts VALUES (1, 'alice', 'hash of alice', 1, NULL, NULL, 15, 1, 0);
    PRAGMA user_version = 1;
";

#[test]
fn a_file_of_the_first_version_is_upgraded_and_keeps_its_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch(FIRST_VERSION).unwrap();
    let mut directory = open(&path);
    assert_eq!(directory.account("alice").unwrap().unwrap().hash, "hash of alice");
    let network = NetworkHash::from_bytes([1; 32]);
    directory.add_network(1, network, NOW, 9).unwrap();
    assert_eq!(directory.network_seen(1, network).unwrap(), Some(NOW));
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    drop(open(&path));
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    let refused = SqliteDirectory::open(&path).err().unwrap().to_string();
    assert!(refused.contains("newer plimsoll"), "{refused}");
    let version: i64 = newer.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1000);
}

#[test]
fn a_file_that_is_none_and_a_folder_that_is_not_there_are_named_in_what_the_log_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    std::fs::write(&path, [b'x'; 4096]).unwrap();
    let missing = folder.path().join("no/such/d.sqlite");
    for bad in [path, missing] {
        let refused = SqliteDirectory::open(&bad).err().unwrap().to_string();
        assert!(refused.contains(bad.to_str().unwrap()), "{refused}");
    }
}

/// Puts a session into the file of revoked sessions, as a log-out on a full disk does: its row stays.
fn revoke_without_space(path: &Path, id: [u8; 32]) {
    let mut entry = id.to_vec();
    entry.extend_from_slice(blake3::hash(&id).as_bytes());
    let mut revoked = path.as_os_str().to_owned();
    revoked.push("-revoked");
    let file = std::fs::OpenOptions::new().write(true).open(revoked).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &entry, 0).unwrap();
}

#[test]
fn a_copy_has_all_rows_of_a_file_in_use_and_no_session_that_was_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("d.sqlite"), folder.path().join("copy.sqlite"));
    let mut directory = open(&path);
    let alice = add(&mut directory, "alice");
    for number in 1..=3 {
        directory.add_session(&session(number, &alice, 0), 9).unwrap().unwrap();
    }
    assert!(directory.end_session(session_id(1)).unwrap());
    revoke_without_space(&path, [2; 32]);
    let copied = copy_file(&path, &to).unwrap();
    assert_eq!(copied, CopiedDirectory { accounts: 1, sessions: 1, shares: 0, revoked: 1 });
    assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut copy = open(&to);
    let found = |copy: &mut SqliteDirectory, id| copy.session(session_id(id), NOW).unwrap().is_some();
    assert!(!found(&mut copy, 1) && !found(&mut copy, 2) && found(&mut copy, 3));
    assert_eq!(copy.account("alice").unwrap().unwrap().account, alice);
    assert!(copy_file(&path, &to).is_err(), "an existing file is not replaced");
}

#[test]
fn a_copy_of_a_missing_file_is_an_error_and_creates_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    assert!(copy_file(&path, &folder.path().join("copy.sqlite")).is_err());
    assert!(!path.exists());
}
