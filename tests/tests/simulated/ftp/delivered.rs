//! The end of a download's record over a slow network: the arrival of the last byte at the client's machine.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_io::sim::Faults;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{every_seed, simulated};
use plimsoll_tests::{FtpClient, Person, Scene};

use super::scenario;

const BYTES: usize = 3_000;
/// The longest delay of the network.
const DELAY_MAX: Duration = Duration::from_millis(200);
/// The longest that a record may end late.
const PAUSE_MAX: Duration = Duration::from_millis(50);

fn now(scene: &Scene) -> Duration {
    scene.io.wall_exact().duration_since(UNIX_EPOCH).unwrap()
}

async fn download(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    let mut client = FtpClient::of(&scene, "alice").await;
    client.stor("a", noise(1, BYTES)).await;
    let mut data = client.data().await;
    // The client waits for data, not for the reply: it receives each byte at its arrival.
    client.push("RETR a\r\n");
    let (mut received, mut arrived) = (0, Duration::ZERO);
    while let Some(lease) = data.receive().await.unwrap() {
        (received, arrived) = (received + lease.len(), now(&scene));
    }
    assert_eq!(received, BYTES);
    client.reply().await.expect(150);
    client.reply().await.expect(226);
    let of_download = || scene.accounts().lines().into_iter().find(|line| line["operation"] == "download");
    scene.until(|| of_download().is_some()).await;
    let line = of_download().unwrap();
    let end = Duration::from_micros(line["end"].as_u64().unwrap());
    assert_eq!(line["result"], "ok");
    // The log has whole microseconds.
    assert!(end + Duration::from_micros(1) > arrived, "{end:?} is before {arrived:?}");
    assert!(end <= arrived + PAUSE_MAX, "{end:?} is long after {arrived:?}");
}

#[test]
fn the_audit_entry_of_a_download_ends_when_the_last_byte_has_arrived() {
    let faults = Faults { delay_max: DELAY_MAX, ..Faults::none() };
    for seed in every_seed().step_by(4) {
        simulated(seed, faults, &scenario(), download);
    }
}
