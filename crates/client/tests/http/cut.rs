//! Answers that are cut short.

use plimsoll_client::http::{Error, When};
use plimsoll_io::sim::{Faults, seeds};

use crate::{SECOND, answer_once, calm, get, run, status_and_body};

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

#[test]
fn a_response_that_ends_early_at_any_byte_is_an_error() {
    for answer in [LENGTH, CHUNKED] {
        let head = answer.find("\r\n\r\n").unwrap() + 4;
        for cut in 0..answer.len() {
            run(
                calm(),
                async move |server| answer_once(server, answer.as_bytes()[..cut].to_vec()).await,
                async move |mut client, _| {
                    let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
                    let when = if cut < head { When::Waiting } else { When::Receiving };
                    assert!(
                        matches!(error, Error::Broken { when: found, .. } if found == when),
                        "{cut}: {error}"
                    );
                },
            );
        }
    }
}

#[test]
fn a_truncated_body_stays_an_error() {
    run(
        calm(),
        async |server| answer_once(server, LENGTH.as_bytes()[..LENGTH.len() - 1].to_vec()).await,
        async |mut client, _| {
            let mut response = client.send(get("/")).await.unwrap();
            assert_eq!(&*response.recv().await.unwrap().unwrap(), b"hell");
            for _ in 0..3 {
                assert!(response.recv().await.is_err());
            }
        },
    );
}

#[test]
fn a_reset_is_not_the_end_of_a_close_delimited_body() {
    run(
        calm(),
        async |mut server| {
            let mut peer = server.accept().await;
            peer.head().await;
            peer.send_bytes("HTTP/1.1 200 OK\r\n\r\nhello");
            peer.stream.tx.drain(0).await.unwrap();
            server.io.sleep(SECOND).await;
        },
        async |mut client, _| {
            let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
            assert!(matches!(error, Error::Broken { when: When::Receiving, .. }), "{error}");
        },
    );
}

#[test]
fn a_reset_at_any_time_yields_an_error_or_a_complete_response() {
    for seed in seeds(300) {
        run(
            (seed, Faults::resets(100)),
            async |mut server| {
                // A connection may be reset before its request has arrived; then the client is gone.
                let patience = server.io.deadline();
                patience.after(SECOND * 300);
                while let Ok(mut peer) = patience.within(server.accept()).await {
                    let lease = peer.stream.rx.recv(plimsoll_io::Want::Head).await;
                    if lease.is_ok_and(|lease| lease.is_some()) {
                        peer.end(CHUNKED).await;
                    }
                }
            },
            async |mut client, _| {
                for _ in 0..3 {
                    if let Ok(answer) = status_and_body(client.send(get("/")).await).await {
                        assert_eq!(answer, (200, "hello".to_owned()));
                    }
                }
            },
        );
    }
}
