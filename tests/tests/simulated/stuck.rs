//! Peers that stop in the middle of any action: they cost little, delay no other peer, and are
//! disconnected.

use std::time::Duration;

use plimsoll_io::limits::{BODY_BLOCK_BYTES, HEAD_BLOCK_BYTES};
use plimsoll_io::sim::Faults;
use plimsoll_proto::http::Limits;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Client, Scenario, Scene, Tree};

const STUCK_TIME: Duration = Duration::from_secs(600);
const LARGE_BYTES: usize = 100_000;

/// The bytes that each peer sends. No peer receives, continues or ends.
const BEGINNINGS: [&str; 6] = [
    "",
    "GET /small.txt HT",
    "PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nhalf",
    "PUT /test/echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\nGET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n",
    "no request\r\n\r\n",
];

fn scenario() -> Scenario {
    let limits = Limits {
        head_time: STUCK_TIME,
        receive_time: STUCK_TIME,
        send_time: STUCK_TIME,
        idle_time: STUCK_TIME,
        linger_time: STUCK_TIME,
        ..Limits::default()
    };
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, LARGE_BYTES));
    Scenario { tree, limits, ..Scenario::default() }
}

async fn stuck_peers(scene: &Scene, count_of_each: usize) -> Vec<Client> {
    let mut stuck = Vec::new();
    for beginning in BEGINNINGS.repeat(count_of_each) {
        let mut client = scene.connect().await;
        client.push(beginning);
        stuck.push(client);
    }
    scene.until(|| scene.open() == stuck.len()).await;
    stuck
}

async fn a_healthy_peer_is_served(scene: &Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
    assert!(client.get("/large.bin").await.body == noise(1, LARGE_BYTES));
    client.push("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().await.text(), "hello");
}

#[test]
fn stuck_peers_delay_no_other_and_are_closed() {
    const OF_EACH: usize = 4;
    for seed in every_seed().take(40) {
        let Simulation { sim, server, client, scene } = Simulation::new(seed, Faults::splits(), &scenario());
        sim.run(&client, async move {
            let stuck = stuck_peers(&scene, OF_EACH).await;
            let began = scene.io.now();
            a_healthy_peer_is_served(&scene).await;
            assert!(scene.io.now() - began < STUCK_TIME / 4);
            assert!(scene.open() >= stuck.len(), "those who are stuck were let go too early");
            let leased_max = stuck.len() * (HEAD_BLOCK_BYTES + BODY_BLOCK_BYTES);
            assert!(server.leased_bytes() <= leased_max, "{} bytes leased", server.leased_bytes());
            // The peers are still connected; the server disconnects them.
            scene.until_every(Duration::from_secs(1), || scene.open() == 0).await;
            // The time limits of the body, the answer and the linger may elapse in sequence.
            assert!(scene.io.now() - began < STUCK_TIME * 4);
            assert_eq!(server.leased_bytes(), 0);
            drop(stuck);
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
        assert_eq!(sim.connections_open(), 0, "seed {seed}");
    }
}

#[test]
fn a_server_that_stops_closes_connections_without_a_request() {
    for seed in every_seed().take(40) {
        let Simulation { sim, client, scene, .. } = Simulation::new(seed, Faults::splits(), &scenario());
        sim.run(&client, async move {
            let mut stuck = stuck_peers(&scene, 1).await;
            scene.stop.order();
            stuck.remove(0).expect_end().await;
            scene.until_every(Duration::from_secs(1), || scene.open() == 0).await;
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}
