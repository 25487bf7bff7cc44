//! Bodies of requests.

use std::io;

use plimsoll_client::http::{Body, Error, Request};
use plimsoll_io::sim::{Faults, seeds};

use crate::{Pieces, calm, run, status_and_body};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_body_is_framed_by_its_length_or_chunked() {
    for seed in seeds(50) {
        run(
            (seed, Faults::splits()),
            async |mut server| {
                let mut peer = server.accept().await;
                assert!(peer.head().await.ends_with("\r\nContent-Length: 0\r\n\r\n"), "none");
                peer.send_bytes(OK);
                assert!(peer.head().await.ends_with("\r\nContent-Length: 5\r\n\r\n"), "bytes");
                assert_eq!(peer.read_to("hello").await, "hello");
                peer.send_bytes(OK);
                assert!(peer.head().await.ends_with("\r\nContent-Length: 7\r\n\r\n"), "of known length");
                assert_eq!(peer.read_to(", ").await, "hello, ");
                peer.send_bytes(OK);
                assert!(
                    peer.head().await.contains("\r\nTransfer-Encoding: chunked\r\n"),
                    "of unknown length"
                );
                peer.send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
                let body = peer.read_to("\r\n0\r\n\r\n").await;
                assert_eq!(body, "5\r\nhello\r\n2\r\n, \r\n0\r\n\r\n");
                peer.end(OK).await;
            },
            async |mut client, _| {
                let pieces = || Pieces::of(&[b"hello", b"", b", "]);
                let (mut one, mut two) = (Pieces::of(&[b"hello", b"", b", ", b""]), pieces());
                for body in [
                    Body::Empty,
                    Body::Bytes(b"hello".to_vec()),
                    Body::Stream { length: Some(7), source: &mut one },
                    Body::Stream { length: None, source: &mut two },
                ] {
                    let request = Request::new("POST", "/").body(body);
                    assert_eq!(status_and_body(client.send(request).await).await.unwrap().0, 200);
                }
            },
        );
    }
}

/// Sends a source that breaks its promise; the request must not look complete.
fn broken_source(length: Option<u64>, last: Option<io::ErrorKind>, kind: io::ErrorKind) {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let mut all = String::new();
            while let Ok(Some(lease)) = peer.stream.rx.recv(plimsoll_io::Want::Body).await {
                all.push_str(&String::from_utf8_lossy(&lease));
                if all.ends_with("Expect: 100-continue\r\n\r\n") {
                    peer.send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
                }
            }
            assert!(!all.ends_with("\r\n0\r\n\r\n") && !all.ends_with("hello!"), "it looks whole: {all}");
        },
        async move |mut client, _| {
            let mut source = Pieces { last, ..Pieces::of(&[b"hello"]) };
            let request = Request::new("PUT", "/").body(Body::Stream { length, source: &mut source });
            match status_and_body(client.send(request).await).await {
                Err(Error::Source(error)) => assert_eq!(error.kind(), kind),
                other => panic!("{other:?}"),
            }
        },
    );
}

#[test]
fn a_failing_source_ends_the_request() {
    let denied = io::ErrorKind::PermissionDenied;
    broken_source(None, Some(denied), denied);
    broken_source(Some(10), Some(denied), denied);
    broken_source(Some(4), None, io::ErrorKind::InvalidData);
    broken_source(Some(6), None, io::ErrorKind::InvalidData);
}

#[test]
fn input_that_would_not_be_one_request_is_rejected() {
    run(
        calm(),
        async |_| {},
        async |mut client, _| {
            for request in [
                Request::new("", "/"),
                Request::new("GET /", "/"),
                Request::new("GET", "a"),
                Request::new("GET", ""),
                Request::new("GET", "/a b"),
                Request::new("GET", "/a\r\nX: y"),
                Request::new("GET", "http://other/"),
                Request::new("GET", "/").field("Host", "other"),
                Request::new("GET", "/").field("content-length", "5"),
                Request::new("GET", "/").field("Transfer-Encoding", "chunked"),
                Request::new("GET", "/").field("A: b\r\nC", "d"),
                Request::new("GET", "/").field("", "d"),
            ] {
                assert!(matches!(client.send(request).await, Err(Error::Request(_))));
            }
        },
    );
}
