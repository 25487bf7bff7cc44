//! Ambiguous responses of an origin: each is refused, and no byte of it is taken for another response.

use std::rc::Rc;

use plimsoll_io::{Address, Handler, Io, Segment, Stream, Want};
use plimsoll_proxy::Settings;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::service::Each;
use plimsoll_tests::{Protocol, Scenario, Scene, behaviours};

/// Heads that are no response, or have more than one reading. Each is followed by a body of five bytes and
/// another response.
const HEADS: &[&str] = &[
    // Two lengths of a body.
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\ncontent-length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\ncontent-length: 6\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5,6\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    // Lengths that are no number.
    "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5.0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5e0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: \"5\"\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5;\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: ,5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: \u{665}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\u{b}\r\n\r\n",
    // Transfer codings.
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunkedx\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\0\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    // Lines and their ends.
    "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\nX: a\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\n",
    "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\r\n\r\n",
    "HTTP/1.1 200 OK\rContent-Length: 5\r\n\r\n",
    "\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    " HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    // Names and values.
    "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX\0: a\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: \u{1b}[1m\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length\t: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\n: a\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\n(X): a\r\nContent-Length: 5\r\n\r\n",
    // Status lines.
    "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/0.9 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/11 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 099 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 600 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1\t200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 O\0K\r\nContent-Length: 5\r\n\r\n",
    "ICY 200 OK\r\nContent-Length: 5\r\n\r\n",
    "200 OK\r\nContent-Length: 5\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "hello\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n\r\n",
];

/// Heads of responses without a body, although their fields announce one. Behind each are a body and another
/// response.
const BODILESS: &[&str] = &[
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
];

/// Interim responses whose fields announce a body. A final response follows each.
const INTERIMS: &[&str] = &[
    "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
];

/// Chunked bodies that are malformed. Each is followed by another response.
const CHUNKS: &[&str] = &[
    "5 \r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\rhello\r\n0\r\n\r\n",
    "g\r\nhello\r\n0\r\n\r\n",
    "\r\nhello\r\n0\r\n\r\n",
    ";a\r\nhello\r\n0\r\n\r\n",
    "5,5\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "5;a\n\r\nhello\r\n0\r\n\r\n",
    "5;a\rb\r\nhello\r\n0\r\n\r\n",
    "5;a\0\r\nhello\r\n0\r\n\r\n",
    "5;a\u{7f}\r\nhello\r\n0\r\n\r\n",
    "5 ;a\r\nhello\r\n0\r\n\r\n",
    "5\t;a\r\nhello\r\n0\r\n\r\n",
    "5\r\nhelloX\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello\r0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "6\r\nhello\r\n0\r\n\r\n",
    "4\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\n\r\n",
    "5\r\nhello\r\n0 \r\n\r\n",
    "5\r\nhello\r\n0\r\n\n",
    "5\r\nhello\r\n0\r\n\r\r\n",
    "5\r\nhello\r\n0\r\n X: folded\r\n\r\n",
    "5\r\nhello\r\n0\r\nX\r\n\r\n",
    "5\r\nhello\r\n0\r\nX : a\r\n\r\n",
    "5\r\nhello\r\n0\r\nX: a\nY: b\r\n\r\n",
    "5\r\nhello\r\n0\r\nX: a\0\r\n\r\n",
    "5\r\nhello\r\n0\r\n: a\r\n\r\n",
    "5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n",
];

/// Follows each of them.
const NEXT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

fn scenario() -> Scenario {
    assert!(HEADS.len() >= 75, "{}", HEADS.len());
    Scenario { protocol: Protocol::Of(origin), proxy: Some(of_plain), ..Scenario::default() }
}

fn of_plain(origin: &Address) -> Settings {
    plain(origin)
}

fn origin(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, serve))
}

/// Answers each request as its target says: `/head/N`, `/chunks/N`, `/long/N` and so on, or anything else.
async fn serve(_: Io, mut stream: Stream) {
    let mut received = Vec::new();
    while let Ok(Some(lease)) = stream.rx.recv(Want::Head).await {
        received.extend_from_slice(&lease);
        if received.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8(std::mem::take(&mut received)).expect("ASCII");
            let target = head.split(' ').nth(1).expect("a target");
            stream.tx.push(Segment::Owned(response(target)));
        }
    }
}

fn response(target: &str) -> Vec<u8> {
    let (kind, number) = target.rsplit_once('/').expect("a path");
    let number = || number.parse::<usize>().expect("a number");
    let response = match kind {
        "/head" => format!("{}hello{NEXT}", HEADS[number()]),
        "/bodiless" => format!("{}hello{NEXT}", BODILESS[number()]),
        "/ended" => BODILESS[number()].to_owned(),
        "/interim" => format!("{}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine", INTERIMS[number()]),
        "/interim-body" => format!("{}hello{NEXT}", INTERIMS[number()]),
        "/chunks" => {
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}{NEXT}", CHUNKS[number()])
        }
        "/long" => long(number()),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine".to_owned(),
    };
    response.into_bytes()
}

/// Responses above a limit.
fn long(number: usize) -> String {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{ok}Transfer-Encoding: chunked\r\n\r\n");
    match number {
        0 => format!("{ok}X: {}\r\nContent-Length: 5\r\n\r\nhello{NEXT}", "x".repeat(40_000)),
        1 => format!("{ok}{}Content-Length: 5\r\n\r\nhello{NEXT}", "X: y\r\n".repeat(100)),
        2 => format!("{chunked}5;{}\r\nhello\r\n0\r\n\r\n{NEXT}", "x".repeat(2_000)),
        3 => format!("{chunked}5\r\nhello\r\n0\r\nX: {}\r\n\r\n{NEXT}", "x".repeat(9_000)),
        _ => format!("{chunked}5\r\nhello\r\n0\r\n{}\r\n{NEXT}", "X: y\r\n".repeat(70)),
    }
}

async fn heads_with_more_than_one_reading_get_502(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, shape) in HEADS.iter().enumerate() {
        let answer = client.get(&format!("/head/{number}")).await;
        assert!(answer.status == 502 && !answer.text().contains("evil"), "{shape:?}: {answer:?}");
        assert_eq!(client.get("/next").await.text(), "fine", "{shape:?}");
    }
}

async fn a_response_that_has_no_body_ends_with_its_head_whatever_its_fields_say(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, shape) in BODILESS.iter().enumerate() {
        for kind in ["bodiless", "ended"] {
            let answer = client.get(&format!("/{kind}/{number}")).await;
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{shape:?}");
            assert_eq!((answer.field("Content-Length"), answer.field("Transfer-Encoding")), (None, None));
            assert_eq!(client.get("/next").await.text(), "fine", "{shape:?}");
        }
    }
}

async fn an_interim_response_has_no_body_whatever_its_fields_say(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, shape) in INTERIMS.iter().enumerate() {
        let interim = client.get(&format!("/interim/{number}")).await;
        assert!(interim.status < 200 && interim.field("Content-Length").is_none(), "{shape:?}");
        assert_eq!(client.answer().await.text(), "fine", "{shape:?}");
        // A body that follows all the same is no response.
        assert!(client.get(&format!("/interim-body/{number}")).await.status < 200);
        assert!(!client.answer().await.problem(502).is_empty(), "{shape:?}");
        assert_eq!(client.get("/next").await.text(), "fine", "{shape:?}");
    }
}

/// Asserts that the response is aborted, and what was behind it is not the next response.
async fn is_aborted(scene: &Scene, target: &str, shape: &str) {
    let mut client = scene.connect().await;
    client
        .push(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\nGET /next HTTP/1.1\r\nHost: test\r\n\r\n"));
    let seen = String::from_utf8(client.expect_abort().await).unwrap();
    assert!(!seen.contains("evil") && !seen.ends_with("0\r\n\r\n"), "{shape:?}: {seen:?}");
    assert_eq!(scene.get("/next").await.text(), "fine", "{shape:?}");
}

async fn malformed_chunks_are_an_abort(scene: Scene) {
    for (number, shape) in CHUNKS.iter().enumerate() {
        is_aborted(&scene, &format!("/chunks/{number}"), shape).await;
    }
}

async fn responses_above_a_limit_are_refused(scene: Scene) {
    let mut client = scene.connect().await;
    for number in 0..2 {
        assert!(!client.get(&format!("/long/{number}")).await.problem(502).is_empty());
    }
    for number in 2..5 {
        is_aborted(&scene, &format!("/long/{number}"), "long").await;
    }
}

behaviours!(scenario and tls;
    heads_with_more_than_one_reading_get_502,
    a_response_that_has_no_body_ends_with_its_head_whatever_its_fields_say,
    an_interim_response_has_no_body_whatever_its_fields_say,
    malformed_chunks_are_an_abort,
    responses_above_a_limit_are_refused,
);
