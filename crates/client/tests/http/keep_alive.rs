//! Keep-alive connections: reused, and reopened where that does no harm.

use plimsoll_client::http::{Body, Client, Error, Request, When};

use crate::{Pieces, SECOND, calm, get, run, status_and_body};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn ok() -> (u16, String) {
    (200, "ok".to_owned())
}

#[test]
fn one_connection_carries_many_requests_and_ends_cleanly() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            for _ in 0..10 {
                peer.head().await;
                peer.send_bytes(OK);
            }
            let end = peer.stream.rx.recv(plimsoll_io::Want::Head).await;
            assert!(end.unwrap().is_none(), "an end, and no reset");
        },
        async |mut client, _| {
            for _ in 0..10 {
                assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), ok());
            }
        },
    );
}

#[test]
fn an_owned_response_passes_its_connection_to_another_client() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            for _ in 0..2 {
                peer.head().await;
                peer.send_bytes(OK);
            }
            let end = peer.stream.rx.recv(plimsoll_io::Want::Head).await;
            assert!(end.unwrap().is_none(), "an end, and no reset, of what nobody wants any more");
            let mut peer = server.accept().await;
            peer.head().await;
            peer.end(OK).await;
        },
        async |client, io| {
            let another = || Client::new(&io, "http://127.0.0.1/".parse().unwrap());
            let mut first = client.send_owned(get("/")).await.unwrap();
            assert_eq!(first.text(10).await.unwrap(), "ok");
            let second = another().with_connection(first.into_connection().expect("all of it was received"));
            let mut second = second.send_owned(get("/")).await.unwrap();
            assert_eq!(second.text(10).await.unwrap(), "ok");
            drop(second.into_connection().expect("all of it was received"));
            let unread = another().send_owned(get("/")).await.unwrap();
            assert!(unread.into_connection().is_none(), "something is still to come");
        },
    );
}

#[test]
fn a_connection_closed_by_the_server_is_replaced() {
    for method in ["GET", "POST"] {
        run(
            calm(),
            async |mut server| {
                for _ in 0..2 {
                    let mut peer = server.accept().await;
                    peer.head().await;
                    peer.end(OK).await;
                }
            },
            async move |mut client, io| {
                for _ in 0..2 {
                    assert_eq!(
                        status_and_body(client.send(Request::new(method, "/")).await).await.unwrap(),
                        ok()
                    );
                    io.sleep(SECOND).await;
                }
            },
        );
    }
}

/// The server closes a keep-alive connection after the second request, without an answer; checks the
/// client's result.
fn closed_on(request: fn(&mut Pieces) -> Request<'_>, repeated: bool) {
    run(
        calm(),
        async move |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes(OK);
            peer.read_to("\r\n\r\n").await;
            drop(peer);
            if repeated {
                let mut peer = server.accept().await;
                peer.head().await;
                peer.end(OK).await;
            }
        },
        async move |mut client, _| {
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), ok());
            let mut pieces = Pieces::of(&[b"hello"]);
            match status_and_body(client.send(request(&mut pieces)).await).await {
                Ok(answer) => assert!(repeated && answer == ok()),
                Err(Error::Broken { when: When::Waiting | When::Sending, .. }) => assert!(!repeated),
                Err(error) => panic!("{error}"),
            }
        },
    );
}

#[test]
fn only_an_idempotent_request_is_repeated() {
    closed_on(|_| get("/"), true);
    closed_on(|_| Request::new("PUT", "/").body(Body::Bytes(b"hello".to_vec())), true);
    closed_on(|_| Request::new("DELETE", "/"), true);
    closed_on(|_| Request::new("POST", "/").body(Body::Bytes(b"hello".to_vec())), false);
    closed_on(|_| Request::new("POST", "/"), false);
    closed_on(|_| Request::new("POST", "/").idempotent_if(true).body(Body::Bytes(b"look".to_vec())), true);
    closed_on(|_| Request::new("MKCOL", "/"), false);
    closed_on(|_| Request::new("MOVE", "/"), false);
    closed_on(|_| Request::new("COPY", "/"), false);
    closed_on(|_| Request::new("SHRUG", "/"), false);
    // A source that was started cannot be repeated; while the client waits for 100 (Continue), it has not
    // been started.
    closed_on(|pieces| streamed(pieces, Some(5)), false);
    closed_on(|pieces| streamed(pieces, None), true);
}

fn streamed(source: &mut Pieces, length: Option<u64>) -> Request<'_> {
    Request::new("PUT", "/").body(Body::Stream { length, source })
}

#[test]
fn a_client_without_repeats_repeats_nothing() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes(OK);
            peer.head().await;
            drop(peer);
            let mut peer = server.accept().await;
            assert!(peer.head().await.starts_with("GET /base/last "), "the next that is asked");
            peer.end(OK).await;
        },
        async |client, _| {
            let mut client = client.without_repeats();
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), ok());
            let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
            assert!(matches!(error, Error::Broken { when: When::Waiting, .. }), "{error}");
            assert_eq!(status_and_body(client.send(get("/last")).await).await.unwrap(), ok());
        },
    );
}

#[test]
fn a_request_on_a_new_connection_is_not_repeated() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
        },
        async |mut client, _| {
            let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
            assert!(matches!(error, Error::Broken { .. }), "{error}");
        },
    );
}

#[test]
fn a_request_is_not_repeated_after_the_first_byte_of_its_response() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes(OK);
            peer.head().await;
            peer.end("HTTP/1.1 200").await;
        },
        async |mut client, _| {
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), ok());
            let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
            assert!(matches!(error, Error::Broken { when: When::Waiting, .. }), "{error}");
        },
    );
}

#[test]
fn unsolicited_bytes_end_a_keep_alive_connection() {
    for (at_once, later) in [(OK, ""), ("", OK)] {
        run(
            calm(),
            async move |mut server| {
                let mut peer = server.accept().await;
                peer.head().await;
                peer.send_bytes([OK, at_once].concat());
                server.io.sleep(SECOND / 2).await;
                peer.send_bytes(later);
                peer.ended().await;
                let mut peer = server.accept().await;
                assert!(peer.head().await.starts_with("GET /base/two "));
                peer.end("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
            },
            async |mut client, io| {
                assert_eq!(status_and_body(client.send(get("/one")).await).await.unwrap(), ok());
                io.sleep(SECOND).await;
                assert_eq!(status_and_body(client.send(get("/two")).await).await.unwrap().0, 201);
            },
        );
    }
}

#[test]
fn a_response_dropped_before_its_end_closes_the_connection() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            peer.ended().await;
            let mut peer = server.accept().await;
            peer.head().await;
            peer.end(OK).await;
        },
        async |mut client, _| {
            assert_eq!(client.send(get("/")).await.unwrap().status().code(), 200);
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), ok());
        },
    );
}

#[test]
fn the_response_to_an_abandoned_request_is_not_taken_for_the_next() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes(OK);
            peer.head().await;
            peer.ended().await;
            let mut peer = server.accept().await;
            assert!(peer.head().await.starts_with("GET /base/three "));
            peer.end(OK).await;
        },
        async |mut client, io| {
            assert_eq!(status_and_body(client.send(get("/one")).await).await.unwrap(), ok());
            let deadline = io.deadline();
            deadline.after(SECOND);
            assert!(deadline.within(client.send(get("/two"))).await.is_err());
            assert_eq!(status_and_body(client.send(get("/three")).await).await.unwrap(), ok());
        },
    );
}
