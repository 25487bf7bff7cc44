//! Limits of time and size: slow peers are served, stuck peers are disconnected, and no buffer grows for
//! ever.
//!
//! Under a real engine, only outcomes are asserted; their time, in the simulator. There, a connection may
//! carry a byte in some milliseconds and no faster, so each file shortens only its own limit.

mod heads;
mod idle;
mod lingering;
mod readers;
mod slow_bodies;
mod uploads;

use std::time::Duration;

use plimsoll_io::Instant;
use plimsoll_tests::{Client, Engine, Scene};

const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

/// Asserts, in the simulator, that `time` has passed since `from`, and not much more. Over TLS, the first
/// byte can be read when the whole record has arrived, at a byte in some milliseconds.
fn assert_passed(scene: &Scene, from: Instant, time: Duration) {
    if scene.engine == Engine::Simulator {
        let passed = scene.io.now() - from;
        let arrival = Duration::from_millis(if scene.scheme() == "https" { 500 } else { 100 });
        assert!(passed >= time, "after {passed:?} already");
        assert!(passed < time + arrival, "only after {passed:?}");
    }
}

/// Asserts that the server answers 408 after `time` without a byte, and ends.
async fn assert_late(scene: &Scene, client: &mut Client, time: Duration) {
    let sent = scene.io.now();
    let first = client.receive().await.unwrap().expect("an answer");
    assert_passed(scene, sent, time);
    let mut answer = first.to_vec();
    while let Some(lease) = client.receive().await.unwrap() {
        answer.extend_from_slice(&lease);
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

/// Asserts that the server answers 408 at some time, and ends.
async fn assert_408(client: &mut Client) {
    let answer = client.answer().await;
    answer.problem(408);
    assert_eq!(answer.field("Connection"), Some("close"));
    client.expect_end().await;
}
