//! TLS between two simulated machines: whole conversations, and peers that do not agree, lie, or cut.
//! A failing seed is printed; run it again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_io::sim::{Faults, Host, Sim, seeds};
use plimsoll_io::{Address, Current, Handler, Io, LocalFuture, Segment, Setup, Stream, Want, select};
use plimsoll_tls::limits::HANDSHAKE_TIME_MAX;
use plimsoll_tls::{
    Admission, Certificates, Clock, Connector, Distrust, Fingerprint, HandshakeError, Handshakes, Identity,
    MinVersion, Outcome, Roots, Secured, ServerTls, Tickets, Trust,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const CA: &[u8] = include_bytes!("../../../tests/data/tls/ca.pem");
const SERVER: (&[u8], &[u8]) = (
    include_bytes!("../../../tests/data/tls/server.pem"),
    include_bytes!("../../../tests/data/tls/server.key"),
);
const OTHER: (&[u8], &[u8]) = (
    include_bytes!("../../../tests/data/tls/other.pem"),
    include_bytes!("../../../tests/data/tls/other.key"),
);
const NAME: &str = "files.example.org";
/// More than the buffers of a simulated connection hold, and several records.
const LARGE_BYTES: usize = 300_000;

/// The bytes that the server has received from each client, or the error that ended its conversation.
type Received = Arc<Mutex<Vec<Result<usize, io::ErrorKind>>>>;

/// Sends back what it receives, until the client ends.
struct Echo(Received);

impl Handler for Echo {
    fn serve(&self, stream: Stream) -> LocalFuture {
        let received = Arc::clone(&self.0);
        Box::pin(async move {
            let result = echo(stream).await;
            received.lock().unwrap().push(result.map_err(|error| error.kind()));
        })
    }
}

async fn echo(mut stream: Stream) -> io::Result<usize> {
    assert!(stream.is_protected());
    let mut received = 0;
    while let Some(lease) = stream.rx.recv(Want::Body).await? {
        received += lease.len();
        stream.tx.push(Segment::Owned(lease.to_vec()));
        stream.tx.drain(1 << 16).await?;
    }
    stream.tx.finish();
    stream.tx.drain(0).await?;
    Ok(received)
}

fn server_tls(protocols: &[&str]) -> ServerTls {
    server_tls_since(MinVersion::default(), protocols)
}

fn server_tls_since(min: MinVersion, protocols: &[&str]) -> ServerTls {
    let certificates = Certificates::read([SERVER, OTHER]).unwrap();
    ServerTls::new(certificates, protocols, min, Tickets::new().unwrap(), Clock::new()).unwrap()
}

struct World {
    sim: Sim,
    client: Host,
    at: Address,
    received: Received,
}

impl World {
    fn new(seed: u64, faults: Faults, protocols: &[&str]) -> World {
        World::of(seed, faults, server_tls(protocols))
    }

    fn of(seed: u64, faults: Faults, tls: ServerTls) -> World {
        let sim = Sim::new(seed, faults);
        let (server, client) = (sim.host("server"), sim.host("client"));
        let (current, received) = (Current::new(tls), Received::default());
        let shown = Arc::clone(&received);
        let setup: Setup = Arc::new(move |io: Io| {
            Rc::new(Secured::new(io, Rc::new(Echo(Arc::clone(&shown))), Arc::clone(&current)))
        });
        let at = sim.serve(&server, &":443".parse().unwrap(), &setup).unwrap();
        World { sim, client, at, received }
    }

    /// Runs a client, which gets its engine and a connection.
    fn run<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        main: impl FnOnce(Io, Stream) -> F + 'static,
    ) -> T {
        let (io, at) = (self.client.io(), self.at.clone());
        let done = self.sim.run(&self.client, async move {
            let stream = io.connect(&at).await.unwrap();
            main(io, stream).await
        });
        assert_eq!(self.sim.panics(), [""; 0]);
        done
    }
}

fn connector(protocols: &[&str]) -> Connector {
    Connector::new(&Roots::read(CA).unwrap(), protocols, Clock::new()).unwrap()
}

/// Connects with the right CA, or returns why not.
async fn encrypted(io: &Io, mut stream: Stream, name: &str) -> Result<Stream, HandshakeError> {
    connector(&[]).connect(io, &mut stream, name).await?;
    Ok(stream)
}

fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * at % 251).unwrap()).collect()
}

#[test]
fn bytes_arrive_whole_in_both_directions_however_the_network_splits_them() {
    for seed in seeds(30) {
        let world = World::new(seed, Faults::splits(), &[]);
        world.run(|io, stream| async move {
            let stream = encrypted(&io, stream, NAME).await.unwrap();
            assert!(stream.is_protected() && !stream.tx.takes_files());
            let sent = noise(LARGE_BYTES);
            let (mut rx, mut tx) = stream.split();
            let (pieces, received) = (sent.clone(), Rc::new(RefCell::new(Vec::new())));
            let sending = async {
                for piece in pieces.chunks(40_000) {
                    tx.push(Segment::Owned(piece.to_vec()));
                    tx.drain(1 << 16).await.unwrap();
                }
                tx.finish();
                tx.drain(0).await.unwrap();
                assert_eq!((tx.unsent(), tx.lost()), (0, 0));
            };
            let receiving = async {
                while let Some(lease) = rx.recv(Want::Body).await.unwrap() {
                    received.borrow_mut().extend_from_slice(&lease);
                }
            };
            plimsoll_io::join(sending, receiving).await;
            assert!(*received.borrow() == sent);
        });
        assert_eq!(*world.received.lock().unwrap(), [Ok(LARGE_BYTES)]);
    }
}

#[test]
fn a_run_with_the_same_seed_has_the_same_events() {
    let digest = || {
        let world = World::new(7, Faults::splits(), &[]);
        world.run(|io, stream| async move {
            let mut stream = encrypted(&io, stream, NAME).await.unwrap();
            stream.tx.push(Segment::Static(b"hello"));
            assert_eq!(&*stream.rx.recv(Want::Body).await.unwrap().unwrap(), b"hello");
        });
        world.sim.trace_digest()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn the_certificate_is_chosen_by_name_and_verified() {
    for (name, is_trusted) in [
        (NAME, true),
        ("127.0.0.1", true),
        ("other.example.org", true),
        ("a.wild.example.org", true),
        ("A.WILD.example.org", true),
        ("a.b.wild.example.org", false),
        ("example.org", false),
        ("127.0.0.2", false),
    ] {
        let world = World::new(0, Faults::none(), &[]);
        let connected = world.run(move |io, stream| async move {
            let result = encrypted(&io, stream, name).await;
            result.map(drop).map_err(|error| error.to_string())
        });
        assert_eq!(connected.is_ok(), is_trusted, "{name}: {connected:?}");
    }
    let stranger = Connector::new(&Roots::read(OTHER.0).unwrap(), &[], Clock::new()).unwrap();
    let world = World::new(0, Faults::none(), &[]);
    let refused = world.run(move |io, mut stream| async move {
        stranger.connect(&io, &mut stream, NAME).await.unwrap_err().to_string()
    });
    assert!(refused.contains("no authority that is trusted"), "{refused}");
}

fn der(pem: &[u8]) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem).unwrap()
}

/// Connects by the certificates or the fingerprint that a client trusts.
fn trusted(trust: Trust, name: &'static str) -> Result<(), Distrust> {
    let world = World::new(0, Faults::none(), &[]);
    let connected = world.run(move |io, mut stream| async move {
        let connector = Connector::new(trust, &[], Clock::new()).unwrap();
        connector.connect(&io, &mut stream, name).await
    });
    connected.map_err(|error| match error {
        HandshakeError::Untrusted(untrusted) => {
            let presented = if name == "other.example.org" { OTHER.0 } else { SERVER.0 };
            assert_eq!(untrusted.fingerprint, Fingerprint::of(&der(presented)));
            untrusted.reason
        }
        error => panic!("{error}"),
    })
}

#[test]
fn a_server_is_trusted_by_its_fingerprint_alone_whatever_its_name() {
    let fingerprint = |pem| Trust::Fingerprint(Fingerprint::of(&der(pem)));
    assert_eq!(trusted(fingerprint(SERVER.0), NAME), Ok(()));
    // The first certificate is that for names that no certificate has.
    assert_eq!(trusted(fingerprint(SERVER.0), "no.such.example"), Ok(()));
    assert_eq!(trusted(fingerprint(OTHER.0), NAME), Err(Distrust::OtherFingerprint));
    assert_eq!(trusted(fingerprint(CA), NAME), Err(Distrust::OtherFingerprint));
}

#[test]
fn a_file_with_the_server_s_own_certificate_trusts_this_server_alone() {
    let file = |pem: &[u8]| Trust::from(&Roots::read(pem).unwrap());
    assert_eq!(trusted(file(SERVER.0), NAME), Ok(()));
    assert_eq!(trusted(file(&[OTHER.0, SERVER.0].concat()), NAME), Ok(()));
    assert_eq!(trusted(file(SERVER.0), "other.example.org"), Err(Distrust::UnknownAuthority));
    assert_eq!(trusted(file(CA), "b.c.wild.example.org").unwrap_err(), Distrust::OtherName);
}

/// Whether the second of two connections resumes the session of the first.
fn resumes(tls: ServerTls) -> bool {
    let identity = include_bytes!("../../../tests/data/tls/client.key");
    let identity = Identity::read(include_bytes!("../../../tests/data/tls/client.pem"), identity).unwrap();
    let (world, connector) = (World::of(0, Faults::none(), tls), connector(&[]).with_identity(&identity));
    let visit = || {
        let connector = connector.clone();
        world.run(async move |io, mut stream| {
            let handshake = connector.handshake(&io, &mut stream, NAME).await.unwrap();
            stream.tx.push(Segment::Static(b"hello"));
            stream.tx.finish();
            while stream.rx.recv(Want::Body).await.unwrap().is_some() {}
            handshake.is_resumed
        })
    };
    assert!(!visit());
    visit()
}

#[test]
fn a_clients_certificate_is_verified_on_each_connection_and_no_session_is_resumed() {
    assert!(resumes(server_tls(&[])), "without certificates of clients");
    let (certificates, roots) = (Certificates::read([SERVER]).unwrap(), Roots::read(CA).unwrap());
    assert!(!resumes(
        ServerTls::for_clients_of(&roots, certificates, &[], MinVersion::default(), Clock::new()).unwrap()
    ));
}

/// Abandons each handshake after a second, as FTP does one of a data connection at ABOR.
struct Abandoning(Io, Arc<Handshakes>);

impl Handler for Abandoning {
    fn serve(&self, stream: Stream) -> LocalFuture {
        let (io, admission) = (self.0.clone(), Admission::new(Arc::clone(&self.1)));
        Box::pin(async move {
            let mut stream = stream;
            let handshake = async |_: &mut Stream| -> Result<(), HandshakeError> { pending().await };
            select(admission.perform(&io, &mut stream, handshake), io.sleep(Duration::from_secs(1))).await;
        })
    }
}

#[test]
fn an_abandoned_handshake_is_counted_as_broken() {
    let sim = Sim::new(0, Faults::none());
    let (server, client) = (sim.host("server"), sim.host("client"));
    let handshakes = Handshakes::new();
    let counted = Arc::clone(&handshakes);
    let setup: Setup = Arc::new(move |io: Io| Rc::new(Abandoning(io, Arc::clone(&counted))));
    let at = sim.serve(&server, &":443".parse().unwrap(), &setup).unwrap();
    let io = client.io();
    sim.run(&client, async move {
        let mut stream = io.connect(&at).await.unwrap();
        stream.tx.push(Segment::Static(&[0x16]));
        while stream.rx.recv(Want::Body).await.is_ok_and(|lease| lease.is_some()) {}
    });
    let counts = Outcome::ALL.map(|(outcome, _)| (outcome, handshakes.count(outcome)));
    assert!(
        counts.iter().all(|(outcome, count)| *count == u64::from(*outcome == Outcome::Broken)),
        "{counts:?}"
    );
}

#[test]
fn a_server_of_tls_13_alone_refuses_clients_of_tls_12() {
    let roots = Roots::read(CA).unwrap();
    for (min, is_served) in [(MinVersion::Tls12, true), (MinVersion::Tls13, false)] {
        for (connector, is_served) in [
            (Connector::tls12(&roots, &[], Clock::new()).unwrap(), is_served),
            (Connector::since(MinVersion::Tls13, &roots, &[], Clock::new()).unwrap(), true),
        ] {
            let world = World::of(0, Faults::none(), server_tls_since(min, &[]));
            let done = world.run(async move |io, mut stream| connector.connect(&io, &mut stream, NAME).await);
            assert_eq!(done.is_ok(), is_served, "{min:?}: {done:?}");
        }
    }
}

#[test]
fn peers_without_a_common_protocol_part_during_the_handshake() {
    for (offered, agrees) in
        [(&["http/1.1"][..], true), (&["h2", "http/1.1"], true), (&["h2"], false), (&[], true)]
    {
        let world = World::new(0, Faults::none(), &["http/1.1"]);
        let connected = world.run(move |io, mut stream| async move {
            connector(offered).connect(&io, &mut stream, NAME).await.map_err(|error| error.to_string())
        });
        assert_eq!(connected.is_ok(), agrees, "{offered:?}: {connected:?}");
    }
}

#[test]
fn a_conversation_without_its_own_end_was_cut() {
    let world = World::new(0, Faults::none(), &[]);
    world.run(|io, stream| async move {
        // The connection below, of which only the end is sent. A machine between the peers could forge that.
        let below = stream.transport();
        let mut stream = encrypted(&io, stream, NAME).await.unwrap();
        stream.tx.push(Segment::Static(b"half of it"));
        stream.tx.drain(0).await.unwrap();
        below.finish();
        io.sleep(Duration::from_secs(2)).await;
        drop(stream);
    });
    assert_eq!(*world.received.lock().unwrap(), [Err(io::ErrorKind::UnexpectedEof)]);
}

#[test]
fn bytes_that_are_no_handshake_get_an_alert_alone() {
    let world = World::new(0, Faults::none(), &[]);
    let answer = world.run(|_, mut stream| async move {
        stream.tx.push(Segment::Static(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut answer = Vec::new();
        while let Ok(Some(lease)) = stream.rx.recv(Want::Body).await {
            answer.extend_from_slice(&lease);
        }
        answer
    });
    assert!(matches!(answer[..], [21, 3, _, 0, 2, 2, _]), "{answer:?}");
    assert_eq!(*world.received.lock().unwrap(), []);
}

#[test]
fn a_handshake_that_takes_too_long_ends_the_connection() {
    let world = World::new(0, Faults::none(), &[]);
    world.run(|io, mut stream| async move {
        stream.tx.push(Segment::Static(&[22, 3, 1, 2, 0]));
        let start = io.now();
        while let Ok(Some(_)) = stream.rx.recv(Want::Body).await {}
        assert!(io.now() - start < HANDSHAKE_TIME_MAX + Duration::from_secs(5));
    });
    assert_eq!(*world.received.lock().unwrap(), []);
}

#[test]
fn a_key_of_another_certificate_is_refused_and_so_is_what_is_no_pem() {
    let refused = |pair| Certificates::read([SERVER, pair]).unwrap_err();
    let (number, reason) = refused((SERVER.0, OTHER.1));
    assert_eq!((number, reason.to_string().contains("not that of the certificate")), (1, true));
    assert_eq!(refused((b"nothing", SERVER.1)).1.to_string().split(' ').next(), Some("the"));
    assert!(refused((SERVER.0, b"nothing")).1.to_string().contains("private key"));
    assert!(Certificates::read([]).is_err() && Roots::read(b"nothing").is_err());
}
