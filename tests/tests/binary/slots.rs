//! Hostile clients that take as many connections as they can: an honest client is served all the same.
//!
//! The server has a few dozen slots, so that the attack is complete at once. Each attacker has separate
//! loopback addresses, reconnects as soon as it is disconnected, and never logs in.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::member::{PASSWORD, log_in};
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{EngineKind, Member, PATIENCE, Server, Visitor, alone, has_a_ring, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

pub(crate) const OPEN_FILES: u32 = 512;
/// A new honest client must be served within this time during any attack.
pub(crate) const SERVED_TIME: Duration = Duration::from_secs(2);
/// How many times an honest client connects in each way, for each number of hostile addresses.
const ROUNDS: usize = 3;
/// More than socket buffers hold, so that the download is in progress until the end of the test.
const LARGE_BYTES: usize = 16 << 20;
/// The number of reconnects of hostile clients at a time, and the pause after them.
const BACK_AT_ONCE: usize = 4;
const BACK_PAUSE: Duration = Duration::from_millis(10);

/// The behaviour of a hostile client.
#[derive(Clone, Copy)]
enum Misbehaviour {
    SilentHttp,
    SlowHead,
    SlowBody,
    IdleHttp,
    SilentFtp,
    SlowFtp,
    /// Reads a few bytes of a large file at a time.
    SlowReader,
}

/// The last one is for a few addresses with several connections each. One slow reader from each of many
/// addresses is indistinguishable from honest clients on slow networks.
const MISBEHAVIOURS: [Misbehaviour; 7] = [
    Misbehaviour::SilentHttp,
    Misbehaviour::SlowHead,
    Misbehaviour::SlowBody,
    Misbehaviour::IdleHttp,
    Misbehaviour::SilentFtp,
    Misbehaviour::SlowFtp,
    Misbehaviour::SlowReader,
];
/// Above this number of addresses, which then have few connections each, slow readers are left out.
const SLOW_READERS_MAX: usize = 30;

impl Misbehaviour {
    fn is_ftp(self) -> bool {
        matches!(self, Misbehaviour::SilentFtp | Misbehaviour::SlowFtp)
    }

    /// Returns the first bytes that it sends.
    fn first(self) -> &'static str {
        match self {
            Misbehaviour::SilentHttp | Misbehaviour::SilentFtp => "",
            Misbehaviour::SlowHead => "GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: ",
            Misbehaviour::SlowBody => {
                "POST /api/sessions HTTP/1.1\r\nHost: slow\r\nContent-Type: application/json\r\n\
                 Content-Length: 60000\r\n\r\n{"
            }
            Misbehaviour::SlowReader => "GET /large.bin HTTP/1.1\r\nHost: slow\r\n\r\n",
            Misbehaviour::IdleHttp => "GET /small.txt HTTP/1.1\r\nHost: idle\r\n\r\n",
            Misbehaviour::SlowFtp => "USER al",
        }
    }

    /// Returns the bytes that it sends periodically.
    fn next(self) -> &'static str {
        match self {
            Misbehaviour::SlowHead | Misbehaviour::SlowBody | Misbehaviour::SlowFtp => " ",
            Misbehaviour::SilentHttp
            | Misbehaviour::IdleHttp
            | Misbehaviour::SilentFtp
            | Misbehaviour::SlowReader => "",
        }
    }

    /// Returns the size of its receive buffer; `None` is the kernel's default.
    fn window(self) -> Option<usize> {
        matches!(self, Misbehaviour::SlowReader).then_some(4096)
    }
}

/// Returns a hostile client's address, which is not one of the honest clients'.
fn hostile(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number + 256).expect("a few hundred").to_be_bytes();
    Ipv4Addr::new(127, 0, high, low)
}

/// Returns whether the server has ended a connection; received bytes are discarded.
fn is_over(mut stream: &TcpStream, misbehaviour: Misbehaviour) -> bool {
    let mut block = [0; 64];
    loop {
        match stream.read(&mut block) {
            Ok(1..) if matches!(misbehaviour, Misbehaviour::SlowReader) => return false,
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Ok(0) | Err(_) => return true,
        }
    }
}

/// Hostile clients on a separate thread, until dropped.
struct Attack {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attack {
    /// Starts `count` clients from `addresses` addresses, in every manner.
    fn begin(server: &Server, addresses: usize, count: usize) -> Attack {
        let (http, ftp, over) = (server.at(), server.ftp_at(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || attack((http, ftp), addresses, count, &is_over));
        Attack { over, thread: Some(thread) }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            println!("the attack panicked; its message is above");
        }
    }
}

fn attack((http, ftp): (SocketAddr, SocketAddr), addresses: usize, count: usize, over: &AtomicBool) {
    let manners = if addresses > SLOW_READERS_MAX {
        &MISBEHAVIOURS[..MISBEHAVIOURS.len() - 1]
    } else {
        &MISBEHAVIOURS[..]
    };
    let mut clients: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    while !over.load(Ordering::Relaxed) {
        let mut back = 0;
        for (number, client) in clients.iter_mut().enumerate() {
            // Each address is used in every manner.
            let misbehaviour = manners[(number + number / addresses) % manners.len()];
            if client.as_ref().is_some_and(|client| is_over(client, misbehaviour)) {
                *client = None;
            }
            match client {
                // An error appears at the next [`is_over`].
                Some(client) => drop(client.write_all(misbehaviour.next().as_bytes())),
                None if back < BACK_AT_ONCE => {
                    let at = if misbehaviour.is_ftp() { ftp } else { http };
                    back += 1;
                    *client = connect_from(hostile(number % addresses), at, misbehaviour.window())
                        .ok()
                        .inspect(|mut new| {
                            new.set_nonblocking(true).expect("a socket");
                            let _ = new.write_all(misbehaviour.first().as_bytes());
                        });
                }
                None => {}
            }
        }
        std::thread::sleep(BACK_PAUSE);
    }
}

/// Connects as an honest client, with the time limit of [`SERVED_TIME`].
fn honest(at: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&at, SERVED_TIME).ok()?;
    stream.set_read_timeout(Some(SERVED_TIME)).ok()?;
    Some(stream)
}

fn visit(server: &Server) -> Option<Visitor> {
    let visitor = Visitor::new(honest(server.at())?).ok()?;
    visitor.stream.set_read_timeout(Some(SERVED_TIME)).ok()?;
    Some(visitor)
}

fn gets_a_file(server: &Server) -> bool {
    let got = visit(server).and_then(|mut visitor| visitor.get("/small.txt").ok());
    got.is_some_and(|reply| reply.status == 200 && reply.body == b"small\n")
}

fn logs_in_over_http(server: &Server) -> bool {
    visit(server).is_some_and(|mut visitor| log_in(&mut visitor, "alice").is_ok())
}

fn logs_in_over_ftp(server: &Server) -> bool {
    let Some(stream) = honest(server.ftp_at()) else { return false };
    let mut control = BufReader::new(stream);
    let password = format!("PASS {PASSWORD}\r\n");
    let dialogue = [("", "220"), ("USER alice\r\n", "331"), (&*password, "230"), ("QUIT\r\n", "221")];
    dialogue.into_iter().all(|(command, code)| {
        let mut line = String::new();
        let result = control.get_mut().write_all(command.as_bytes());
        result.is_ok() && control.read_line(&mut line).is_ok() && line.starts_with(code)
    })
}

/// Asserts that an honest client is served in time. It may retry, as clients do.
pub(crate) fn assert_served(label: &str, attempt: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    let mut attempts = 1;
    while !attempt() {
        assert!(start.elapsed() < SERVED_TIME, "{label}: not after {:?}", start.elapsed());
        attempts += 1;
    }
    let time = start.elapsed();
    assert!(time < SERVED_TIME, "{label}: only after {time:?} and {attempts} attempts");
    time
}

fn start(kind: EngineKind, folder: &Path, more: &[&str]) -> Server {
    let site = folder.join("site");
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(5, LARGE_BYTES)).plant(&site);
    let site = format!("/={}", site.display());
    let args = [&["--ftp", "127.0.0.1:0", "--site", &site], more].concat();
    Server::on_data_with_few_open_files(kind, &folder.join("data"), &args, OPEN_FILES)
}

fn load(server: &Server, name: &str) -> u64 {
    server.status()["load"][name].as_u64().expect("a count")
}

fn an_honest_client_is_served_beside_hostile_ones(
    kind: EngineKind,
    threads: &str,
    rounds: usize,
    crowds: &[usize],
) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), &["--threads", threads]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/hello.txt", b"hello\n").status, 201);
    let mut download = server.visit_narrowly();
    download.send("GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let (_, length) = download.head().unwrap();
    let max = usize::try_from(load(&server, "connections_max")).unwrap();
    assert!((16..120).contains(&max), "{max}: the limit of open files is that of connections");
    let mut received = 0;
    for &addresses in crowds {
        let turned_away = || load(&server, "connections_refused") + load(&server, "connections_evicted");
        let before = turned_away();
        let _attack = Attack::begin(&server, addresses, addresses.max(2 * max));
        until("the slots have run short", || turned_away() > before);
        for _ in 0..rounds {
            let times = [
                assert_served("a file over HTTP", || gets_a_file(&server)),
                assert_served("a log-in over HTTP", || logs_in_over_http(&server)),
                assert_served("a log-in over FTP", || logs_in_over_ftp(&server)),
            ];
            println!("{kind}, {addresses} hostile addresses: {times:?}");
            received += download.some_body().expect("the download goes on").len();
        }
        let open = usize::try_from(load(&server, "connections_open")).unwrap();
        assert!(open <= max, "{open} of {max}");
    }
    // Clients with a login, or with a download in progress, are not affected.
    assert_eq!(alice.get("/files/hello.txt").body, b"hello\n");
    while received < length {
        let some = download.some_body().expect("the download goes on").len();
        assert!(some > 0, "the download ended after {received} of {length} bytes");
        received += some;
    }
    assert_eq!(load(&server, "connections_panicked"), 0);
}

/// Returns the first bytes that a server sends to a connection from `from`.
fn first_words(from: Ipv4Addr, at: SocketAddr) -> String {
    let mut stream = connect_from(from, at, None).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut words = String::new();
    stream.read_to_string(&mut words).unwrap();
    words
}

fn an_address_over_its_share_gets_a_refusal_that_says_so(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--classic", "127.0.0.1:0", "--connections-per-address", "3"];
    let server = start(kind, folder.path(), &more);
    let from = |last| Ipv4Addr::new(127, 0, 0, last);
    let visit = |last| Visitor::new(connect_from(from(last), server.at(), None).unwrap()).unwrap();
    let mut inside: Vec<Visitor> = (0..3).map(|_| visit(2)).collect();
    for visitor in &mut inside {
        assert_eq!(visitor.get("/small.txt").expect("an answer").status, 200);
    }
    let refused = visit(2).get("/small.txt").expect("an answer");
    assert_eq!((refused.status, refused.closes), (503, true), "{}", refused.head);
    assert!(refused.field("Retry-After").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
    assert_eq!(refused.json()["detail"], "Your address has too many connections open.");
    assert!(first_words(from(2), server.ftp_at()).starts_with("421 "));
    assert!(first_words(from(2), server.classic_at()).starts_with("error: your address has too many"));
    assert_eq!(load(&server, "connections_refused"), 3);
    // Other addresses are served, and so are the open connections.
    assert_eq!(visit(3).get("/small.txt").expect("an answer").status, 200);
    for visitor in &mut inside {
        assert_eq!(visitor.get("/small.txt").expect("an answer").status, 200);
    }
    drop(inside.pop());
    until("the slot is free", || visit(2).get("/small.txt").is_ok_and(|reply| reply.status == 200));
}

on_each_engine!(forks: an_address_over_its_share_gets_a_refusal_that_says_so);

mod attacked_alone {
    use super::*;

    fn attacked(kind: EngineKind) {
        let _permit = alone();
        an_honest_client_is_served_beside_hostile_ones(kind, "2", ROUNDS, &[3, 30, 300]);
    }

    #[test]
    fn under_epoll() {
        attacked(EngineKind::Epoll);
    }

    #[test]
    fn under_uring() {
        if has_a_ring() {
            attacked(EngineKind::Uring);
        }
    }

    #[test]
    fn under_thread() {
        attacked(EngineKind::Thread);
    }

    #[test]
    fn under_pool() {
        let _permit = alone();
        // A slow client may hold a worker for a second, so the number of workers is that of a default pool.
        an_honest_client_is_served_beside_hostile_ones(EngineKind::Pool, "32", ROUNDS, &[3, 30, 300]);
    }

    #[test]
    fn under_process() {
        attacked(EngineKind::Process);
    }
}
