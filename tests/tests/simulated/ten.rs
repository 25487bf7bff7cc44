//! The mix of the ten requests, run by emulated users of the laboratory against this server.
//!
//! Each life must have all ten requests, none repeated. When connections break, users must continue.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_load::{
    Checked, Connections, Crowd, End, Login, Mix, Outcome, Pace, Pick, Request, Requests, Scheme, Target,
    Workload,
};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Scenario, Scene, together};

const FILE_BYTES: u64 = 3_000;

fn workload(users: usize, requests: u64, mix: &str) -> Workload {
    Workload {
        place: Target {
            scheme: Scheme::Http,
            addresses: Vec::new(),
            authority: "server.example".to_owned(),
            server: "server.example".to_owned(),
            pattern: "/".to_owned(),
        },
        tls: None,
        login: Login::Nobody,
        ask: Requests::Ten { mix: mix.parse::<Mix>().unwrap(), bytes: FILE_BYTES },
        pick: Pick::Same,
        users,
        pace: Pace::Closed { think: Duration::ZERO },
        end: End::Requests(requests),
        warm_up: Duration::ZERO,
        connections: Connections::Kept,
        checked: Checked::All,
        against: None,
        keep: None,
        timeout: Duration::from_secs(30),
        threads: 1,
        cpus: Vec::new(),
        seed: 1,
    }
}

/// Runs a workload. Returns its outcome, or why it did not start, and the server's scene.
fn live(seed: u64, faults: Faults, mut workload: Workload) -> (Result<Outcome, String>, Scene) {
    let scenario = Scenario { accounts: Some(settings()), ..Scenario::default() };
    let Simulation { sim, client, scene, .. } = Simulation::new(seed, faults, &scenario);
    workload.place.addresses = vec![scene.at.clone()];
    let (crowd, tasks) = Crowd::gather(&workload, &client.io(), client.stop()).unwrap();
    sim.run(&client, async { drop(together(tasks).await) });
    assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    (crowd.outcome(), scene)
}

/// Counts the lines of the transfer log, by operation.
fn operations(scene: &Scene) -> BTreeMap<String, usize> {
    let mut operations = BTreeMap::new();
    for line in scene.accounts().lines() {
        *operations.entry(line["operation"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    operations
}

#[test]
fn each_life_does_all_ten_and_nothing_twice() {
    for seed in every_seed().take(30) {
        for connections in [Connections::Kept, Connections::New] {
            let (outcome, scene) =
                live(seed, Faults::splits(), Workload { connections, ..workload(3, 60, "ten") });
            let outcome = outcome.unwrap();
            assert!(outcome.is_clean(), "seed {seed}: {:?}", outcome.messages);
            assert_eq!(outcome.requests, 60);
            let counts: Vec<_> = outcome.kinds.iter().map(|(name, count, _)| (*name, *count)).collect();
            let names = Request::ALL.map(Request::name);
            assert!(counts.iter().map(|(name, _)| *name).eq(names), "{counts:?}");
            // Each of the three users is in the middle of some life at the end.
            assert!(counts.iter().all(|(_, count)| (4..=8).contains(count)), "seed {seed}: {counts:?}");
            let files: u64 =
                outcome.kinds.iter().filter(|kind| kind.0.contains("download")).map(|kind| kind.1).sum();
            assert_eq!(outcome.verified, files, "every file is compared with what was sent");
            // Before the start, each user created the account with which its first life shares.
            let seen = operations(&scene);
            let count_of = |kind: Request| counts.iter().find(|(name, _)| *name == kind.name()).unwrap().1;
            assert_eq!(seen["signup"] as u64, count_of(Request::SignUp) + 3, "{seen:?}");
            assert_eq!(seen["upload"] as u64, count_of(Request::Upload), "{seen:?}");
        }
    }
}

#[test]
fn a_mix_says_how_often_each_request_is_in_a_life() {
    // One user, two lives of 30 requests.
    let mix = "ten:list=2,upload=5,download=10,share=3,list_shared=1,download_shared=4,delete=2";
    let (outcome, scene) = live(1, Faults::splits(), workload(1, 60, mix));
    let outcome = outcome.unwrap();
    assert!(outcome.is_clean(), "{:?}", outcome.messages);
    for (name, count, _) in &outcome.kinds {
        let request = Request::ALL.into_iter().find(|request| request.name() == *name).unwrap();
        assert_eq!(*count, 2 * u64::from(mix.parse::<Mix>().unwrap().times(request)), "{name}");
    }
    let kept = scene.home("load-0-0-1");
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["file-0", "file-1", "file-2"]);
    assert_eq!(scene.home("load-0-0-2").len(), 3);
    let mut bodies: Vec<_> = kept.into_values().chain(scene.home("load-0-0-2").into_values()).collect();
    assert!(bodies.iter().all(|body| body.as_ref().unwrap().len() as u64 == FILE_BYTES));
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 6, "no body is sent twice");
}

#[test]
fn where_connections_break_users_go_on_and_nothing_wrong_is_taken_for_right() {
    let mut broken = 0;
    for seed in every_seed().take(60) {
        let (outcome, _) = live(seed, Faults::resets(3), workload(3, 120, "ten"));
        // A user that cannot finish its preparation blocks the start for all.
        let Ok(outcome) = outcome else { continue };
        let errors: u64 = outcome.errors.values().sum();
        assert_eq!(outcome.requests + errors, 120, "seed {seed}: {:?}", outcome.errors);
        for kind in outcome.errors.keys() {
            assert!(
                ["broken", "short_body", "connect"].contains(&kind.as_str()),
                "seed {seed}: {:?}",
                outcome.messages
            );
        }
        broken += errors;
    }
    assert!(broken > 10, "only {broken} requests broke");
}
