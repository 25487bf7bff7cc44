//! Accounts while what keeps them is killed, hangs or is full, under the load of several people at once.
//!
//! Each person knows what was confirmed, and what nobody knows. What must hold: never a yes that should be
//! a no; nothing that was confirmed is lost; who cannot be answered is told so, within the stated time; the
//! moments of faults come from a seed that is printed.

mod auth_server;
mod check;
mod database;
mod full_disk;
mod ledger;
mod load;
mod person;
mod server;

use plimsoll_tests::binary::is_long;

use super::durable::chance::Chance;
use load::People;

/// Faults of each test in a long run, for each in a run on each commit.
const LONG_FACTOR: usize = 10;
/// The longest that a fault is put off, and that it lasts beyond what it takes to be noticed.
const MOMENT_MS_MAX: usize = 400;
/// What people have confirmed before a fault, and again when it is over.
const CONFIRMED: usize = 40;
/// What is refused before a fault ends: everybody has been refused then, and some again.
const REFUSED: usize = 12;

fn rounds(short: usize) -> usize {
    if is_long() { short * LONG_FACTOR } else { short }
}

/// Lets a while pass that chance decides: it is waited for nothing.
fn a_moment(chance: &mut Chance) {
    std::thread::sleep(std::time::Duration::from_millis(chance.below(MOMENT_MS_MAX) as u64));
}

/// People, and the chance by which faults come.
fn begin(what: &str) -> (People, Chance) {
    let seed = Chance::seed();
    println!("{what}: again with PLIMSOLL_SEED={seed}");
    (People::new(seed), Chance::new(seed.wrapping_mul(1000)))
}
