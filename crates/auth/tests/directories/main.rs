//! The behaviour of every directory: each test runs over each kind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod cluster;
#[path = "../../../../tests/src/database.rs"]
mod database;
mod file;
mod impersonator;
mod impostor;
mod links;
mod locks;
mod networks;
mod postgres;
mod postgres_tls;
mod redis;
#[path = "../../../../tests/src/relay.rs"]
mod relay;
mod rows;
mod sentinel;
mod servers;
mod sessions;
mod shares;
mod tls;
mod upgrades;

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use database::{Database, Fresh, Transport};
use plimsoll_auth::directory::open;
use plimsoll_auth::directory::{NewAccount, NewSession};
use plimsoll_auth::{Account, Directory, MemoryDirectory, Permissions, Quota, SessionId, SqliteDirectory};

/// A time of day, in milliseconds since 1970.
const NOW: u64 = 1_800_000_000_123;

/// The kinds of database servers.
const KINDS: [&str; 3] = ["mysql", "postgres", "redis"];

/// Those that are reached over TLS, and their ports for it.
const TLS_KINDS: [(&str, u16); 3] = [("mysql", 3306), ("postgres", 5432), ("redis", 6380)];

/// A server of each kind that all tests share. Each test has its own database there.
static SERVERS: [Mutex<Option<Database>>; KINDS.len()] = [const { Mutex::new(None) }; KINDS.len()];

/// Runs `work` with the server of a kind.
fn with_server<T>(kind: &str, work: impl FnOnce(&mut Database) -> T) -> T {
    let at = KINDS.iter().position(|known| *known == kind).unwrap();
    let mut server = SERVERS[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    work(server.get_or_insert_with(|| Database::start(kind)))
}

fn fresh(kind: &str) -> Fresh {
    with_server(kind, Database::fresh)
}

/// Returns an empty database of each kind, over each transport that clients use with it.
fn each_fresh() -> impl Iterator<Item = Fresh> {
    let over_tls = TLS_KINDS.map(|(kind, _)| kind).into_iter();
    let over_tls = over_tls.map(|kind| with_server(kind, |server| server.fresh_over(Transport::Tls)));
    KINDS.into_iter().map(fresh).chain(over_tls)
}

/// Runs `test` over an empty directory of each kind.
fn each(test: impl Fn(&mut dyn Directory)) {
    test(&mut MemoryDirectory::new());
    let folder = tempfile::tempdir().unwrap();
    test(&mut SqliteDirectory::open(&folder.path().join("directory.sqlite")).unwrap());
    for at in each_fresh() {
        test(&mut *open(&at.url).unwrap());
    }
}

/// The number of the latest account. The server draws them at random; these are as large.
static LAST_ID: AtomicI64 = AtomicI64::new(1 << 52);

fn new_account(name: &str) -> NewAccount {
    NewAccount {
        id: LAST_ID.fetch_add(2, Ordering::Relaxed),
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

/// Creates a session that begins `after` milliseconds after [`NOW`] and lasts a second.
fn session(number: u8, account: &Account, after: u64) -> NewSession {
    let created = NOW + after;
    NewSession { id: session_id(number), account: account.id, version: 1, created, expires: created + 1000 }
}
