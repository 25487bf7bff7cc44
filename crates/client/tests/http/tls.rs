//! HTTPS: the same client over an encrypted stream.

use std::rc::Rc;

use plimsoll_client::http::{Client, Dial, Error, Request, When};
use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Io, Segment, Stream, Transport, Want, join};
use plimsoll_tls::{
    Certificates, Clock, Connector, Distrust, HandshakeError, MinVersion, Roots, ServerTls, Tickets,
};

use crate::{Peer, SECOND, Server, get, status_and_body};

const CA: &[u8] = include_bytes!("../../../../tests/data/tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/data/tls/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/data/tls/server.key");
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn connector(roots: &[u8]) -> Connector {
    Connector::new(&Roots::read(roots).unwrap(), &["http/1.1"], Clock::new()).unwrap()
}

/// Encrypts a connection as the server. Returns also the transport below.
async fn accepted(io: &Io, mut stream: Stream) -> Option<(Peer, Rc<dyn Transport>)> {
    let certificates = Certificates::read([(CERTIFICATE, KEY)]).unwrap();
    let tls = ServerTls::new(
        certificates,
        &["http/1.1"],
        MinVersion::default(),
        Tickets::new().unwrap(),
        Clock::new(),
    )
    .unwrap();
    let below = stream.transport();
    tls.accept(io, &mut stream).await.ok()?;
    Some((Peer { stream, received: Vec::new() }, below))
}

/// Runs a client of `https://127.0.0.1` against a scripted server, until both have ended.
fn run(
    (seed, faults): (u64, Faults),
    server: impl AsyncFnOnce(Server) + 'static,
    client: impl AsyncFnOnce(Client, Io) + 'static,
) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("client"), sim.host("server"));
    let listener = far.io().listen(&":443".parse().unwrap()).unwrap();
    let (io, server_io) = (near.io(), far.io());
    sim.run(&near, async move {
        let to = Client::new(&io, "https://127.0.0.1".parse().unwrap());
        join(client(to, io), server(Server { listener, io: server_io })).await;
    });
    assert_eq!((near.leased_bytes(), sim.connections_open()), (0, 0), "seed {seed}: something is left");
    assert!(sim.panics().is_empty());
}

/// The tickets of TLS 1.3 arrive after the client's handshake, on a connection that is idle then.
#[test]
fn an_idle_connection_survives_a_late_session_ticket() {
    for seed in seeds(20) {
        run(
            (seed, Faults::splits()),
            async |mut server| {
                let stream = server.listener.accept().await.unwrap();
                let (mut peer, _) = accepted(&server.io, stream).await.unwrap();
                for _ in 0..3 {
                    assert!(peer.head().await.contains("Host: 127.0.0.1\r\n"));
                    peer.send_bytes(OK);
                }
                while let Ok(Some(_)) = peer.stream.rx.recv(Want::Head).await {}
            },
            async |client, io| {
                let mut client = client.with_tls(connector(CA));
                client.connect_early().await.unwrap();
                for _ in 0..3 {
                    io.sleep(SECOND).await;
                    let answer = status_and_body(client.send(Request::new("POST", "/")).await).await;
                    assert_eq!(answer.unwrap(), (200, "ok".to_owned()));
                }
            },
        );
    }
}

/// A machine between the peers can forge the end of a connection, but not that of a session.
#[test]
fn a_body_to_the_end_that_ends_without_the_end_of_the_session_is_an_error() {
    for is_forged in [false, true] {
        run(
            (0, Faults::none()),
            async move |mut server| {
                let stream = server.listener.accept().await.unwrap();
                let (mut peer, below) = accepted(&server.io, stream).await.unwrap();
                peer.head().await;
                peer.send_bytes("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
                peer.stream.tx.drain(0).await.unwrap();
                if is_forged {
                    below.finish();
                    server.io.sleep(SECOND).await;
                } else {
                    let _ = peer.stream.finish().await;
                }
            },
            async move |client, _| {
                let mut client = client.with_tls(connector(CA));
                let answer = status_and_body(client.send(get("/")).await).await;
                match answer {
                    Ok(whole) => assert_eq!((whole, is_forged), ((200, "hello".to_owned()), false)),
                    Err(error) => {
                        let is_broken = matches!(error, Error::Broken { when: When::Receiving, .. });
                        assert!(is_broken && is_forged, "{error}");
                    }
                }
            },
        );
    }
}

#[test]
fn a_server_that_is_not_trusted_gets_no_request() {
    run(
        (0, Faults::none()),
        async |mut server| {
            let stream = server.listener.accept().await.unwrap();
            assert!(accepted(&server.io, stream).await.is_none());
        },
        async |client, _| {
            let mut client =
                client.with_tls(connector(include_bytes!("../../../../tests/data/tls/other.pem")));
            let error = client.send(get("/")).await.map(drop).unwrap_err();
            let Error::Tls { source: HandshakeError::Untrusted(untrusted), .. } = &error else {
                panic!("{error}")
            };
            assert_eq!(untrusted.reason, Distrust::UnknownAuthority);
        },
    );
}

#[test]
fn an_https_url_without_trusted_certificates_is_not_connected_to() {
    run(
        (0, Faults::none()),
        async |_| {},
        async |mut client, _| {
            assert!(matches!(client.send(get("/")).await.map(drop), Err(Error::Request(_))));
        },
    );
}

/// A server that does not speak TLS, or breaks the connection in the handshake.
#[test]
fn a_failed_handshake_is_an_error_of_connecting() {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        run(
            (0, Faults::none()),
            async move |mut server| {
                let mut stream = server.listener.accept().await.unwrap();
                stream.tx.push(Segment::Static(answer.as_bytes()));
                let _ = stream.finish().await;
            },
            async move |client, _| {
                let error = client.with_tls(connector(CA)).send_owned(get("/")).await.map(drop).unwrap_err();
                let is_expected = match answer {
                    "" => matches!(error, Error::Connect { .. }),
                    _ => matches!(error, Error::Tls { .. }) && error.to_string().contains("speaks TLS"),
                };
                assert!(is_expected, "{error}");
            },
        );
    }
}

#[test]
fn a_preface_is_sent_in_clear_before_the_handshake() {
    run(
        (0, Faults::none()),
        async |mut server| {
            let mut peer = server.accept().await;
            assert_eq!(peer.read_to("\r\n").await, "PROXY UNKNOWN\r\n");
            let (mut stream, received) = (peer.stream, peer.received);
            stream.unreceive(plimsoll_io::Lease::owned(received));
            let certificates = Certificates::read([(CERTIFICATE, KEY)]).unwrap();
            let tls = ServerTls::new(
                certificates,
                &[],
                MinVersion::default(),
                Tickets::new().unwrap(),
                Clock::new(),
            )
            .unwrap();
            tls.accept(&server.io, &mut stream).await.unwrap();
            let _ = stream.finish().await;
        },
        async |client, io| {
            let (tls, deadline) = (connector(CA), io.deadline());
            let preface = b"PROXY UNKNOWN\r\n";
            let dial = Dial { io: &io, resolve: None, tls: Some(&tls), preface, deadline: &deadline };
            let mut stream = dial.connect(client.base(), SECOND).await.unwrap();
            assert!(stream.is_encrypted());
            let _ = stream.finish().await;
        },
    );
}
