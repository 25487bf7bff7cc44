//! The power is cut while clients write: the disk at random moments, mounted, has all changes confirmed
//! before.
//!
//! The disk is [`super::fuse`]'s: the server's sync counts only once the file system has sent a sync to the
//! disk. The disk must be copied atomically, and the expected state must be recorded before the copy.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Server, is_long};
use plimsoll_tests::on_each_engine;

use super::account::Accounts;
use super::chance::Chance;
use super::check::check;
use super::device::{DISK_BYTES, Ext4, is_missing};
use super::fuse::{Blocks, Mounted, Survives};
use super::kill::writers;
use super::ledger::Ledger;
use super::writer::Writer;

/// Power cuts of each engine: a multiple of three, the number of [`Survives`] variants.
const CUTS: usize = 6;
/// The same in a long run.
const LONG_CUTS: usize = 90;
/// The maximal time of writes before a cut, in milliseconds.
const WRITE_MS_MAX: usize = 400;

/// A power cut: the contents of the disk, and the expected state.
struct Cut {
    disk: Vec<u8>,
    lost: usize,
    survives: Survives,
    ledgers: Vec<Ledger>,
    accounts: Accounts,
}

/// The shared ledgers of all writers.
struct Books {
    ledgers: Vec<Arc<Mutex<Ledger>>>,
    accounts: Arc<Mutex<Accounts>>,
}

impl Books {
    /// Cuts the power. The confirmed states are read before the copy of the disk, and later possible states
    /// after it.
    fn cut(&self, blocks: &Mutex<Blocks>, survives: Survives, chance: &mut Chance) -> Cut {
        self.ledgers.iter().for_each(|ledger| ledger.lock().unwrap().forget());
        let accounts = self.accounts.lock().unwrap().clone();
        let (disk, lost) = blocks.lock().unwrap().after_a_cut(survives, chance);
        let mut ledgers: Vec<Ledger> =
            self.ledgers.iter().map(|ledger| ledger.lock().unwrap().clone()).collect();
        ledgers.iter_mut().for_each(Ledger::expect_from_the_first);
        Cut { disk, lost, survives, ledgers, accounts }
    }
}

/// Mounts the disk after a cut, and checks it with a server.
fn look(kind: EngineKind, cut: &Cut, writers: &[&Writer], folder: &Path) {
    let (image, at) = (folder.join("image"), folder.join("after"));
    std::fs::write(&image, &cut.disk).unwrap();
    let mounted = Ext4::mount(&image, &at);
    let data = mounted.at().join("data");
    let server = Server::on_data(kind, &data, &[]);
    check(writers, &cut.ledgers, &server, &data);
    cut.accounts.check(&server);
}

/// Runs all writers on `server`, and cuts the power `cuts` times. Also returns the writers, for their
/// tokens.
fn cut_often(
    server: Server,
    mut writers: Vec<Writer>,
    blocks: &Mutex<Blocks>,
    cuts: usize,
    chance: &mut Chance,
) -> (Vec<Cut>, Vec<Writer>) {
    let ledgers = writers.iter().map(|writer| Arc::clone(&writer.ledger)).collect();
    let books = Books { ledgers, accounts: Arc::default() };
    let (over, at) = (AtomicBool::new(false), server.at());
    let made = std::thread::scope(|scope| {
        for writer in &mut writers {
            scope.spawn(|| writer.write(|| over.load(Ordering::Relaxed)));
        }
        scope.spawn(|| {
            let mut own = Accounts::default();
            own.make(at, |now| {
                *books.accounts.lock().unwrap() = now.clone();
                !over.load(Ordering::Relaxed)
            });
        });
        let cut = |number: usize| {
            std::thread::sleep(Duration::from_millis(20 + chance.below(WRITE_MS_MAX) as u64));
            let survives = [Survives::Nothing, Survives::Some, Survives::All][number % 3];
            books.cut(blocks, survives, chance)
        };
        let made: Vec<Cut> = (0..cuts).map(cut).collect();
        over.store(true, Ordering::Relaxed);
        made
    });
    drop(server);
    (made, writers)
}

/// Runs a server on a test disk, and cuts its power `cuts` times. Returns the cuts, and the writers.
fn powerless(kind: EngineKind, args: &[&str], cuts: usize, folder: &Path) -> (Vec<Cut>, Vec<Writer>) {
    let seed = Chance::seed();
    println!("again with PLIMSOLL_SEED={seed}");
    let disk = Mounted::new(&folder.join("disk"), DISK_BYTES).expect("a file of ours");
    let mounted = Ext4::make(&disk.at, &folder.join("mounted"));
    let server = Server::on_data(kind, &mounted.at().join("data"), args);
    let writers = writers(&server, seed);
    let before = disk.blocks.lock().unwrap().syncs;
    let done = cut_often(server, writers, &disk.blocks, cuts, &mut Chance::new(seed));
    println!("{kind}: the disk was synced {} times", disk.blocks.lock().unwrap().syncs - before);
    done
}

fn a_power_cut_loses_no_confirmed_change(kind: EngineKind) {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (cuts, writers) = powerless(kind, &[], if is_long() { LONG_CUTS } else { CUTS }, folder.path());
    let writers: Vec<&Writer> = writers.iter().collect();
    for cut in &cuts {
        let steps: usize = cut.ledgers.iter().map(Ledger::states).sum();
        println!("{:?} survives of {} sectors; {steps} states are possible", cut.survives, cut.lost);
        look(kind, cut, &writers, folder.path());
    }
}

fn an_upload_that_was_thrown_away_stays_away(kind: EngineKind) {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Mounted::new(&folder.path().join("disk"), DISK_BYTES).expect("a file of ours");
    let mounted = Ext4::make(&disk.at, &folder.path().join("mounted"));
    let server = Server::on_data(kind, &mounted.at().join("data"), &[]);
    let mut writers = writers(&server, 1);
    writers[0].change_its_mind();
    let ledgers = writers.iter().map(|writer| Arc::clone(&writer.ledger)).collect();
    let books = Books { ledgers, accounts: Arc::default() };
    let cut = books.cut(&disk.blocks, Survives::Nothing, &mut Chance::new(1));
    drop(server);
    look(kind, &cut, &writers.iter().collect::<Vec<_>>(), folder.path());
}

/// Shows that the test can fail: without syncs, a cut that discards unsynced sectors loses a confirmed
/// change.
fn without_syncs_it_would_be_seen(kind: EngineKind) {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (cuts, writers) = powerless(kind, &["--durability", "none"], 1, folder.path());
    let writers: Vec<&Writer> = writers.iter().collect();
    let looked = std::panic::AssertUnwindSafe(|| look(kind, &cuts[0], &writers, folder.path()));
    let is_lost = std::panic::catch_unwind(looked).is_err();
    assert!(is_lost, "nothing was lost without a sync: the disk here keeps what it should not");
}

on_each_engine!(alone:
    a_power_cut_loses_no_confirmed_change,
    an_upload_that_was_thrown_away_stays_away,
    without_syncs_it_would_be_seen,
);
