//! The file server behind the proxy: requests and responses arrive as they were sent.

use std::sync::LazyLock;

use plimsoll_tests::proxy::plain;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours, together};

/// More than the buffers of both connections.
const LARGE: usize = 3 << 20;

/// The bytes of the longest body.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| noise(7, LARGE));

pub(super) fn scenario() -> Scenario {
    let tree = Tree::new()
        .file("small.txt", "small\n")
        .file("empty.txt", "")
        .file("large.bin", pattern(LARGE))
        .file("folder/a.txt", "a\n");
    Scenario { tree, proxy: Some(plain), ..Scenario::default() }
}

fn pattern(len: usize) -> Vec<u8> {
    PATTERN[..len].to_vec()
}

pub(super) async fn files_of_all_sizes_arrive_as_they_are(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        assert_eq!(client.get("/empty.txt").await.body, b"");
        let large = client.get("/large.bin").await;
        assert!(large.body == pattern(LARGE), "{} bytes", large.body.len());
        assert_eq!(client.get("/missing").await.status, 404);
        assert_eq!(client.head_with("/small.txt", "").await.field("Content-Length"), Some("6"));
    }
}

pub(super) async fn ranges_and_conditions_are_those_of_the_origin(scene: Scene) {
    let mut client = scene.connect().await;
    let part = client.get_with("/large.bin", "Range: bytes=1000-1999\r\n").await;
    assert_eq!((part.status, &part.body[..]), (206, &pattern(LARGE)[1000..2000]));
    let etag = client.get("/small.txt").await.field("ETag").unwrap().to_owned();
    let unchanged = client.get_with("/small.txt", &format!("If-None-Match: {etag}\r\n")).await;
    assert_eq!((unchanged.status, unchanged.field("ETag")), (304, Some(&*etag)));
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
}

pub(super) async fn bodies_arrive_at_the_origin_whole(scene: Scene) {
    let mut client = scene.connect().await;
    for len in [0, 1, 5_000, 300_000, LARGE] {
        let body = pattern(len);
        let echo = client.ask("PUT", "/test/echo", "", &body).await;
        assert!(echo.status == 200 && echo.body == body, "{len}: {} {}", echo.status, echo.body.len());
    }
}

pub(super) async fn chunked_bodies_arrive_at_the_origin_whole(scene: Scene) {
    let mut client = scene.connect().await;
    for sizes in [&[1][..], &[5, 70_000, 1], &[200_000; 5]] {
        let mut sent =
            b"PUT /test/echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for size in sizes {
            sent.extend_from_slice(format!("{size:x};ext=1\r\n").as_bytes());
            sent.extend_from_slice(&pattern(*size));
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(b"0\r\nX-Trailer: 1\r\n\r\n");
        client.push(sent);
        let echo = client.answer().await;
        let wanted = sizes.iter().map(|size| pattern(*size)).collect::<Vec<_>>().concat();
        assert!(echo.status == 200 && echo.body == wanted, "{} {}", echo.status, echo.body.len());
    }
}

pub(super) async fn pipelined_requests_are_answered_in_their_order(scene: Scene) {
    let mut client = scene.connect().await;
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
    let put = "PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello";
    client.push(format!("{}{put}{}{put}{}", get("/small.txt"), get("/folder/a.txt"), get("/missing")));
    assert_eq!(client.answer().await.text(), "small\n");
    assert_eq!(client.answer().await.text(), "hello");
    assert_eq!(client.answer().await.text(), "a\n");
    assert_eq!(client.answer().await.text(), "hello");
    assert_eq!(client.answer().await.status, 404);
}

pub(super) async fn many_clients_get_their_own_responses(scene: Scene) {
    let visits = (0..12).map(|number: usize| {
        let scene = scene.clone();
        async move {
            let mut client = scene.connect().await;
            for round in 0..5 {
                let body = pattern(1_000 * number + round);
                assert!(client.ask("PUT", "/test/echo", "", &body).await.body == body);
                assert_eq!(client.get("/small.txt").await.text(), "small\n");
            }
        }
    });
    together(visits).await;
}

pub(super) async fn a_slow_client_gets_the_whole_response(scene: Scene) {
    let mut client = scene.connect().await;
    client.send("GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").await;
    scene.io.sleep(std::time::Duration::from_millis(200)).await;
    let text = client.rest().await.unwrap();
    assert!(text.ends_with(&pattern(LARGE)), "{} bytes", text.len());
}

async fn a_client_that_aborts_in_the_middle_disturbs_no_other(scene: Scene) {
    let mut slow = scene.connect().await;
    slow.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    for parts in [0, 1, 4] {
        let mut gone = scene.connect().await;
        gone.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
        assert_eq!(gone.answer_to_head().await.status, 200);
        gone.body(LARGE / 8 * parts).await.unwrap();
        drop(gone);
        assert!(scene.get("/large.bin").await.body == pattern(LARGE), "{parts}");
    }
    assert!(slow.answer().await.body == pattern(LARGE));
}

async fn a_connection_ends_as_the_client_requests(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get_with("/small.txt", "Connection: close\r\n").await;
    assert_eq!(answer.field("Connection"), Some("close"));
    client.expect_end().await;
    scene.until(|| scene.open() == 0).await;
}

async fn a_request_in_progress_is_completed_when_the_proxy_stops(scene: Scene) {
    let mut client = scene.connect().await;
    let mut idle = scene.connect().await;
    assert_eq!(idle.get("/small.txt").await.status, 200);
    client.send("GET /test/slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
    scene.until(|| scene.begun() >= 2).await;
    scene.stop.order();
    let answer = client.answer().await;
    assert_eq!((answer.text(), answer.field("Connection")), ("late\n".to_owned(), Some("close")));
    client.expect_end().await;
    idle.expect_end().await;
}

behaviours!(scenario and tls;
    files_of_all_sizes_arrive_as_they_are,
    ranges_and_conditions_are_those_of_the_origin,
    bodies_arrive_at_the_origin_whole,
    chunked_bodies_arrive_at_the_origin_whole,
    pipelined_requests_are_answered_in_their_order,
    many_clients_get_their_own_responses,
    a_slow_client_gets_the_whole_response,
    a_connection_ends_as_the_client_requests,
    a_request_in_progress_is_completed_when_the_proxy_stops,
);

mod large {
    use plimsoll_tests::{Scenario, behaviours};

    use super::a_client_that_aborts_in_the_middle_disturbs_no_other;

    fn scenario() -> Scenario {
        Scenario { is_large: true, ..super::scenario() }
    }

    behaviours!(scenario and tls; a_client_that_aborts_in_the_middle_disturbs_no_other);
}
