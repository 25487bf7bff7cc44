//! What every directory does, told once and run over each of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod file;
mod sessions;
mod shares;

use plimsoll_auth::directory::{NewAccount, NewSession};
use plimsoll_auth::{Account, Directory, MemoryDirectory, Permissions, Quota, SessionId, SqliteDirectory};

/// A time of day, in milliseconds since 1970.
const NOW: u64 = 1_800_000_000_123;

/// Runs `test` over an empty directory of each kind.
fn each(test: impl Fn(&mut dyn Directory)) {
    test(&mut MemoryDirectory::new());
    let folder = tempfile::tempdir().unwrap();
    test(&mut SqliteDirectory::open(&folder.path().join("directory.sqlite")).unwrap());
}

fn new_account(name: &str) -> NewAccount {
    NewAccount {
        name: name.to_owned(),
        hash: format!("hash of {name}"),
        quota: Quota::default(),
        permissions: Permissions::default(),
        enabled: true,
        created: NOW,
    }
}

fn add(directory: &mut dyn Directory, name: &str) -> Account {
    directory.add_account(&new_account(name)).unwrap().unwrap()
}

fn session_id(number: u8) -> SessionId {
    SessionId::from_hash([number; 32])
}

/// A session that begins so many milliseconds after [`NOW`] and lasts a second.
fn session(number: u8, account: &Account, after: u64) -> NewSession {
    let created = NOW + after;
    NewSession { id: session_id(number), account: account.id, version: 1, created, expires: created + 1000 }
}
