//! Answers of every form, however they arrive.

use plimsoll_client::http::limits::HEAD;
use plimsoll_client::http::{Error, Request};
use plimsoll_io::sim::{Faults, seeds};
use plimsoll_wire::http::response::BadResponse;

use crate::{MAX, answer_once, calm, get, run, status_and_body};

/// An answer, whether it leaves the connection open, its status and its text.
const ANSWERS: &[(&str, bool, u16, &str)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true, 200, "hello"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, 200, ""),
    ("HTTP/1.1 204 No Content\r\n\r\n", true, 204, ""),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false, 204, ""),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, 204, ""),
    (
        "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        true,
        200,
        "ok",
    ),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true, 304, ""),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nhel\r\n002\r\nlo\r\n0\r\nT: x\r\n\r\n",
        true,
        200,
        "hello",
    ),
    ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", false, 404, "no"),
    ("HTTP/1.1 200 OK\r\n\r\nuntil the end", false, 200, "until the end"),
    ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", false, 200, "old"),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        true,
        200,
        "ok",
    ),
];

/// Sends two requests, on one connection if it is left open.
fn twice(world: (u64, Faults), (answer, stays, status, text): (&'static str, bool, u16, &'static str)) {
    let expected = (status, text.to_owned());
    run(
        world,
        async move |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            if !stays {
                peer.end(answer).await;
                peer = server.accept().await;
            } else {
                peer.send_bytes(answer);
            }
            peer.head().await;
            peer.end(answer).await;
        },
        async move |mut client, _| {
            assert_eq!(
                status_and_body(client.send(get("/one")).await).await.unwrap(),
                expected,
                "{answer:?}"
            );
            assert_eq!(
                status_and_body(client.send(get("/two")).await).await.unwrap(),
                expected,
                "{answer:?} again"
            );
        },
    );
}

#[test]
fn a_response_parses_alike_wherever_its_bytes_are_split() {
    for shape in ANSWERS {
        for bytes in 0..=shape.0.len() {
            twice((0, Faults::split_at(bytes)), *shape);
        }
    }
}

#[test]
fn a_response_parses_alike_in_any_number_of_receives() {
    for seed in seeds(200) {
        for shape in ANSWERS {
            twice((seed, Faults::splits()), *shape);
        }
    }
}

#[test]
fn a_request_has_the_callers_method_target_and_fields() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let head = peer.head().await;
            assert!(
                head.starts_with("GET /base/a%20b?c HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: plimsoll/")
            );
            assert!(head.ends_with("\r\nAccept: a  b\r\n\r\n"), "{head:?}");
            peer.end("HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 9\r\n\r\n").await;
        },
        async |mut client, _| {
            // A line end in a value must not be sent.
            let request = get("/a%20b?c").field("Accept", "a\r\nb");
            let response = client.send(request).await.unwrap();
            assert_eq!((response.field("x-one"), response.field("X-Two")), (Some("1"), None));
            assert_eq!((response.length(), response.fields().count()), (Some(9), 2));
        },
    );
}

#[test]
fn a_response_to_head_has_no_body() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            for _ in 0..2 {
                assert!(peer.head().await.starts_with("HEAD "));
                peer.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
            }
            peer.ended().await;
        },
        async |mut client, _| {
            for _ in 0..2 {
                let answer = status_and_body(client.send(Request::new("HEAD", "/")).await).await.unwrap();
                assert_eq!(answer, (200, String::new()));
            }
        },
    );
}

/// Checks the client's result for an answer.
fn outcome(answer: impl Into<Vec<u8>>, check: impl Fn(Result<(u16, String), Error>) + 'static) {
    let answer = answer.into();
    run(
        calm(),
        async move |server| answer_once(server, answer).await,
        async move |mut client, _| check(status_and_body(client.send(get("/")).await).await),
    );
}

#[test]
fn a_malformed_response_is_an_error() {
    for (answer, bad) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx", BadResponse::Length),
    ] {
        outcome(answer, move |status_and_body| {
            assert!(
                matches!(status_and_body, Err(Error::Malformed(found)) if found == bad),
                "{status_and_body:?}"
            );
        });
    }
    let broken = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx";
    outcome(broken, |status_and_body| {
        assert!(
            matches!(status_and_body, Err(Error::Malformed(BadResponse::Chunk(_)))),
            "{status_and_body:?}"
        );
    });
    outcome("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", |status_and_body| {
        assert!(matches!(status_and_body, Err(Error::Unexpected)), "{status_and_body:?}");
    });
    outcome("HTTP/1.1 100 Continue\r\n\r\n".repeat(100), |status_and_body| {
        assert!(matches!(status_and_body, Err(Error::Unexpected)), "{status_and_body:?}");
    });
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(100_000));
    outcome(endless, |status_and_body| {
        assert!(
            matches!(status_and_body, Err(Error::Malformed(BadResponse::HeadTooLong))),
            "{status_and_body:?}"
        );
    });
}

#[test]
fn a_response_head_above_the_limit_is_an_error() {
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(HEAD.bytes_max));
    for split in 0..100 {
        let answer = endless.as_bytes()[..HEAD.bytes_max].to_vec();
        run(
            (0, Faults::split_at(split)),
            async move |server| answer_once(server, answer).await,
            async |mut client, _| {
                let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
                assert!(matches!(error, Error::Malformed(BadResponse::HeadTooLong)), "{error}");
            },
        );
    }
}

#[test]
fn bytes_that_are_not_http_are_rejected_before_their_end() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            for byte in b"220 ready\r\n" {
                peer.send_bytes([*byte]);
                let _ = peer.stream.tx.drain(0).await;
                server.io.sleep(crate::SECOND).await;
            }
        },
        async |mut client, io| {
            let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
            assert!(matches!(error, Error::Malformed(BadResponse::StatusLine)), "{error}");
            assert!(io.now().since_start() < crate::SECOND * 20);
        },
    );
}

#[test]
fn a_body_above_the_callers_limit_is_an_error() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\": 10}";
    run(
        calm(),
        async move |mut server| {
            // After a body that was not read to its end, a connection is not reused.
            for _ in 0..2 {
                let mut peer = server.accept().await;
                peer.head().await;
                peer.end(answer).await;
            }
        },
        async |mut client, _| {
            let mut response = client.send(get("/")).await.unwrap();
            let error = response.bytes(8).await.unwrap_err();
            assert!(matches!(error, Error::TooLong { bytes_max: 8 }));
            drop(response);
            let mut response = client.send(get("/")).await.unwrap();
            let map: std::collections::BTreeMap<String, u32> = response.json(9).await.unwrap();
            assert_eq!(map["a"], 10);
            assert_eq!(response.bytes(MAX).await.unwrap(), b"", "it has ended");
        },
    );
    outcome(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\xff".to_vec(), |status_and_body| {
        assert!(matches!(status_and_body, Err(Error::Unreadable(_))), "{status_and_body:?}");
    });
}
