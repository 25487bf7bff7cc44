//! Answers that arrive while the request is still being sent.

use std::rc::Rc;

use plimsoll_client::http::limits::{EXPECT_BYTES_MIN, SEND_AHEAD_BYTES_MAX};
use plimsoll_client::http::{Body, Request};
use plimsoll_io::sim::{Faults, seeds};

use crate::{Endless, Pieces, SECOND, calm, get, run, status_and_body};

const REFUSED: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn refused() -> (u16, String) {
    (413, "no".to_owned())
}

fn put(body: Body<'_>) -> Request<'_> {
    Request::new("PUT", "/").body(body)
}

#[test]
fn a_refusal_before_the_body_leaves_the_source_unread() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let head = peer.head().await;
            assert!(head.contains("\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"), "{head}");
            peer.send_bytes(REFUSED);
            // The announced body will not come: the next request needs a new connection.
            peer.ended().await;
            let mut peer = server.accept().await;
            peer.head().await;
            peer.end(OK).await;
        },
        async |mut client, io| {
            let mut source = Pieces::of(&[b"hello"]);
            let taken = Rc::clone(&source.taken);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap(), refused());
            assert_eq!(taken.get(), 0);
            assert!(io.now().since_start() < SECOND, "nothing was waited for");
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap().0, 200);
        },
    );
}

#[test]
fn a_long_body_waits_for_100_continue() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            server.io.sleep(SECOND / 2).await;
            assert!(peer.received.is_empty());
            peer.send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(peer.read_to("0\r\n\r\n").await, "5\r\nhello\r\n0\r\n\r\n");
            peer.end(OK).await;
        },
        async |mut client, io| {
            let mut source = Pieces::of(&[b"hello"]);
            let taken = Rc::clone(&source.taken);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap().0, 200);
            assert_eq!(taken.get(), 1);
            assert!(io.now().since_start() < SECOND, "leave was given before the time was over");
        },
    );
}

#[test]
fn a_required_100_continue_is_awaited_for_the_given_time_and_no_body_is_sent_without_it() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let head = peer.head().await;
            assert!(head.contains("\r\nExpect: 100-continue\r\n"), "however short the body is: {head}");
            server.io.sleep(2 * SECOND).await;
            assert!(peer.received.is_empty());
            peer.send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(peer.read_to("hello").await, "hello");
            peer.end(OK).await;
            let mut peer = server.accept().await;
            peer.head().await;
            peer.ended().await;
        },
        async |client, _| {
            let mut client = client.with_required_continue(5 * SECOND);
            for expected in [1, 0] {
                let mut source = Pieces::of(&[b"hello"]);
                let taken = Rc::clone(&source.taken);
                let body = Body::Stream { length: Some(5), source: &mut source };
                let answered = status_and_body(client.send(put(body)).await).await;
                assert_eq!((answered.is_ok(), taken.get()), (expected == 1, expected));
            }
        },
    );
}

#[test]
fn a_missing_100_continue_delays_the_body_by_one_second() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            let begun = server.io.now();
            peer.read_to("0\r\n\r\n").await;
            let waited = server.io.now() - begun;
            assert!(waited > SECOND * 9 / 10 && waited < SECOND * 2, "{waited:?}");
            peer.end(OK).await;
        },
        async |mut client, _| {
            let mut source = Pieces::of(&[b"hello"]);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap().0, 200);
        },
    );
}

#[test]
fn a_short_body_is_sent_without_100_continue() {
    for (length, expects) in [(5, false), (EXPECT_BYTES_MIN - 1, false), (EXPECT_BYTES_MIN, true)] {
        run(
            calm(),
            async move |mut server| {
                let mut peer = server.accept().await;
                let head = peer.head().await;
                assert_eq!(head.contains("\r\nExpect: 100-continue\r\n"), expects, "{length}");
                assert!(head.contains(&format!("\r\nContent-Length: {length}\r\n")));
                peer.end(REFUSED).await;
            },
            async move |mut client, _| {
                let mut source = Pieces::of(&[&vec![b'x'; usize::try_from(length).unwrap()]]);
                let taken = Rc::clone(&source.taken);
                let body = Body::Stream { length: Some(length), source: &mut source };
                assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap(), refused());
                assert_eq!(taken.get() == 0, expects);
            },
        );
    }
}

#[test]
fn a_final_response_during_a_body_ends_the_sending() {
    for seed in seeds(50) {
        run(
            (seed, Faults::splits()),
            async |mut server| {
                let mut peer = server.accept().await;
                peer.head().await;
                peer.send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
                peer.read_to("xxxxx").await;
                // The server reads no more: only its answer can end the sending.
                peer.send_bytes(REFUSED);
                peer.stream.tx.drain(0).await.unwrap();
                server.io.sleep(SECOND * 30).await;
            },
            async |mut client, io| {
                let body = Body::Stream { length: None, source: &mut Endless };
                assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap(), refused());
                assert!(io.now().since_start() < SECOND * 30);
            },
        );
    }
}

#[test]
fn a_refusal_is_reported_even_if_the_server_closes_early() {
    for seed in seeds(200) {
        // Bytes that arrived before the reset can still be read, though often not at once.
        let faults = Faults { hold_back: 500, reset_discards: 0, ..Faults::none() };
        run(
            (seed, faults),
            async |mut server| {
                let mut peer = server.accept().await;
                peer.read_to("xxxxx").await;
                peer.send_bytes(REFUSED);
                peer.stream.tx.drain(0).await.unwrap();
                // Dropped with unread bytes: a reset.
            },
            async |mut client, _| {
                let body = Body::Bytes(vec![b'x'; 1 << 20]);
                assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap(), refused());
            },
        );
    }
}

#[test]
fn a_source_is_read_only_as_fast_as_bytes_are_sent() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            server.io.sleep(SECOND * 10).await;
            peer.send_bytes(REFUSED);
            peer.stream.tx.drain(0).await.unwrap();
            server.io.sleep(SECOND).await;
        },
        async |mut client, _| {
            let mut source = Pieces::of(&[&[b'x'; 10_000][..]; 1_000]);
            let taken = Rc::clone(&source.taken);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(status_and_body(client.send(put(body)).await).await.unwrap(), refused());
            let most = usize::try_from(SEND_AHEAD_BYTES_MAX).unwrap() + 200_000;
            assert!(taken.get() * 10_000 < most, "{} pieces", taken.get());
        },
    );
}
