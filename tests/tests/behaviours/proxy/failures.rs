//! Origins that stall, end early, or send too much, too little or nonsense. The client gets 502, 504 or a
//! reset, and never a truncated body that looks complete.

use std::time::Duration;

use plimsoll_tests::{Scene, behaviours};

use super::origin::{LARGE, scripted_scenario as scenario};

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// Asserts that the target gets this status from the proxy itself, and that the connection continues.
async fn fails_with(scene: Scene, status: u16, targets: &[&str]) {
    let mut client = scene.connect().await;
    for target in targets {
        let answer = client.get(target).await;
        assert!(!answer.problem(status).is_empty(), "{target}");
        assert_eq!(client.get("/count").await.status, 200, "{target}");
    }
}

/// Asserts that the connection is aborted in the middle of the response, behind these bytes.
async fn is_aborted(scene: Scene, target: &str, seen: &str) {
    let mut client = scene.connect().await;
    client.send(request(target)).await;
    let bytes = client.expect_abort().await;
    let text = String::from_utf8(bytes).unwrap();
    const BEGIN: &str = "HTTP/1.1 200 OK\r\n";
    assert!(text.starts_with(BEGIN) || BEGIN.starts_with(&text), "{text}");
    assert!(!text.contains(seen) || !text.ends_with("0\r\n\r\n"), "{text}");
    assert_eq!(scene.get("/count").await.status, 200, "another connection is not affected");
}

/// Asserts that the response is incomplete, or 502: a reset may overtake the bytes before it.
async fn is_aborted_or_refused(scene: Scene, target: &str) {
    let mut client = scene.connect().await;
    client.send(request(target)).await;
    if let Ok(answer) = client.try_answer(true).await {
        assert!(!answer.problem(502).is_empty());
    }
    assert_eq!(scene.get("/count").await.status, 200, "another connection is not affected");
}

pub(super) async fn an_origin_that_ends_before_its_response_gets_502(scene: Scene) {
    fails_with(scene, 502, &["/nothing", "/reset", "/cut-head"]).await;
}

pub(super) async fn an_origin_that_sends_no_response_gets_504(scene: Scene) {
    fails_with(scene, 504, &["/stall", "/stall-head"]).await;
}

pub(super) async fn bytes_that_are_no_response_get_502(scene: Scene) {
    fails_with(scene, 502, &["/no-response"]).await;
}

async fn endless_interim_responses_get_502(scene: Scene) {
    let mut client = scene.connect().await;
    client.send(request("/interims")).await;
    loop {
        let answer = client.answer().await;
        if answer.status != 102 {
            assert!(!answer.problem(502).is_empty());
            break;
        }
    }
}

async fn a_switch_of_protocols_that_was_not_requested_gets_502(scene: Scene) {
    fails_with(scene, 502, &["/switch"]).await;
}

pub(super) async fn a_body_cut_short_of_its_length_is_an_abort(scene: Scene) {
    is_aborted(scene, "/cut-length", "half").await;
}

async fn a_large_body_cut_short_of_its_length_is_an_abort_for_a_slow_client(scene: Scene) {
    let mut client = scene.connect().await;
    client.send(request("/cut-large")).await;
    assert_eq!(client.answer_to_head().await.status, 200);
    scene.io.sleep(Duration::from_millis(200)).await;
    let body = client.expect_abort().await;
    assert!(body.len() <= LARGE && body.iter().all(|byte| *byte == b'x'), "{} bytes", body.len());
    assert_eq!(scene.get("/count").await.status, 200, "another connection is not affected");
}

async fn a_body_cut_short_by_a_reset_is_an_abort_or_502(scene: Scene) {
    is_aborted_or_refused(scene, "/reset-body").await;
}

pub(super) async fn a_chunked_body_without_its_last_chunk_is_an_abort(scene: Scene) {
    is_aborted(scene, "/cut-chunked", "hello").await;
}

async fn a_chunk_cut_short_is_an_abort(scene: Scene) {
    is_aborted(scene, "/cut-chunk", "hello").await;
}

async fn a_trailer_section_cut_short_is_an_abort(scene: Scene) {
    is_aborted(scene, "/cut-trailers", "").await;
}

async fn a_body_that_stalls_is_an_abort(scene: Scene) {
    is_aborted(scene, "/stall-body", "half").await;
}

pub(super) async fn a_body_until_the_end_of_a_connection_that_is_reset_is_an_abort_or_502(scene: Scene) {
    is_aborted_or_refused(scene, "/until-reset").await;
}

async fn bytes_behind_a_response_are_no_response_to_the_next_request(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get("/too-much").await.text(), "five!");
    // Nothing distinguishes bytes that arrive after the next request from its response.
    scene.io.sleep(Duration::from_secs(1)).await;
    assert_eq!(client.get("/count").await.text(), "1", "on another connection");
}

pub(super) async fn a_client_that_leaves_ends_its_request(scene: Scene) {
    let mut client = scene.connect().await;
    client.send(request("/stall")).await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn a_request_with_a_body_cut_short_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    client.send("PUT /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nfive!").await;
    client.stream.tx.finish();
    let answer = client.answer().await;
    assert!(!answer.problem(400).is_empty());
    client.expect_end().await;
}

async fn a_request_with_a_malformed_chunk_is_refused(scene: Scene) {
    for body in ["x\r\n", "5\r\nhelloX\r\n", "5 \r\nhello\r\n", "-5\r\nhello\r\n", "fffffffffffffffff\r\n"] {
        let mut client = scene.connect().await;
        let head = "PUT /upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{body}0\r\n\r\n{}", request("/count"))).await;
        let answer = client.answer().await;
        assert!(!answer.problem(400).is_empty(), "{body}");
        assert_eq!(answer.field("Connection"), Some("close"), "{body}");
        client.expect_end().await;
    }
}

async fn a_request_whose_body_stalls_gets_408(scene: Scene) {
    let mut client = scene.connect().await;
    client.send("PUT /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nfive!").await;
    assert!(!client.answer().await.problem(408).is_empty());
    client.expect_end().await;
}

async fn a_response_that_comes_before_the_whole_body_is_relayed(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(format!("PUT /refuse-body HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", 1 << 30));
    client.push(vec![b'x'; 100_000]);
    assert_eq!(client.answer().await.status, 413);
}

behaviours!(scenario and tls;
    an_origin_that_ends_before_its_response_gets_502,
    an_origin_that_sends_no_response_gets_504,
    bytes_that_are_no_response_get_502,
    endless_interim_responses_get_502,
    a_switch_of_protocols_that_was_not_requested_gets_502,
    a_body_cut_short_of_its_length_is_an_abort,
    a_large_body_cut_short_of_its_length_is_an_abort_for_a_slow_client,
    a_body_cut_short_by_a_reset_is_an_abort_or_502,
    a_chunked_body_without_its_last_chunk_is_an_abort,
    a_chunk_cut_short_is_an_abort,
    a_trailer_section_cut_short_is_an_abort,
    a_body_that_stalls_is_an_abort,
    a_body_until_the_end_of_a_connection_that_is_reset_is_an_abort_or_502,
    bytes_behind_a_response_are_no_response_to_the_next_request,
    a_client_that_leaves_ends_its_request,
    a_request_with_a_body_cut_short_is_refused,
    a_request_with_a_malformed_chunk_is_refused,
    a_request_whose_body_stalls_gets_408,
    a_response_that_comes_before_the_whole_body_is_relayed,
);
