//! The time limit between a body's bytes, and the maximal length of a body.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

use super::{assert_408, assert_late};

const RECEIVE_TIME: Duration = Duration::from_secs(1);
const BODY_BYTES_MAX: usize = 10_000;

fn scenario() -> Scenario {
    let limits =
        Limits { body_bytes_max: BODY_BYTES_MAX as u64, receive_time: RECEIVE_TIME, ..Limits::default() };
    Scenario { tree: Tree::new().file("small.txt", "small\n"), limits, ..Scenario::default() }
}

/// Returns the head of an upload, followed by `rest`.
fn put(fields: &str, rest: &str) -> String {
    format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n{rest}")
}

async fn a_body_that_stalls_is_refused(scene: Scene) {
    let (mut by_length, mut chunked) = (scene.connect().await, scene.connect().await);
    by_length.push(put("Content-Length: 10\r\n", "hello"));
    chunked.push(put("Transfer-Encoding: chunked\r\n", "5\r\n"));
    assert_408(&mut by_length).await;
    assert_408(&mut chunked).await;
}

async fn time_for_a_body_runs_from_its_last_byte(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put("Content-Length: 10\r\nExpect: 100-continue\r\n", ""));
    assert_eq!(client.answer().await.status, 100);
    client.push("h");
    assert_late(&scene, &mut client, RECEIVE_TIME).await;
}

async fn a_body_that_comes_slowly_is_taken(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put("Content-Length: 10\r\n", ""));
    let began = scene.io.now();
    for byte in b"0123456789" {
        scene.io.sleep(RECEIVE_TIME / 8).await;
        client.push([*byte]);
    }
    assert_eq!(client.answer().await.text(), "0123456789");
    assert!(scene.io.now() - began > RECEIVE_TIME);
}

async fn a_body_as_long_as_may_be_is_taken(scene: Scene) {
    let mut client = scene.connect().await;
    let body = "x".repeat(BODY_BYTES_MAX);
    client.push(put(&format!("Content-Length: {BODY_BYTES_MAX}\r\n"), &body));
    assert_eq!(client.answer().await.text(), body);
    client.push(put("Transfer-Encoding: chunked\r\n", &format!("{BODY_BYTES_MAX:x}\r\n{body}\r\n0\r\n\r\n")));
    assert_eq!(client.answer().await.text(), body);
}

async fn a_body_that_turns_out_to_be_too_long_is_refused(scene: Scene) {
    let one_too_many = BODY_BYTES_MAX + 1;
    let body = "x".repeat(one_too_many);
    for coded in [
        format!("{one_too_many:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{BODY_BYTES_MAX:x}\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", &body[1..]),
        "1\r\nx\r\n".repeat(one_too_many),
    ] {
        let mut client = scene.connect().await;
        client.push(put("Transfer-Encoding: chunked\r\n", &coded));
        let answer = client.answer().await;
        answer.problem(413);
        assert_eq!(answer.field("Connection"), Some("close"));
        client.expect_end().await;
    }
}

behaviours!(scenario and tls;
    a_body_that_stalls_is_refused,
    time_for_a_body_runs_from_its_last_byte,
    a_body_that_comes_slowly_is_taken,
    a_body_as_long_as_may_be_is_taken,
    a_body_that_turns_out_to_be_too_long_is_refused,
);
