//! This project's FTP client, with connections cut at every byte, dropped at any time and reset at random.
//!
//! A transfer reported as complete must be complete, and nothing may be left open.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::ftp::{Error, Session, Times};
use plimsoll_client::{NextSegment, Source};
use plimsoll_io::Segment;
use plimsoll_io::sim::Faults;
use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{Simulation, every_seed, simulated};
use plimsoll_tests::{Person, Scene};

use super::scenario;

/// More bytes than either side sends in a session.
const SAID_BYTES: usize = 700;
const OLD: &[u8] = b"the old one\n";
const BYTES: usize = 3_000;

fn new() -> Vec<u8> {
    noise(1, BYTES)
}

/// A source of three pieces.
struct Pieces(usize);

impl Source for Pieces {
    fn next(&mut self) -> NextSegment<'_> {
        let piece = new().chunks(BYTES / 3).nth(self.0).map(<[u8]>::to_vec);
        self.0 += 1;
        Box::pin(std::future::ready(Ok(piece.map(Segment::Owned))))
    }
}

/// The progress of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Stored,
    All,
}

async fn hold(scene: &Scene, got: &Cell<Progress>) -> Result<(), Error> {
    let mut session = Session::connect(&scene.io, scene.ftp(), Times::default()).await?;
    session.log_in("alice", PASSWORD).await?;
    assert_eq!(session.store(b"a", &mut Pieces(0)).await?, BYTES as u64);
    got.set(Progress::Stored);
    assert_eq!(session.size(b"a").await?, BYTES as u64);
    let (mut all, mut download) = (Vec::new(), session.retrieve(b"a", 1_000).await?);
    while let Some(lease) = download.recv().await? {
        all.extend_from_slice(&lease);
    }
    assert!(all == new()[1_000..]);
    assert!(session.list(b"").await?.discard().await? > 20);
    session.quit().await?;
    got.set(Progress::All);
    Ok(())
}

/// Asserts that the file is complete: the old one, or the new one, which it must be after a confirmed
/// upload.
fn check(scene: &Scene, got: Progress) {
    let held = scene.home("alice").get("a").cloned().flatten().expect("a file");
    assert!(held == new() || (held == OLD && got == Progress::Nothing));
}

#[test]
fn a_session_is_held_wherever_its_connections_are_cut() {
    for bytes in 0..SAID_BYTES {
        simulated(0, Faults::split_at(bytes), &scenario(), |scene| async move {
            drop(Person::new(&scene, "alice").await);
            hold(&scene, &Cell::new(Progress::Nothing)).await.unwrap();
            scene.until(|| scene.open() == 0).await;
        });
    }
}

/// Drops a session after `time`, and returns whether it had completed.
fn drop_after(seed: u64, faults: Faults, time: Duration) -> bool {
    let Simulation { sim, client, scene, .. } = Simulation::new(seed, faults, &scenario());
    let got = Rc::new(Cell::new(Progress::Nothing));
    let progress = Rc::clone(&got);
    sim.run(&client, async move {
        Person::new(&scene, "alice").await.put("/files/a", OLD).await;
        let patience = scene.io.deadline();
        patience.after(time);
        if let Ok(held) = patience.within(hold(&scene, &progress)).await {
            held.unwrap();
        }
        scene.until(|| scene.open() == 0).await;
        check(&scene, progress.get());
    });
    assert_eq!(sim.connections_open(), 0, "seed {seed}, dropped after {time:?}");
    assert!(sim.panics().is_empty(), "seed {seed}, dropped after {time:?}: {:?}", sim.panics());
    got.get() == Progress::All
}

#[test]
fn a_session_may_be_dropped_at_any_time() {
    for (seed, faults) in [(0, Faults::none()), (1, Faults::splits()), (2, Faults::splits())] {
        let mut drops = 0_u32;
        // A step is shorter than any delay of the network.
        let step = if faults.delay_max.is_zero() { 23 } else { 3_001 };
        while !drop_after(seed, faults, Duration::from_micros(step) * drops) {
            drops += 1;
        }
        assert!(drops > 30, "it was dropped at {drops} times");
    }
}

#[test]
fn after_any_resets_a_file_reported_whole_is_whole() {
    let (mut held, mut broken) = (0, 0);
    for (seed, per_mille) in every_seed().zip([20, 5, 1].into_iter().cycle()) {
        let Simulation { sim, client, scene, .. } =
            Simulation::new(seed, Faults::resets(per_mille), &scenario());
        let got = Rc::new(Cell::new(Progress::Nothing));
        let progress = Rc::clone(&got);
        sim.run(&client, async move {
            let auth = &scene.accounts().auth;
            let (quota, may) = (Default::default(), Default::default());
            let password = plimsoll_auth::Secret::from(PASSWORD);
            auth.add(&scene.io, "alice", &password, quota, may).await.unwrap();
            // Before the first upload, there is no old file.
            let _ = hold(&scene, &progress).await;
            scene.until(|| scene.open() == 0).await;
            let file = scene.home("alice").get("a").cloned().flatten();
            assert!(file.as_ref().map_or(progress.get() == Progress::Nothing, |file| *file == new()));
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
        assert_eq!(sim.connections_open(), 0, "seed {seed}");
        if got.get() == Progress::All { held += 1 } else { broken += 1 }
    }
    println!("{held} sessions were held, {broken} were reset");
}
