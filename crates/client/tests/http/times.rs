//! Servers that take too long: each wait ends.

use plimsoll_client::http::{Body, Client, Error, Request, Times, When};
use plimsoll_io::Io;

use crate::{SECOND, Server, calm, get, run, status_and_body};

const TIMES: Times =
    Times { connect: SECOND, first_byte: SECOND.saturating_mul(2), between_bytes: SECOND.saturating_mul(3) };

/// Sends a request with a body of `bytes` to a server that runs `server` and is then silent for a minute.
fn stuck(
    bytes: usize,
    server: impl AsyncFnOnce(&mut Server) -> crate::Peer + 'static,
    when: When,
    seconds: u32,
) {
    let client = async move |client: Client, io: Io| {
        let mut client = client.with_times(TIMES);
        let request = Request::new("PUT", "/").body(Body::Bytes(vec![b'x'; bytes]));
        let error = status_and_body(client.send(request).await).await.unwrap_err();
        assert!(matches!(error, Error::Late(found) if found == when), "{error}");
        let passed = io.now().since_start();
        assert!(passed > SECOND * seconds && passed < SECOND * (seconds + 1), "{passed:?}");
    };
    let server = async move |mut one: Server| {
        let peer = server(&mut one).await;
        one.io.sleep(SECOND * 60).await;
        drop(peer);
    };
    run(calm(), server, client);
}

#[test]
fn a_server_that_stops_responding_times_out() {
    stuck(10, async |server| server.accept().await, When::Waiting, 2);
    // Bytes were taken in the first of two periods.
    stuck(1 << 20, async |server| server.accept().await, When::Sending, 6);
    let in_the_head = async |server: &mut Server| {
        let mut peer = server.accept().await;
        peer.send_bytes("HTTP/1.1 200");
        peer
    };
    stuck(10, in_the_head, When::Waiting, 2);
    let in_the_body = async |server: &mut Server| {
        let mut peer = server.accept().await;
        peer.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        peer
    };
    stuck(10, in_the_body, When::Receiving, 3);
}

#[test]
fn a_slow_but_steady_server_does_not_time_out() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            for _ in 0..20 {
                // The server reports that it is processing.
                peer.send_bytes("HTTP/1.1 102 Processing\r\n\r\n");
                server.io.sleep(SECOND).await;
            }
            peer.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
            for _ in 0..20 {
                server.io.sleep(SECOND * 2).await;
                peer.send_bytes("x");
            }
            peer.end("").await;
        },
        async |client, _| {
            let mut client = client.with_times(TIMES);
            let answer = status_and_body(client.send(get("/")).await).await.unwrap();
            assert_eq!(answer, (200, "x".repeat(20)));
        },
    );
}

#[test]
fn a_server_that_receives_a_body_slowly_does_not_time_out() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            let mut taken = 0;
            while taken < 400_000 {
                server.io.sleep(SECOND * 2).await;
                taken += peer.stream.rx.recv(plimsoll_io::Want::Body).await.unwrap().unwrap().len();
            }
            peer.end("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n").await;
        },
        async |client, _| {
            let mut client = client.with_times(TIMES);
            let request = Request::new("PUT", "/").body(Body::Bytes(vec![b'x'; 500_000]));
            assert_eq!(status_and_body(client.send(request).await).await.unwrap().0, 413);
        },
    );
}
