//! The wrong protocol, refusals, and handshakes that never end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_tests::binary::figures::{Figures, WakeupDelays};
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{EngineKind, Server, is_long, process, tool, until};
use plimsoll_tests::on_each_engine;

use super::{Secure, curl};
use crate::slots::{OPEN_FILES, SERVED_TIME, assert_served};

/// The first byte of a TLS alert.
const ALERT: u8 = 0x15;
/// An answer that comes at once comes much sooner than any deadline of the server.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Sends bytes, and returns all that the server sends until it closes.
fn answer(at: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(AT_ONCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server closes in time");
    answer
}

fn the_wrong_protocol_is_answered_at_once(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    let start = Instant::now();
    let clear = answer(secure.at(), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(clear.first() == Some(&ALERT) && clear.len() == 7, "{clear:?}");
    let encrypted = format!("https://{}/", secure.server.at());
    assert!(!tool::run(curl().args(["--insecure", &encrypted])).status.success());
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

/// A refusal leaves before the handshake, so it must be an alert: an HTTP response in clear is garbage to a
/// client of TLS.
fn a_client_over_its_share_gets_an_alert(kind: EngineKind) {
    let secure = Secure::start(kind, &["--connections-per-address", "2"]);
    // The start of a handshake: the kernel may withhold a connection until its client has sent something.
    let begun = || {
        let mut stream = TcpStream::connect(secure.at()).unwrap();
        stream.write_all(&[0x16]).unwrap();
        stream
    };
    // Threads of the server accept in any order, so that any of the first three may be the one over the
    // share.
    let mut held = vec![begun(), begun()];
    until("a connection beside two others is refused", || {
        let mut new = begun();
        new.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = [0; 7];
        if new.read_exact(&mut answer).is_err() {
            held.push(new);
            return false;
        }
        assert_eq!(answer, [ALERT, 3, 1, 0, 2, 2, 80]);
        true
    });
}

/// A ClientHello of TLS 1.2, for Ed25519 and X25519.
const CLIENT_HELLO: &str = "1603010058010000540303\
    000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
    000002c02b01000029000a00040002001d000d000400020807000b00020100001700000010000b000908687474702f312e31";

/// Where the length of its extensions is.
pub(super) const EXTENSIONS_AT: usize = 50;

pub(super) fn client_hello() -> Vec<u8> {
    let bytes = (0..CLIENT_HELLO.len()).step_by(2);
    bytes.map(|at| u8::from_str_radix(&CLIENT_HELLO[at..at + 2], 16).unwrap()).collect()
}

/// The forked processes of a server draw random numbers that differ.
fn two_sessions_never_have_the_same_random_numbers(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    let hello = client_hello();
    let random = || {
        let mut stream = TcpStream::connect(secure.at()).unwrap();
        stream.set_read_timeout(Some(AT_ONCE)).unwrap();
        stream.write_all(&hello).unwrap();
        let mut start = [0; 43];
        stream.read_exact(&mut start).expect("a ServerHello");
        assert_eq!((start[0], start[5]), (0x16, 2), "a ServerHello: {start:?}");
        start[11..].to_vec()
    };
    let mut all: Vec<Vec<u8>> = (0..8).map(|_| random()).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8);
}

/// Bytes of a silent client, those that end in the middle of a ClientHello, and a whole one that no other
/// message follows.
const HALVES: [usize; 4] = [0, 1, 50, usize::MAX];
/// More than the server has slots for.
const HALF_HANDSHAKES: usize = 1000;
/// The addresses that they come from.
const HALF_ADDRESSES: usize = 300;

/// Begins handshakes from many addresses, and begins each that the server ends again.
fn begin_handshakes(at: SocketAddr, hello: &[u8], ended: &AtomicBool) {
    let mut clients: Vec<Option<TcpStream>> = (0..HALF_HANDSHAKES).map(|_| None).collect();
    while !ended.load(Ordering::Relaxed) {
        for (number, client) in clients.iter_mut().enumerate() {
            let is_over = |stream: &TcpStream| {
                let mut byte = [0; 64];
                let received = (&mut &*stream).read(&mut byte);
                !matches!(received, Ok(1..))
                    && !received.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
            };
            if client.as_ref().is_some_and(|client| !is_over(client)) {
                continue;
            }
            let [.., high, low] = u32::try_from(number % HALF_ADDRESSES + 256).unwrap().to_be_bytes();
            *client = connect_from([127, 9, high, low].into(), at, None).ok().inspect(|mut new| {
                new.set_nonblocking(true).unwrap();
                let sent = HALVES[number % HALVES.len()].min(hello.len());
                let _ = new.write_all(&hello[..sent]);
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ends the attack, also if the test fails.
struct Attack<'a>(&'a AtomicBool);

impl Drop for Attack<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The oldest handshakes end first, before connections that have completed a request.
fn half_handshakes_keep_no_honest_client_out(kind: EngineKind) {
    process::raise_open_files();
    let secure = Secure::start_with(kind, "127.0.0.1:0", &[], Some(OPEN_FILES));
    let mut kept = secure.server.visit();
    assert_eq!(kept.get("/healthz").unwrap().status, 200);
    let (hello, ended) = (client_hello(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _attack = Attack(&ended);
        scope.spawn(|| begin_handshakes(secure.at(), &hello, &ended));
        std::thread::sleep(Duration::from_secs(1));
        let url = secure.url("/healthz");
        for _ in 0..5 {
            let time = assert_served("a page over HTTPS", || {
                secure.curl(&["--max-time", "2", "-o", "/dev/null", &url]).status.success()
            });
            // A connection cannot be evicted before its thread has started. If all others wait for that, an
            // idle one goes instead; so does one of a pool that waits without a worker.
            let began = Instant::now();
            if !matches!(kind, EngineKind::Thread | EngineKind::Pool) {
                assert_eq!(kept.get("/healthz").unwrap().status, 200);
            }
            let of_kept = began.elapsed();
            println!("{kind}: {time:?}, on a connection from before {of_kept:?}");
            assert!(of_kept < SERVED_TIME, "on a connection from before: {of_kept:?}");
        }
    });
}

on_each_engine!(alone: half_handshakes_keep_no_honest_client_out);

/// The engines with a worker for each connection.
mod workers {
    mod alone {
        use plimsoll_tests::binary::{EngineKind, alone};

        use super::super::half_handshakes_keep_no_honest_client_out;

        #[test]
        fn half_handshakes_keep_no_honest_client_out_of_a_pool() {
            let _permit = alone();
            half_handshakes_keep_no_honest_client_out(EngineKind::Pool);
        }

        #[test]
        fn half_handshakes_keep_no_honest_client_out_of_processes() {
            let _permit = alone();
            half_handshakes_keep_no_honest_client_out(EngineKind::Process);
        }
    }
}

/// The time of a few signatures with RSA of 4096 bits, also on a slow machine.
const LONG_SIGNATURES_TIME: Duration = Duration::from_millis(60);

/// As [`CLIENT_HELLO`], for a certificate with RSA.
fn client_hello_for_rsa() -> Vec<u8> {
    let mut hello = client_hello();
    let replace = |hello: &mut Vec<u8>, old: &[u8], new: [u8; 2]| {
        let at = hello.windows(old.len()).position(|window| window == old).unwrap();
        hello[at..at + 2].copy_from_slice(&new);
    };
    replace(&mut hello, &[0xc0, 0x2b], [0xc0, 0x2f]);
    replace(&mut hello, &[0x08, 0x07], [0x08, 0x04]);
    hello
}

/// Each whole ClientHello costs the server a signature of about 4 ms. Those of one turn of the event loop
/// delay its other connections.
fn a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_much(kind: EngineKind) {
    process::raise_open_files();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("rsa.pem"), path("rsa.key"));
    let mut make = tool("openssl");
    make.args(["req", "-x509", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=localhost", "-days", "9"]);
    tool::run(make.args(["-keyout", &key, "-out", &certificate])).well();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let args = ["--https", "127.0.0.1:0", "--threads", "1", "--certificate", &certificate, "--key", &key];
    let server = Server::on_data(kind, &folder.path().join("data"), &args);
    let mut kept = server.visit();
    let mut wait = || {
        let began = Instant::now();
        assert_eq!(kept.get("/healthz").unwrap().status, 200);
        std::thread::sleep(Duration::from_millis(2));
        began.elapsed() - Duration::from_millis(2)
    };
    let before = Figures::of((0..200).map(|_| wait()).collect());
    let (hello, ended) = (client_hello_for_rsa(), AtomicBool::new(false));
    let delays = WakeupDelays::measure();
    let during = std::thread::scope(|scope| {
        let _attack = Attack(&ended);
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // A whole ClientHello each, in two parts, and the second parts at the same time.
                let mut clients: Vec<TcpStream> = (0..200)
                    .filter_map(|number: u8| {
                        let mut stream =
                            connect_from([127, 9, 1, number].into(), server.https_at(), None).ok()?;
                        stream.write_all(&hello[..9]).ok()?;
                        Some(stream)
                    })
                    .collect();
                std::thread::sleep(Duration::from_millis(50));
                clients.iter_mut().for_each(|client| drop(client.write_all(&hello[9..])));
                std::thread::sleep(Duration::from_millis(900));
            }
        });
        Figures::of((0..if is_long() { 600 } else { 100 }).map(|_| wait()).collect())
    });
    let delays = delays.end().within(990);
    println!("{kind}: before {before}; during {during}; wake-ups are late by {delays:?}");
    assert!(during.within(990) < LONG_SIGNATURES_TIME + 4 * delays, "{during}");
}

/// The engines with an event loop. The kernel shares the processor among threads or processes.
mod loops {
    mod alone {
        use plimsoll_tests::binary::{EngineKind, alone};

        use super::super::a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_much;

        #[test]
        fn a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_of_epoll_much() {
            let _permit = alone();
            a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_much(EngineKind::Epoll);
        }

        #[cfg(feature = "every-engine")]
        #[test]
        fn a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_of_uring_much() {
            let _permit = alone();
            if plimsoll_tests::binary::has_a_ring() {
                a_flood_of_handshakes_with_a_long_key_delays_no_connected_client_much(EngineKind::Uring);
            }
        }
    }
}

on_each_engine!(forks:
    the_wrong_protocol_is_answered_at_once,
    a_client_over_its_share_gets_an_alert,
    two_sessions_never_have_the_same_random_numbers,
);
