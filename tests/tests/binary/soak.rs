//! The soak test of an engine: hostile clients of every kind at once, while a healthy client is served. It
//! takes seconds on each commit and ten minutes in a long run.
//!
//! It measures no latency: the healthy client's only bound is the timeout of a hanging connection. Memory
//! must stay below a bound independent of the duration, and in the end nothing may be left.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Server, Visitor, is_long, process, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::net::sockopt;

use crate::crowd::{Crowd, HUGE_BYTES};

/// The duration.
const SHORT: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_secs(600);

const SMALL_BYTES: usize = 1024;
/// More than the kernel buffers.
const LARGE_BYTES: usize = 32 << 20;

/// Threads of clients that send requests and reset at once, repeatedly.
const STORM_THREADS: usize = 2;
/// Requests that are reset together.
const STORM: usize = 32;
/// Clients that send bodies at the same time: more than an engine has receive buffers for.
const SENDING: usize = 96;
/// The bytes that each sends before it is answered.
const BODY_BYTES: usize = 256 << 10;

/// The bound of the server's resident memory under the event loops: 30 MiB are usual.
const LOOPS_KIB_MAX: u64 = 96 * 1024;
/// The same with a thread for each connection.
const THREADS_KIB_MAX: u64 = 256 * 1024;
/// The bound of additional descriptors in the end, such as a log's or a folder's.
const DESCRIPTORS_LEFT_MAX: usize = 8;

/// Additional hostile clients on separate threads.
struct Storms {
    over: Arc<AtomicBool>,
    done: Arc<[AtomicU64; 3]>,
    threads: Vec<JoinHandle<()>>,
}

impl Storms {
    fn begin(at: SocketAddr) -> Storms {
        let mut storms = Storms { over: Arc::default(), done: Arc::default(), threads: Vec::new() };
        (0..STORM_THREADS).for_each(|_| storms.keep_on(0, move || cancelled(at)));
        storms.keep_on(1, move || closed_in_flight(at));
        storms.keep_on(2, move || many_bodies(at));
        storms
    }

    fn keep_on(&mut self, kind: usize, act: impl Fn() + Send + 'static) {
        let (over, done) = (Arc::clone(&self.over), Arc::clone(&self.done));
        self.threads.push(std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                act();
                done[kind].fetch_add(1, Ordering::Relaxed);
            }
        }));
    }

    fn done(&self) -> [u64; 3] {
        [0, 1, 2].map(|kind| self.done[kind].load(Ordering::Relaxed))
    }

    /// Stops the threads; a storm that failed fails the test.
    fn end(mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a storm's thread; its message is above");
        }
    }
}

/// Makes a later drop reset the connection instead of closing it.
fn reset_on_drop(visitor: &Visitor) {
    sockopt::set_socket_linger(&visitor.stream, Some(Duration::ZERO)).expect("a socket");
}

/// Sends many large requests, and resets all of them at once.
fn cancelled(at: SocketAddr) {
    let ask = |number: usize| {
        let mut visitor = Visitor::connect(at).expect("the server accepts connections");
        reset_on_drop(&visitor);
        let target = if number.is_multiple_of(2) { "/large.bin" } else { "/small.bin" };
        // The server may have closed the connection already.
        let _ = visitor.send(&format!("GET {target} HTTP/1.1\r\nHost: storm\r\n\r\n"));
        visitor
    };
    drop((0..STORM).map(ask).collect::<Vec<_>>());
}

/// Reads the beginning of an answer, and closes on the rest of it.
fn closed_in_flight(at: SocketAddr) {
    let mut visitor = Visitor::connect_narrowly(at).expect("the server accepts connections");
    visitor.send("GET /large.bin HTTP/1.1\r\nHost: leaving\r\n\r\n").expect("it reads");
    let read = visitor.stream.read(&mut [0; 100]).expect("it answers");
    assert!(read > 0, "the server has ended the answer");
}

/// Sends many unauthorised bodies at once, each of which must be answered.
fn many_bodies(at: SocketAddr) {
    let body = vec![b'x'; BODY_BYTES];
    let mut clients: Vec<Visitor> =
        (0..SENDING).map(|_| Visitor::connect(at).expect("the server accepts connections")).collect();
    let token = "0".repeat(32);
    let head = format!(
        "PUT /files/body HTTP/1.1\r\nHost: many\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {BODY_BYTES}\r\n\r\n"
    );
    for client in &mut clients {
        client.send(&head).expect("it reads");
    }
    for piece in body.chunks(BODY_BYTES / 4) {
        for client in &mut clients {
            client.stream.write_all(piece).expect("it reads what it refuses");
        }
    }
    for client in &mut clients {
        assert_eq!(client.reply().expect("an answer").status, 401);
    }
}

/// Asserts that a healthy client is served, on its keep-alive connection and on a new one.
fn served(kept: &mut Visitor, at: SocketAddr, small: &[u8]) {
    let reply = kept.get("/small.bin").expect("an answer on the kept connection");
    assert!(reply.status == 200 && reply.body == small);
    let mut fresh = Visitor::connect(at).expect("the server accepts connections");
    let reply = fresh.get_with("/small.bin", "Connection: close\r\n").expect("an answer on a new connection");
    assert!(reply.status == 200 && reply.body == small);
}

fn connections_open(server: &Server) -> u64 {
    server.status()["load"]["connections_open"].as_u64().expect("a count")
}

fn a_healthy_client_is_served_and_memory_is_bounded_however_long_others_are_hostile(kind: EngineKind) {
    process::raise_open_files();
    let (folder, small) = (tempfile::tempdir().unwrap(), noise(31, SMALL_BYTES));
    let tree = Tree::new().file("small.bin", small.clone());
    tree.file("large.bin", noise(37, LARGE_BYTES)).plant(folder.path());
    // A sparse file: reading it needs no disk access.
    std::fs::File::create(folder.path().join("huge.bin")).unwrap().set_len(HUGE_BYTES).unwrap();
    let server = Server::start(kind, folder.path(), &["--threads", "2"]);
    let (at, pid) = (server.at(), server.pid());
    let mut kept = server.visit();
    served(&mut kept, at, &small);
    let descriptors = process::descriptors(pid);

    let crowd = Crowd::gather(at, "/large.bin", "/huge.bin");
    let storms = Storms::begin(at);
    let bound = if kind == EngineKind::Thread { THREADS_KIB_MAX } else { LOOPS_KIB_MAX };
    let (start, time) = (Instant::now(), if is_long() { LONG } else { SHORT });
    let (mut rounds, mut most) = (0_u64, 0);
    while start.elapsed() < time || storms.done().contains(&0) {
        served(&mut kept, at, &small);
        rounds += 1;
        let resident = process::resident_kib(pid);
        assert!(resident <= bound, "{resident} KiB after {:?}: more than {bound}", start.elapsed());
        most = most.max(resident);
    }
    println!("{kind}: {rounds} rounds, {most} KiB at most, storms {:?}", storms.done());

    storms.end();
    drop(crowd);
    until("the crowd has gone", || connections_open(&server) <= 2);
    served(&mut kept, at, &small);
    until("the descriptors are closed", || process::descriptors(pid) <= descriptors + DESCRIPTORS_LEFT_MAX);
    assert_eq!(server.status()["load"]["connections_panicked"], 0);
}

on_each_engine!(exam: a_healthy_client_is_served_and_memory_is_bounded_however_long_others_are_hostile);
