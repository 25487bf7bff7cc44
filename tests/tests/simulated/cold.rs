//! Files that are not in memory: a request for one waits for the disk, and no other request does.

use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Client, Ftp, FtpClient, Scenario, Scene, Tree};

/// More than one part of a file, and more than a simulated kernel's buffers.
const LARGE_BYTES: usize = 2_500_000;
/// The maximal time of each disk read.
const DISK_TIME: Duration = Duration::from_secs(20);

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, LARGE_BYTES));
    let ftp = Ftp { guests: true, ..Ftp::default() };
    Scenario {
        tree,
        ftp: Some(ftp),
        accounts: Some(plimsoll_tests::accounts::settings()),
        ..Scenario::default()
    }
}

/// All files are in memory except the cold one.
fn slow_disk() -> Faults {
    Faults { offload_delay_max: DISK_TIME, ..Faults::none() }
}

fn for_each_seed<F: Future<Output = ()> + 'static>(behaviour: fn(Scene) -> F) {
    for seed in every_seed().take(20) {
        let Simulation { sim, client, server, scene } = Simulation::new(seed, slow_disk(), &scenario());
        server.disk().chill("/site/large.bin").unwrap();
        let disk = server.disk().clone();
        sim.run(&client, async move {
            behaviour(scene).await;
            assert_eq!(disk.stalls(), 0, "seed {seed}: the loop waited for the disk");
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

async fn a_hot_file_is_answered_meanwhile(scene: Scene) {
    let mut cold = scene.connect().await;
    cold.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let mut hot: Client = scene.connect().await;
    let before = scene.io.now();
    for _ in 0..20 {
        assert_eq!(hot.get("/small.txt").await.text(), "small\n");
    }
    assert!(scene.io.now() - before < Duration::from_secs(1), "in {:?}", scene.io.now() - before);
    assert!(cold.answer().await.body == noise(1, LARGE_BYTES));
}

async fn all_of_it_arrives_over_ftp(scene: Scene) {
    let mut client = FtpClient::connect(&scene).await;
    client.command("USER ftp").await;
    client.command("PASS x@").await.expect(230);
    client.command("TYPE I").await.expect(200);
    assert!(client.retr("large.bin").await == noise(1, LARGE_BYTES));
}

#[test]
fn a_cold_file_sent_over_http_delays_no_other_client() {
    for_each_seed(a_hot_file_is_answered_meanwhile);
}

#[test]
fn a_cold_file_that_ftp_sends_does_not_hold_up_the_loop() {
    for_each_seed(all_of_it_arrives_over_ftp);
}
