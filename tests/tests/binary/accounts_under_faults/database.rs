//! A database that is killed, or hangs, under load.
//!
//! While the database hangs for longer than its deadline, each request must be answered within the stated
//! time of one query. A recovered database is found without an operator.

use std::time::Instant;

use plimsoll_auth::limits::DATABASE_TIME;
use plimsoll_tests::binary::{EngineKind, Server};
use plimsoll_tests::database::Database;
use plimsoll_tests::on_each_engine;

use super::check::{check, until_ready};
use super::load::{Load, PEOPLE, People};
use super::{CONFIRMED, Chance, REFUSED, a_moment, begin, rounds};

const KINDS: [&str; 3] = ["mysql", "postgres", "redis"];
/// The statuses of a temporary refusal.
pub(super) const LATER: &[u16] = &[503];

/// Runs a test on each kind of database concurrently: it mostly waits.
pub(super) fn beside_each_other(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for kind in KINDS {
            let test = &test;
            scope.spawn(move || test(kind));
        }
    });
}

/// Runs a server on a database with test users, and a `fault` in the middle, `count` times. Afterwards the
/// state must match the users' ledgers, also for the next server.
fn rounds_of(
    engine: EngineKind,
    kind: &str,
    count: usize,
    fault: impl Fn(&mut Database, &Load, &mut Chance),
) {
    let (mut people, mut chance) = begin(&format!("{kind} under {engine}"));
    let mut database = Database::start(kind);
    let (data, url) = (tempfile::tempdir().unwrap(), database.fresh().url);
    let start = || Server::on_data(engine, data.path(), &["--directory", &url]);
    let server = start();
    for _ in 0..rounds(count) {
        let load = Load::at(&[&server], DATABASE_TIME, LATER);
        people.live(&load, || {
            load.until_confirmed(CONFIRMED);
            a_moment(&mut chance);
            fault(&mut database, &load, &mut chance);
            load.until_confirmed(CONFIRMED);
        });
        checked(&server, &mut people, LATER);
    }
    drop(server);
    checked(&start(), &mut people, LATER);
}

pub(super) fn checked(server: &Server, people: &mut People, refusals: &'static [u16]) {
    until_ready(&[server]);
    check(&Load::at(&[server], DATABASE_TIME, refusals), people);
}

fn a_database_killed_under_load_loses_nothing_and_every_caller_is_refused(engine: EngineKind) {
    beside_each_other(|kind| {
        rounds_of(engine, kind, 3, |database, load, chance| {
            database.kill();
            load.until_refused(REFUSED);
            a_moment(chance);
            database.start_again();
        });
    });
}

/// Hangs for longer than the deadline, so that later requests meet hanging connections, too.
fn a_database_that_hangs_under_load_delays_no_client_beyond_the_stated_time(engine: EngineKind) {
    beside_each_other(|kind| {
        rounds_of(engine, kind, 1, |database, load, chance| {
            // A first stop, too short to fail a request. Concurrent requests open one connection each,
            // which later hang.
            database.stop();
            a_moment(chance);
            database.resume();
            load.until_confirmed(PEOPLE);
            let begun = Instant::now();
            database.stop();
            load.until_refused(REFUSED);
            while begun.elapsed() < DATABASE_TIME * 2 {
                load.until_refused(1);
            }
            a_moment(chance);
            database.resume();
        });
    });
}

on_each_engine!(
    a_database_killed_under_load_loses_nothing_and_every_caller_is_refused,
    a_database_that_hangs_under_load_delays_no_client_beyond_the_stated_time,
);
