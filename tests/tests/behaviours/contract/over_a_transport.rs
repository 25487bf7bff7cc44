//! The contract under TLS: a transport over a transport, with a handshake, records and no files.

use plimsoll_tests::tls::{SERVER_NAME, accept, connector};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{
    Answer, Client, Engine, LOOKED_UP_EACH_TIME, Protocol, Scenario, Scene, Tree, behaviours,
};

const LARGE_BYTES: usize = 40_000;

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, LARGE_BYTES));
    let protocol = Protocol::HttpOver(accept);
    Scenario { tree, protocol, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

async fn connect(scene: &Scene) -> Client {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    connector(&["http/1.1"]).connect(&scene.io, &mut stream, SERVER_NAME).await.expect("a handshake");
    Client::new(&scene.io, stream)
}

/// Asserts an answer with two parts of `large.bin`, in the format of RFC 2046.
fn assert_two_parts(answer: &Answer) {
    let media = answer.field("Content-Type").expect("a type");
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").expect("a multipart type");
    let (file, mut expected) = (noise(1, LARGE_BYTES), Vec::new());
    for range in [10..=20, 30_000..=30_500] {
        let (first, last) = (range.start(), range.end());
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
             Content-Range: bytes {first}-{last}/{LARGE_BYTES}\r\n\r\n"
        );
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(&file[range]);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert_eq!(answer.status, 206);
    assert!(answer.body == expected, "{}", String::from_utf8_lossy(&answer.body));
}

async fn http_is_spoken_over_it_unchanged(scene: Scene) {
    let mut client = connect(&scene).await;
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
    assert!(client.get("/large.bin").await.body == noise(1, LARGE_BYTES));
    let parts = client.get_with("/large.bin", "Range: bytes=10-20,30000-30500\r\n").await;
    assert_two_parts(&parts);
    let closed = client.get_with("/small.txt", "Connection: close\r\n").await;
    assert_eq!(closed.text(), "small\n");
    client.expect_end().await;
}

async fn a_handshake_that_fails_ends_that_connection_alone(scene: Scene) {
    let mut stranger = scene.connect().await;
    stranger.push("GET / HTTP/1.1\r\n\r\n");
    // An alert, and nothing in clear.
    let alert = stranger.rest().await.expect("a clean end");
    assert!(matches!(alert[..], [21, 3, _, 0, 2, 2, _]), "{alert:?}");
    assert_eq!(connect(&scene).await.get("/small.txt").await.status, 200);
}

/// Writes and returns a file larger than the buffers between server and client: the kernel's, or a
/// simulated network's.
fn put_huge(scene: &Scene) -> Vec<u8> {
    let bytes = noise(3, if scene.engine == Engine::Simulator { 400_000 } else { 20_000_000 });
    scene.write("huge.bin", &bytes);
    bytes
}

/// Requests the huge file and reads the answer's head.
async fn begin(scene: &Scene) -> Client {
    let mut client = connect(scene).await;
    client.send("GET /huge.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(client.answer_to_head().await.status, 200);
    client
}

async fn a_file_that_shrinks_aborts_the_response_over_a_transport_too(scene: Scene) {
    let all = put_huge(&scene);
    let mut client = begin(&scene).await;
    scene.truncate("huge.bin", 8192);
    let came = client.expect_abort().await;
    assert!(came.len() < all.len() && all.starts_with(&came), "{} bytes", came.len());
    assert_eq!(connect(&scene).await.get("/small.txt").await.text(), "small\n");
}

async fn at_the_order_to_stop_what_was_begun_is_finished_over_it_too(scene: Scene) {
    let all = put_huge(&scene);
    let mut begun = begin(&scene).await;
    let mut idle = connect(&scene).await;
    assert_eq!(idle.get("/small.txt").await.text(), "small\n");
    scene.stop.order();
    // The end record of this transport, not only the end of the inner one.
    idle.expect_end().await;
    assert!(begun.body(all.len()).await.expect("all of it") == all);
    begun.expect_end().await;
    drop((idle, begun));
    scene.until(|| scene.open() == 0).await;
}

behaviours!(
    scenario;
    http_is_spoken_over_it_unchanged,
    a_file_that_shrinks_aborts_the_response_over_a_transport_too,
    at_the_order_to_stop_what_was_begun_is_finished_over_it_too,
    a_handshake_that_fails_ends_that_connection_alone,
);
