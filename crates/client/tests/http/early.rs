//! Answers that arrive while the request is still being sent.

use std::rc::Rc;

use plimsoll_client::http::limits::{EXPECT_BYTES_MIN, SEND_AHEAD_BYTES_MAX};
use plimsoll_client::http::{Body, Request};
use plimsoll_io::sim::{Faults, seeds};

use crate::{Endless, Pieces, SECOND, calm, get, run, told};

const REFUSED: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn refused() -> (u16, String) {
    (413, "no".to_owned())
}

fn put(body: Body<'_>) -> Request<'_> {
    Request::new("PUT", "/").body(body)
}

#[test]
fn a_refusal_before_the_body_keeps_the_source_untouched() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let head = peer.head().await;
            assert!(head.contains("\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"), "{head}");
            peer.say(REFUSED);
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
            assert_eq!(told(client.send(put(body)).await).await.unwrap(), refused());
            assert_eq!(taken.get(), 0);
            assert!(io.now().since_start() < SECOND, "nothing was waited for");
            assert_eq!(told(client.send(get("/")).await).await.unwrap().0, 200);
        },
    );
}

#[test]
fn leave_to_send_is_waited_for() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            server.io.sleep(SECOND / 2).await;
            assert!(peer.received.is_empty());
            peer.say("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(peer.read_to("0\r\n\r\n").await, "5\r\nhello\r\n0\r\n\r\n");
            peer.end(OK).await;
        },
        async |mut client, io| {
            let mut source = Pieces::of(&[b"hello"]);
            let taken = Rc::clone(&source.taken);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(told(client.send(put(body)).await).await.unwrap().0, 200);
            assert_eq!(taken.get(), 1);
            assert!(io.now().since_start() < SECOND, "leave was given before the time was over");
        },
    );
}

#[test]
fn where_leave_is_needed_nothing_is_sent_without_and_it_is_waited_for_as_long_as_was_said() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let head = peer.head().await;
            assert!(head.contains("\r\nExpect: 100-continue\r\n"), "however short the body is: {head}");
            server.io.sleep(2 * SECOND).await;
            assert!(peer.received.is_empty());
            peer.say("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(peer.read_to("hello").await, "hello");
            peer.end(OK).await;
            let mut peer = server.accept().await;
            peer.head().await;
            peer.ended().await;
        },
        async |client, _| {
            let mut client = client.with_leave(5 * SECOND);
            for expected in [1, 0] {
                let mut source = Pieces::of(&[b"hello"]);
                let taken = Rc::clone(&source.taken);
                let body = Body::Stream { length: Some(5), source: &mut source };
                let answered = told(client.send(put(body)).await).await;
                assert_eq!((answered.is_ok(), taken.get()), (expected == 1, expected));
            }
        },
    );
}

#[test]
fn leave_that_never_comes_is_waited_for_a_second() {
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
            assert_eq!(told(client.send(put(body)).await).await.unwrap().0, 200);
        },
    );
}

#[test]
fn a_short_body_waits_for_no_leave() {
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
                assert_eq!(told(client.send(put(body)).await).await.unwrap(), refused());
                assert_eq!(taken.get() == 0, expects);
            },
        );
    }
}

#[test]
fn an_answer_in_the_middle_of_a_body_ends_the_sending() {
    for seed in seeds(50) {
        run(
            (seed, Faults::splits()),
            async |mut server| {
                let mut peer = server.accept().await;
                peer.head().await;
                peer.say("HTTP/1.1 100 Continue\r\n\r\n");
                peer.read_to("xxxxx").await;
                // The server reads no more: only its answer can end the sending.
                peer.say(REFUSED);
                peer.stream.tx.drain(0).await.unwrap();
                server.io.sleep(SECOND * 30).await;
            },
            async |mut client, io| {
                let body = Body::Stream { length: None, source: &mut Endless };
                assert_eq!(told(client.send(put(body)).await).await.unwrap(), refused());
                assert!(io.now().since_start() < SECOND * 30);
            },
        );
    }
}

#[test]
fn a_refusal_is_told_though_the_server_has_broken_off() {
    for seed in seeds(200) {
        // Bytes that arrived before the reset can still be read, though often not at once.
        let faults = Faults { hold_back: 500, reset_discards: 0, ..Faults::none() };
        run(
            (seed, faults),
            async |mut server| {
                let mut peer = server.accept().await;
                peer.read_to("xxxxx").await;
                peer.say(REFUSED);
                peer.stream.tx.drain(0).await.unwrap();
                // Dropped with unread bytes: a reset.
            },
            async |mut client, _| {
                let body = Body::Bytes(vec![b'x'; 1 << 20]);
                assert_eq!(told(client.send(put(body)).await).await.unwrap(), refused());
            },
        );
    }
}

#[test]
fn a_source_is_asked_for_no_more_than_goes_out() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            server.io.sleep(SECOND * 10).await;
            peer.say(REFUSED);
            peer.stream.tx.drain(0).await.unwrap();
            server.io.sleep(SECOND).await;
        },
        async |mut client, _| {
            let mut source = Pieces::of(&[&[b'x'; 10_000][..]; 1_000]);
            let taken = Rc::clone(&source.taken);
            let body = Body::Stream { length: None, source: &mut source };
            assert_eq!(told(client.send(put(body)).await).await.unwrap(), refused());
            let most = usize::try_from(SEND_AHEAD_BYTES_MAX).unwrap() + 200_000;
            assert!(taken.get() * 10_000 < most, "{} pieces", taken.get());
        },
    );
}
