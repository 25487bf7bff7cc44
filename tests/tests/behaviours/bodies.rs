//! Bodies of requests: where they end, services that do not read them, and malformed bodies.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Engine, Scenario, Scene, Tree, behaviours};

/// How long a server waits for more of a body.
const RECEIVE_TIME: Duration = Duration::from_secs(30);

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(6, 200_000));
    let limits = Limits { body_bytes_max: 1 << 20, receive_time: RECEIVE_TIME, ..Limits::default() };
    Scenario { tree, limits, ..Scenario::default() }
}

const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

/// Returns the head of an upload to the echo, followed by `rest`.
fn put(fields: &str, rest: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    [head.as_bytes(), rest.as_ref()].concat()
}

fn by_length(body: &[u8]) -> Vec<u8> {
    put(&format!("Content-Length: {}\r\n", body.len()), body)
}

fn chunked(coded: impl AsRef<[u8]>) -> Vec<u8> {
    put("Transfer-Encoding: chunked\r\n", coded)
}

/// Encodes `body` in chunks of `bytes` each.
fn in_chunks(body: &[u8], bytes: usize) -> Vec<u8> {
    let mut coded = Vec::new();
    for chunk in body.chunks(bytes) {
        coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        coded.extend_from_slice(chunk);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\n\r\n");
    coded
}

/// Returns a large body. It is smaller in the simulator, which is slow per byte.
fn large(scene: &Scene) -> Vec<u8> {
    noise(7, if scene.engine == Engine::Simulator { 100_000 } else { 1 << 20 })
}

async fn assert_goes_on(client: &mut Client) {
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
}

/// Asserts that the next answer has `status` and is the last.
async fn assert_refused(client: &mut Client, status: u16) {
    let answer = client.answer().await;
    assert!(!answer.problem(status).is_empty());
    assert_eq!(answer.field("Connection"), Some("close"));
    client.expect_end().await;
}

async fn a_body_ends_after_its_length(scene: Scene) {
    let mut client = scene.connect().await;
    for body in ["x", "hello", "0\r\n\r\n", SMALL] {
        client.push(by_length(body.as_bytes()));
        assert_eq!(client.answer().await.text(), body);
    }
    assert_goes_on(&mut client).await;
}

async fn a_body_may_be_empty(scene: Scene) {
    let mut client = scene.connect().await;
    client.push([by_length(b""), chunked("0\r\n\r\n"), put("", ""), by_length(b"x")].concat());
    for body in ["", "", "", "x"] {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text()), (200, body.to_owned()));
    }
    assert_goes_on(&mut client).await;
}

async fn a_large_body_arrives_whole(scene: Scene) {
    let (mut client, body) = (scene.connect().await, large(&scene));
    client.push(by_length(&body));
    assert!(client.answer().await.body == body);
    client.push(chunked(in_chunks(&body, 10_007)));
    assert!(client.answer().await.body == body);
    assert_goes_on(&mut client).await;
}

async fn chunks_may_have_any_shape(scene: Scene) {
    let mut client = scene.connect().await;
    for coded in [
        "5\r\nhello\r\n0\r\n\r\n",
        "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n",
        "0005\r\nhello\r\n0000\r\n\r\n",
        "0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n",
        "5;a\r\nhello\r\n0;b=1\r\n\r\n",
        "2;name=value\r\nhe\r\n3;name=\"quoted; \\\" value\"\r\nllo\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Trailer: one\r\nX-Other:\r\n\r\n",
        "5\r\nhello\r\n0\r\nContent-Length: 100\r\nHost: other\r\n\r\n",
    ] {
        client.push(chunked(coded));
        assert_eq!(client.answer().await.text(), "hello", "{coded:?}");
    }
    client.push(chunked("A\r\n0123456789\r\na\r\nabcdefghij\r\n0\r\n\r\n"));
    assert_eq!(client.answer().await.text(), "0123456789abcdefghij");
    assert_goes_on(&mut client).await;
}

async fn the_coding_is_named_in_any_case(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put("TRANSFER-encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"));
    assert_eq!(client.answer().await.text(), "hello");
    assert_goes_on(&mut client).await;
}

async fn a_body_may_come_a_byte_at_a_time(scene: Scene) {
    let mut client = scene.connect().await;
    for request in [by_length(b"hello"), chunked("2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n")] {
        for byte in request {
            client.send([byte]).await;
            scene.io.yield_now().await;
        }
        assert_eq!(client.answer().await.text(), "hello");
    }
    assert_goes_on(&mut client).await;
}

async fn the_next_request_begins_where_a_body_ends(scene: Scene) {
    let mut client = scene.connect().await;
    let requests = [by_length(b"one"), chunked("3\r\ntwo\r\n0\r\nX: y\r\n\r\n"), SMALL.into()].concat();
    client.push(requests.repeat(5));
    for _ in 0..5 {
        assert_eq!(client.answer().await.text(), "one");
        assert_eq!(client.answer().await.text(), "two");
        assert_eq!(client.answer().await.text(), "small\n");
    }
}

const EXPECTS: &str = "Content-Length: 5\r\nExpect: 100-continue\r\n";

async fn a_client_that_expects_100_continue_gets_it(scene: Scene) {
    let mut client = scene.connect().await;
    for fields in [EXPECTS, "Content-Length: 5\r\nexpect: 100-Continue\r\n"] {
        client.push(put(fields, ""));
        let leave = client.answer().await;
        assert_eq!((leave.status, leave.fields.len()), (100, 0));
        client.push("hello");
        assert_eq!(client.answer().await.text(), "hello");
    }
    client.push(put("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", ""));
    assert_eq!(client.answer().await.status, 100);
    client.push("5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.answer().await.text(), "hello");
    assert_goes_on(&mut client).await;
}

async fn a_client_that_has_sent_its_body_gets_no_100_continue(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put(EXPECTS, "hello"));
    let mut answer = client.answer().await;
    if scene.engine == Engine::Simulator && answer.status == 100 {
        // In the simulator, one write can arrive in pieces.
        answer = client.answer().await;
    }
    assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
    assert_goes_on(&mut client).await;
}

async fn no_leave_is_given_where_no_body_is_to_come(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put("Content-Length: 0\r\nExpect: 100-continue\r\n", ""));
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(client.get_with("/small.txt", "Expect: 100-continue\r\n").await.text(), "small\n");
    assert_goes_on(&mut client).await;
}

async fn no_leave_is_given_to_http_1_0(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(format!("PUT /test/echo HTTP/1.0\r\n{EXPECTS}\r\nhello"));
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
    client.expect_end().await;
}

async fn an_unwanted_body_gets_no_100_continue(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(format!("PUT /small.txt HTTP/1.1\r\nHost: test\r\n{EXPECTS}\r\n"));
    assert_refused(&mut client, 405).await;
    let mut client = scene.connect().await;
    let answer = client.get_with("/small.txt", EXPECTS).await;
    assert_eq!((answer.text(), answer.field("Connection")), ("small\n".to_owned(), Some("close")));
    client.expect_end().await;
}

async fn no_leave_is_given_for_a_body_that_is_too_long(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(put("Content-Length: 1048577\r\nExpect: 100-continue\r\n", ""));
    assert_refused(&mut client, 413).await;
}

async fn a_body_that_is_announced_as_too_long_is_not_read(scene: Scene) {
    for length in ["1048577", "18446744073709551615"] {
        let mut client = scene.connect().await;
        client.push(put(&format!("Content-Length: {length}\r\n"), ""));
        assert_refused(&mut client, 413).await;
    }
}

/// Asserts that each body gets 400 and the end, and that no following request is answered.
async fn assert_broken(scene: Scene, bodies: &[&str]) {
    for coded in bodies {
        let mut client = scene.connect().await;
        client.push([&*chunked(coded), SMALL.as_bytes()].concat());
        assert_refused(&mut client, 400).await;
    }
}

async fn a_chunk_size_is_hexadecimal_digits_alone(scene: Scene) {
    let sizes = ["", "g", "-1", "+1", "0x5", "5h", " 5", "5 ", "5\t", "5 ;a", "\u{665}", "5,5", "5.0"];
    let bodies = sizes.map(|size| format!("{size}\r\nhello\r\n0\r\n\r\n"));
    assert_broken(scene, &bodies.each_ref().map(|body| body.as_str())).await;
}

async fn a_chunk_size_is_at_most_64_bits(scene: Scene) {
    let sizes = ["00000000000000005", "10000000000000005", "fffffffffffffffff"];
    let bodies = sizes.map(|size| format!("{size}\r\nhello\r\n0\r\n\r\n"));
    assert_broken(scene, &bodies.each_ref().map(|body| body.as_str())).await;
}

async fn a_chunk_ends_in_cr_lf(scene: Scene) {
    let bodies = [
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\n\r\n",
    ];
    assert_broken(scene, &bodies).await;
}

async fn extensions_and_trailers_are_checked(scene: Scene) {
    let long = "x".repeat(9 << 10);
    let bodies = [
        format!("5;{long}\r\nhello\r\n0\r\n\r\n"),
        "5;a\0b\r\nhello\r\n0\r\n\r\n".to_owned(),
        "5;a\nb\r\nhello\r\n0\r\n\r\n".to_owned(),
        format!("5\r\nhello\r\n0\r\nX: {long}\r\n\r\n"),
        "5\r\nhello\r\n0\r\nno colon\r\n\r\n".to_owned(),
        "5\r\nhello\r\n0\r\nX : y\r\n\r\n".to_owned(),
        "5\r\nhello\r\n0\r\nX: y\r\n folded\r\n\r\n".to_owned(),
        "5\r\nhello\r\n0\r\nX: y\n\r\n".to_owned(),
    ];
    assert_broken(scene, &bodies.each_ref().map(|body| body.as_str())).await;
}

async fn a_body_that_ends_early_is_not_taken_for_whole(scene: Scene) {
    let requests = [put("Content-Length: 10\r\n", "hello"), chunked("a\r\nhello"), chunked("5\r\nhello\r\n")];
    for request in requests {
        let mut client = scene.connect().await;
        client.push(request);
        client.stream.tx.finish();
        assert_refused(&mut client, 400).await;
    }
}

async fn a_client_that_aborts_within_a_body_leaves_no_connection(scene: Scene) {
    for request in [put("Content-Length: 10\r\n", "hello"), chunked("a\r\nhello")] {
        let mut client = scene.connect().await;
        assert_goes_on(&mut client).await;
        let begun = scene.begun();
        client.push(request);
        scene.until(|| scene.begun() > begun).await;
        drop(client);
        scene.until(|| scene.open() == 0).await;
    }
}

async fn a_small_unwanted_body_is_skipped(scene: Scene) {
    let mut client = scene.connect().await;
    let get = "GET /small.txt HTTP/1.1\r\nHost: test\r\n";
    let put = "PUT /small.txt HTTP/1.1\r\nHost: test\r\n";
    for body in [
        format!("Content-Length: {}\r\n\r\n{SMALL}", SMALL.len()),
        "Transfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n0\r\n\r\n".to_owned(),
    ] {
        client.push([get, &body, put, &body, SMALL].concat());
        assert_eq!(client.answer().await.text(), "small\n");
        client.answer().await.problem(405);
        assert_eq!(client.answer().await.text(), "small\n");
    }
    assert_goes_on(&mut client).await;
}

async fn a_malformed_unwanted_body_ends_the_connection(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(format!(
        "GET /small.txt HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n\r\n{SMALL}"
    ));
    assert_eq!(client.answer().await.text(), "small\n");
    client.expect_end().await;
}

async fn an_endless_unwanted_body_ends_the_connection(scene: Scene) {
    // More than the server reads of an unwanted body, and far less than the limit of a body.
    let body = noise(9, if scene.engine == Engine::Simulator { 150_000 } else { 400_000 });
    let coded = in_chunks(&body, 10_007);
    let endless = coded.strip_suffix(b"0\r\n\r\n").expect("the last chunk");
    for (method, status) in [("GET", 200), ("PUT", 405)] {
        let mut client = scene.connect().await;
        let head =
            format!("{method} /small.txt HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.push([head.as_bytes(), endless].concat());
        assert_eq!(client.answer().await.status, status);
        // The client sends more, and the server does not wait for the end of the body.
        client.push(endless);
        let sent = scene.io.now();
        client.expect_end().await;
        assert!(scene.io.now() - sent < RECEIVE_TIME / 3, "it waited for more");
        drop(client);
    }
    scene.until(|| scene.open() == 0).await;
}

async fn a_large_unwanted_body_does_not_lose_the_response(scene: Scene) {
    let body = noise(9, if scene.engine == Engine::Simulator { 150_000 } else { 900_000 });
    for (method, status) in [("GET", 200), ("PUT", 405)] {
        let mut client = scene.connect().await;
        let head =
            format!("{method} /large.bin HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
        client.push([head.as_bytes(), &body].concat());
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.field("Connection")), (status, Some("close")));
        assert!(status == 405 || answer.body == noise(6, 200_000));
        client.expect_end().await;
    }
    scene.until(|| scene.open() == 0).await;
}

behaviours!(scenario and tls;
    a_body_ends_after_its_length,
    a_body_may_be_empty,
    a_large_body_arrives_whole,
    chunks_may_have_any_shape,
    the_coding_is_named_in_any_case,
    a_body_may_come_a_byte_at_a_time,
    the_next_request_begins_where_a_body_ends,
    a_client_that_expects_100_continue_gets_it,
    a_client_that_has_sent_its_body_gets_no_100_continue,
    no_leave_is_given_where_no_body_is_to_come,
    no_leave_is_given_to_http_1_0,
    an_unwanted_body_gets_no_100_continue,
    no_leave_is_given_for_a_body_that_is_too_long,
    a_body_that_is_announced_as_too_long_is_not_read,
    a_chunk_size_is_hexadecimal_digits_alone,
    a_chunk_size_is_at_most_64_bits,
    a_chunk_ends_in_cr_lf,
    extensions_and_trailers_are_checked,
    a_body_that_ends_early_is_not_taken_for_whole,
    a_client_that_aborts_within_a_body_leaves_no_connection,
    a_small_unwanted_body_is_skipped,
    a_malformed_unwanted_body_ends_the_connection,
    an_endless_unwanted_body_ends_the_connection,
    a_large_unwanted_body_does_not_lose_the_response,
);
