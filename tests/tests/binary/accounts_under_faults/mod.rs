//! Accounts whose storage is killed, hangs or is full, under the load of several users at once.
//!
//! Each user's ledger has the confirmed and the unknown changes. A credential that should be refused is
//! never accepted, and no confirmed change is lost. A request that cannot be served must be refused within
//! the stated time. The times of faults derive from a printed seed.

mod auth_server;
mod check;
mod database;
mod failover;
mod full_disk;
mod ledger;
mod load;
mod person;
mod server;

use plimsoll_tests::binary::is_long;

use super::durable::chance::Chance;
use load::People;

/// The factor of faults in a long run, compared with a run on each commit.
const LONG_FACTOR: usize = 10;
/// The maximal random delay before a fault, and after it was noticed.
const MOMENT_MS_MAX: usize = 400;
/// The number of confirmed requests before a fault, and again after it.
const CONFIRMED: usize = 40;
/// The number of refused requests before a fault ends: more than one for each user.
const REFUSED: usize = 12;

fn rounds(short: usize) -> usize {
    if is_long() { short * LONG_FACTOR } else { short }
}

/// Sleeps for a random time. No condition depends on it.
fn a_moment(chance: &mut Chance) {
    std::thread::sleep(std::time::Duration::from_millis(chance.below(MOMENT_MS_MAX) as u64));
}

/// Creates the test users, and the random generator for the times of faults.
fn begin(title: &str) -> (People, Chance) {
    let seed = Chance::seed();
    println!("{title}: again with PLIMSOLL_SEED={seed}");
    (People::new(seed), Chance::new(seed.wrapping_mul(1000)))
}
