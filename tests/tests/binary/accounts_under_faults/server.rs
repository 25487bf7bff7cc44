//! The server itself is killed, with its accounts in a file.
//!
//! Confirmed changes must survive in the next server. Requests in progress may have any outcome.

use std::path::Path;

use plimsoll_auth::limits::DIRECTORY_BUSY_TIME;
use plimsoll_tests::binary::{EngineKind, PATIENCE, Server};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use super::check::{check, until_ready};
use super::load::Load;
use super::{CONFIRMED, a_moment, begin, rounds};

/// A connection process may outlive the killed program for a moment, and answers 503.
const LATER: &[u16] = &[503];

fn start(kind: EngineKind, data: &Path) -> Server {
    Server::on_data(kind, data, &[])
}

fn a_server_that_is_killed_under_load_loses_no_account_and_brings_nothing_back(engine: EngineKind) {
    let (mut people, mut chance) = begin(&format!("a file under {engine}"));
    let data = tempfile::tempdir().unwrap();
    let mut server = start(engine, data.path());
    for _ in 0..rounds(6) {
        let load = Load::at(&[&server], DIRECTORY_BUSY_TIME, LATER);
        people.live(&load, || {
            load.until_confirmed(CONFIRMED);
            a_moment(&mut chance);
            load.may_break();
            server.signal(Signal::KILL);
            server.ends_within(PATIENCE);
        });
        server = start(engine, data.path());
        until_ready(&[&server]);
        check(&Load::at(&[&server], DIRECTORY_BUSY_TIME, LATER), &mut people);
    }
}

on_each_engine!(forks: a_server_that_is_killed_under_load_loses_no_account_and_brings_nothing_back);
