//! The time limit in which a peer must receive a part of the bytes that are sent to it.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Scenario, Scene, Tree, behaviours};

const SEND_TIME: Duration = Duration::from_secs(1);
const LARGE_BYTES: usize = 400_000;

fn scenario() -> Scenario {
    let limits = Limits { send_time: SEND_TIME, ..Limits::default() };
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(2, LARGE_BYTES));
    Scenario { tree, limits, ..Scenario::default() }
}

const LARGE: &str = "GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n";
/// Answers of this many large files are more than all buffers between two processes hold.
const LARGE_ANSWERS: usize = 60;

/// The bytes that a slow reader over TLS receives between its pauses: more than arrive at once.
const PAUSED_EVERY_BYTES: usize = 32 * 1024;

async fn a_reader_that_takes_nothing_is_cut_off(scene: Scene) {
    let mut client = scene.connect().await;
    let began = scene.io.now();
    client.push(LARGE.repeat(LARGE_ANSWERS));
    scene.until(|| scene.open() == 1).await;
    scene.until(|| scene.open() == 0).await;
    let passed = scene.io.now() - began;
    assert!(passed >= SEND_TIME, "after {passed:?} already");
    if scene.engine == Engine::Simulator {
        // The simulated kernel takes some bytes in the first period, and none in the second.
        assert!(passed < 2 * SEND_TIME + Duration::from_secs(1), "only after {passed:?}");
    }
    let taken = client.expect_abort().await;
    assert!(taken.len() < LARGE_ANSWERS * LARGE_BYTES);
}

async fn a_reader_that_receives_nothing_delays_no_other(scene: Scene) {
    let mut stuck = scene.connect().await;
    stuck.push(LARGE.repeat(LARGE_ANSWERS));
    scene.until(|| scene.begun() > 0).await;
    let mut client = scene.connect().await;
    for _ in 0..5 {
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
    }
}

async fn a_reader_that_is_slow_gets_everything(scene: Scene) {
    let mut client = scene.connect().await;
    // The more the buffers hold, the more bytes a slow reader needs.
    let (count, pause) = match scene.engine {
        Engine::Simulator => (1, SEND_TIME / 2),
        _ => (LARGE_ANSWERS, Duration::from_millis(4)),
    };
    let last = "GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    client.push([&*LARGE.repeat(count - 1), last].concat());
    // Several small records arrive at once, and are received without any progress of the connection.
    let bytes_between = if client.stream.is_encrypted() { PAUSED_EVERY_BYTES } else { 0 };
    let began = scene.io.now();
    let (mut taken, mut paused_at) = (Vec::new(), 0);
    while let Some(lease) = client.receive().await.expect("not cut off") {
        taken.extend_from_slice(&lease);
        if taken.len() - paused_at >= bytes_between {
            paused_at = taken.len();
            scene.io.sleep(pause).await;
        }
    }
    assert!(scene.io.now() - began > SEND_TIME);
    let file = noise(2, LARGE_BYTES);
    assert!(taken.ends_with(&file));
    assert!(taken.len() > count * LARGE_BYTES && taken.len() < count * (LARGE_BYTES + 1000));
}

behaviours!(scenario and tls;
    a_reader_that_takes_nothing_is_cut_off,
    a_reader_that_receives_nothing_delays_no_other,
    a_reader_that_is_slow_gets_everything,
);
