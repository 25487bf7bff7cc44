//! Emulated users of the laboratory that download over FTP from this server.
//!
//! It measures nothing. Invariants: all users transfer every file whole, and nothing is left open.

use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_load::{
    Checked, Connections, Crowd, End, Files, Login, Pace, Pick, Requests, Scheme, Target, Workload,
};
use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Person, Scene, together};

use super::scenario;

const BYTES: usize = 3_000;
const USERS: usize = 4;
const EACH: u64 = 5;

fn workload(scene: &Scene, connections: Connections) -> Workload {
    Workload {
        place: Target {
            scheme: Scheme::Ftp,
            addresses: vec![scene.ftp().clone()],
            authority: "server.example".to_owned(),
            server: "server.example".to_owned(),
            pattern: "/a".to_owned(),
        },
        tls: None,
        login: Login::Account { name: "alice".to_owned(), password: PASSWORD.to_owned() },
        ask: Requests::Download(Files::One),
        pick: Pick::Same,
        users: USERS,
        pace: Pace::Closed { think: Duration::ZERO },
        end: End::RequestsEach(EACH),
        warm_up: Duration::ZERO,
        connections,
        checked: Checked::All,
        against: None,
        keep: None,
        timeout: Duration::from_secs(30),
        threads: 1,
        cpus: Vec::new(),
        seed: 1,
    }
}

#[test]
fn users_download_every_file_whole_over_kept_and_new_sessions() {
    for seed in every_seed().take(30) {
        for connections in [Connections::Kept, Connections::New] {
            let Simulation { sim, client, scene, .. } = Simulation::new(seed, Faults::splits(), &scenario());
            let (crowd, tasks) =
                Crowd::gather(&workload(&scene, connections), &client.io(), client.stop()).unwrap();
            let of_users = scene.clone();
            sim.run(&client, async move {
                let mut alice = Person::new(&of_users, "alice").await;
                assert_eq!(alice.put("/files/a", noise(1, BYTES)).await.status, 201);
                drop(alice);
                drop(together(tasks).await);
                of_users.until(|| of_users.open() == 0).await;
            });
            assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
            let outcome = crowd.outcome().unwrap();
            assert!(outcome.is_clean(), "seed {seed}: {:?}", outcome.messages);
            let requests = USERS as u64 * EACH;
            assert_eq!((outcome.requests, outcome.bytes), (requests, requests * BYTES as u64), "seed {seed}");
            assert_eq!(outcome.verified, requests);
            // A file that is fetched before the start is one more.
            let lines = scene.accounts().lines();
            let downloads = lines.iter().filter(|line| line["operation"] == "download").count() as u64;
            assert_eq!(downloads, requests + 1, "seed {seed}: a transfer was repeated");
        }
    }
}
