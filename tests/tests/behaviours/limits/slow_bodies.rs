//! The time limit of a complete body without valid credentials, however often a byte arrives, and the further
//! second for every 500 bytes received.

use std::time::Duration;

use plimsoll_io::{Either, select};
use plimsoll_proto::http::Limits;
use plimsoll_tests::{Client, Scenario, Scene, behaviours};

const BODY_TIME: Duration = Duration::from_secs(2);
/// The interval of the sent bytes, far shorter than the receive deadline.
const BYTE_TIME: Duration = Duration::from_millis(200);
/// Bytes that earn a body one more second.
const BYTES_PER_SECOND: usize = 500;
const REFUSED: &[u8] = b"HTTP/1.1 408 ";

fn scenario() -> Scenario {
    Scenario { limits: Limits { body_time: BODY_TIME, ..Limits::default() }, ..Scenario::default() }
}

/// Begins an upload with `bytes` at once, sends further bytes one by one, and returns how long it took until
/// the server refused the body.
async fn refused_after(scene: &Scene, bytes: usize) -> Duration {
    let mut client: Client = scene.connect().await;
    client.push("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n\r\n");
    client.push(vec![b'0'; bytes]);
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
    scene.io.now() - began
}

async fn a_slow_body_without_credentials_is_refused_after_a_time_for_the_whole(scene: Scene) {
    assert!(refused_after(&scene, 1).await >= BODY_TIME);
}

async fn every_500_bytes_of_a_body_without_credentials_earn_it_a_second(scene: Scene) {
    let seconds = 2;
    let passed = refused_after(&scene, seconds * BYTES_PER_SECOND).await;
    assert!(passed >= BODY_TIME + Duration::from_secs(seconds as u64), "after {passed:?} already");
}

behaviours!(scenario and tls;
    a_slow_body_without_credentials_is_refused_after_a_time_for_the_whole,
    every_500_bytes_of_a_body_without_credentials_earn_it_a_second,
);
