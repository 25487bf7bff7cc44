//! A database whose name leads to another address, as after a failover, and one whose disk is full, under
//! load.
//!
//! Both need mounts, which only root may make: of the server's own /etc/hosts, and of a small disk.

use std::ffi::CStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use plimsoll_auth::limits::DATABASE_TIME;
use plimsoll_tests::binary::{EngineKind, Server, free_port};
use plimsoll_tests::database::{Database, Transport};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::relay::{Fault, Relay, Target};

use super::database::{LATER, beside_each_other, checked};
use super::load::Load;
use super::{CONFIRMED, REFUSED, a_moment, begin, rounds};
use crate::faults::full_disk::{Small, fill};

/// The statuses of a refusal while a database has no room. A database that ends for lack of room is away.
const NO_ROOM: &[u16] = &[503, 507];
/// A disk with room for an empty database of each kind. The server's user is not root.
const DISK: &CStr = c"size=512m,mode=0755";
/// A name that the server finds in its own /etc/hosts.
const NAME: &str = "database.test";

/// Two addresses of a database, to one of which its name leads.
struct Failover {
    hosts: PathBuf,
    database: SocketAddr,
    port: u16,
    /// The relay at the address that is in use, and the last number of that address.
    active: (Relay, u8),
}

impl Failover {
    /// Takes over the database at the address of a URL. Returns the URL that names it.
    fn of(url: &str, folder: &Path) -> (Failover, String) {
        let (before, rest) = url.split_once('@').unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let default_port = match before.split_once(':').unwrap().0 {
            "mysql" => 3306,
            "postgres" => 5432,
            _ => 6379,
        };
        let database = SocketAddr::new(address.parse().unwrap(), default_port);
        let (hosts, port) = (folder.join("hosts"), free_port());
        let active = (Failover::relay(database, port, 2), 2);
        let failover = Failover { hosts, database, port, active };
        failover.write_hosts();
        (failover, format!("{before}@{NAME}:{port}/{path}"))
    }

    fn relay(database: SocketAddr, port: u16, last: u8) -> Relay {
        Relay::start_at(SocketAddr::from(([127, 0, 0, last], port)), Target::Tcp(database))
    }

    fn write_hosts(&self) {
        // In place, because the mount is of this file.
        std::fs::write(&self.hosts, format!("127.0.0.{} {NAME}\n", self.active.1)).unwrap();
    }

    /// Has the name lead to the other address. Returns the relay at the old one.
    fn move_name(&mut self) -> Relay {
        let last = if self.active.1 == 2 { 3 } else { 2 };
        let relay = Failover::relay(self.database, self.port, last);
        let (old, _) = std::mem::replace(&mut self.active, (relay, last));
        self.write_hosts();
        old
    }
}

/// The name moves twice: from a machine that refuses connections, and from one that is silent.
fn a_database_whose_name_moves_under_load_is_found_and_loses_nothing(engine: EngineKind) {
    beside_each_other(|kind| {
        let (mut people, mut chance) = begin(&format!("failover of {kind} under {engine}"));
        let mut database = Database::start(kind);
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // Mounting the hosts takes the same right.
        let Some(small) = Small::at(folder.path()) else { return };
        let (mut failover, url) = Failover::of(&database.fresh_over(Transport::Tcp).url, &small.0);
        let hosts = failover.hosts.clone();
        let server = Server::on_data_with_hosts(engine, data.path(), &["--directory", &url], &hosts);
        for _ in 0..rounds(1) {
            let load = Load::at(&[&server], DATABASE_TIME, LATER);
            people.live(&load, || {
                load.until_confirmed(CONFIRMED);
                a_moment(&mut chance);
                drop(failover.move_name());
                load.until_confirmed(CONFIRMED);
                failover.active.0.set(Fault::Hold);
                load.until_refused(1);
                let silent = failover.move_name();
                load.until_confirmed(CONFIRMED);
                drop(silent);
            });
            checked(&server, &mut people, LATER);
        }
    });
}

fn a_database_with_a_full_disk_loses_nothing_under_load(engine: EngineKind) {
    beside_each_other(|kind| {
        let folder = tempfile::tempdir().unwrap();
        let Some(small) = Small::with_options(folder.path(), DISK) else { return };
        let (mut people, mut chance) = begin(&format!("{kind} with a full disk under {engine}"));
        let mut database = Database::start_in(&small.0, kind);
        let (data, url) = (tempfile::tempdir().unwrap(), database.fresh().url);
        let server = Server::on_data(engine, data.path(), &["--directory", &url]);
        let filler = small.0.join("filler");
        for _ in 0..rounds(1) {
            let load = Load::at(&[&server], DATABASE_TIME, NO_ROOM);
            people.live(&load, || {
                load.until_confirmed(CONFIRMED);
                // The database can still use pages that it allocated before.
                std::thread::scope(|scope| {
                    let refused = scope.spawn(|| load.until_refused(REFUSED));
                    while !refused.is_finished() {
                        fill(&filler);
                    }
                });
                a_moment(&mut chance);
                std::fs::remove_file(&filler).unwrap();
                // MariaDB 10.11 can crash when a statement times out while its disk is full.
                load.until_confirmed_while(CONFIRMED, || {
                    if database.revive() {
                        println!("{kind} had ended by itself, and was started again");
                    }
                });
            });
            // MariaDB still reports a full table for up to a second after the filler is gone.
            checked(&server, &mut people, NO_ROOM);
        }
    });
}

on_each_engine!(sample:
    a_database_whose_name_moves_under_load_is_found_and_loses_nothing,
    a_database_with_a_full_disk_loses_nothing_under_load,
);
