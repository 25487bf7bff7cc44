//! The server is killed repeatedly, on the same data, while clients write.

use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Member, PATIENCE, Server, is_long};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use super::account::Accounts;
use super::chance::Chance;
use super::check::check;
use super::ledger::Ledger;
use super::writer::Writer;

/// Kills of each engine.
const ROUNDS: usize = 26;
/// The same in a long run.
const LONG_ROUNDS: usize = 500;
/// The maximal lifetime of a server, in milliseconds.
const LIFE_MS_MAX: usize = 500;

/// Creates two accounts with two folders each: some writers share a home, and so its lock.
pub(super) fn writers(server: &Server, seed: u64) -> Vec<Writer> {
    let mut writers = Vec::new();
    for name in ["alice", "bob"] {
        let member = Member::new(server, name);
        for folder in ["left", "right"] {
            let seed = seed % 1000 * 100 + writers.len() as u64 + 1;
            writers.push(Writer::new(member.again(server), folder, seed));
        }
    }
    writers
}

/// Runs all writers for a while, then kills the server. Returns the time until all writers noticed.
fn live(server: &mut Server, writers: &mut [Writer], accounts: &mut Accounts, time: Duration) -> Duration {
    let begun = Instant::now();
    let at = server.at();
    std::thread::scope(|scope| {
        for writer in writers.iter_mut() {
            scope.spawn(move || writer.write(|| false));
        }
        scope.spawn(move || accounts.make(at, |_| true));
        std::thread::sleep(time);
        server.signal(Signal::KILL);
        server.ends_within(PATIENCE);
    });
    begun.elapsed()
}

fn start(kind: EngineKind, data: &Path) -> (Server, Duration) {
    let begun = Instant::now();
    (Server::on_data(kind, data, &[]), begun.elapsed())
}

fn a_killed_server_loses_no_confirmed_change(kind: EngineKind) {
    let (seed, rounds) = (Chance::seed(), if is_long() { LONG_ROUNDS } else { ROUNDS });
    println!("again with PLIMSOLL_SEED={seed}");
    let (folder, mut chance) = (tempfile::tempdir().unwrap(), Chance::new(seed));
    let data = folder.path().join("data");
    let (mut server, _) = start(kind, &data);
    let (mut writers, mut accounts) = (writers(&server, seed), Accounts::default());
    let mut steps = 0;
    for round in 0..rounds {
        let time = Duration::from_millis(10 + chance.below(LIFE_MS_MAX) as u64);
        let known = live(&mut server, &mut writers, &mut accounts, time);
        let ledgers: Vec<Ledger> =
            writers.iter().map(|writer| writer.ledger.lock().unwrap().clone()).collect();
        steps += ledgers.iter().map(Ledger::states).sum::<usize>();
        let took;
        (server, took) = start(kind, &data);
        println!("round {round}: killed after {time:?}, known after {known:?}, {steps} steps so far");
        let begun = Instant::now();
        let found = check(&writers.iter().collect::<Vec<_>>(), &ledgers, &server, &data);
        accounts.check(&server);
        println!("  back in {took:?}, checked in {:?}", begun.elapsed());
        for (writer, state) in writers.iter_mut().zip(found) {
            *writer.ledger.lock().unwrap() = Ledger::new(state);
            writer.member = writer.member.again(&server);
        }
    }
    assert!(steps > rounds * 8, "{steps}: hardly anything was going on");
}

on_each_engine!(alone: a_killed_server_loses_no_confirmed_change);
