//! One exchange, split once: after each of its bytes in turn.

use plimsoll_io::sim::Faults;
use plimsoll_tests::under::simulated;
use plimsoll_tests::{Scenario, Scene, Tree};

const REQUESTS: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n\
    PUT /test/echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
    5;x=\"y\"\r\nhello\r\n0a\r\n, trailer!\r\n0\r\nX-Trailer: one\r\n\r\n\
    GET /small.txt HTTP/1.1\r\nHost: test\r\nRange: bytes=1-3\r\nConnection: close\r\n\r\n";

/// More bytes than the requests have, so that the first bytes of each answer are covered, too.
const ANSWER_BYTES: usize = 700;

fn scenario() -> Scenario {
    Scenario { tree: Tree::new().file("small.txt", "small\n"), ..Scenario::default() }
}

async fn three_requests_are_answered(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(REQUESTS);
    assert_eq!(client.answer().await.text(), "small\n");
    assert_eq!(client.answer().await.text(), "hello, trailer!");
    let range = client.answer().await;
    assert_eq!((range.status, range.text()), (206, "mal".to_owned()));
    client.expect_end().await;
    scene.until(|| scene.open() == 0).await;
}

#[test]
fn three_requests_are_answered_wherever_they_are_cut() {
    for bytes in 0..REQUESTS.len().max(ANSWER_BYTES) {
        simulated(0, Faults::split_at(bytes), &scenario(), three_requests_are_answered);
    }
}

/// More bytes than each side sends over TLS: the handshake, tickets, and the records behind them.
const OVER_TLS_BYTES: usize = 3_000;

#[test]
fn three_requests_are_answered_over_tls_wherever_its_records_are_cut() {
    let scenario = Scenario { is_encrypted: true, ..scenario() };
    for bytes in 0..OVER_TLS_BYTES {
        simulated(0, Faults::split_at(bytes), &scenario, three_requests_are_answered);
    }
}

/// As [`three_requests_are_answered`], but the second part is sent only after the server has processed the
/// first.
#[test]
fn three_requests_are_answered_wherever_their_sender_pauses() {
    for bytes in 1..REQUESTS.len() {
        simulated(0, Faults::none(), &scenario(), move |scene| async move {
            let mut client = scene.connect().await;
            let (first, second) = REQUESTS.split_at(bytes);
            client.send(first).await;
            scene.io.sleep(std::time::Duration::from_secs(1)).await;
            client.push(second);
            for body in ["small\n", "hello, trailer!", "mal"] {
                assert_eq!(client.answer().await.text(), body, "cut after {bytes} bytes");
            }
            client.expect_end().await;
        });
    }
}
