//! The time limit of a complete body without valid credentials, however often a byte arrives.

use std::time::Duration;

use plimsoll_io::{Either, select};
use plimsoll_proto::http::Limits;
use plimsoll_tests::{Scenario, Scene, behaviours};

const BODY_TIME: Duration = Duration::from_secs(2);
/// The interval of the sent bytes, far shorter than the receive deadline.
const BYTE_TIME: Duration = Duration::from_millis(200);
const REFUSED: &[u8] = b"HTTP/1.1 408 ";

fn scenario() -> Scenario {
    Scenario { limits: Limits { body_time: BODY_TIME, ..Limits::default() }, ..Scenario::default() }
}

async fn a_slow_body_without_credentials_is_refused_after_a_time_for_the_whole(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n0");
    let began = scene.io.now();
    let mut response = Vec::new();
    // The simulator may carry the answer byte by byte.
    while response.len() < REFUSED.len() {
        if response.is_empty() {
            client.push("0");
        }
        if let Either::Left(received) = select(client.receive(), scene.io.sleep(BYTE_TIME)).await {
            response.extend_from_slice(&received.unwrap().expect("a response"));
        }
        assert!(scene.io.now() - began < 10 * BODY_TIME, "there is a deadline");
    }
    assert!(response.starts_with(REFUSED), "{}", String::from_utf8_lossy(&response));
    assert!(scene.io.now() - began >= BODY_TIME);
}

behaviours!(scenario; a_slow_body_without_credentials_is_refused_after_a_time_for_the_whole);
