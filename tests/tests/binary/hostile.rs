//! A stuck, slow or flooding client never delays another, nor makes the server grow without bound.
//!
//! The bounds are wide enough for a noisy machine; what was measured is printed. Each flooding client has one
//! connection at a time on its way: a flood without that bound, from a core of its own, can fill the queue
//! of an engine that makes a thread for each faster than that engine empties it.

use std::time::{Duration, Instant};

use plimsoll_tests::binary::figures::Figures;
use plimsoll_tests::binary::{Kind, Reply, Server, Visitor, process, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

use crate::crowd::{Crowd, DRIBBLING, FLOODING, GREEDY, HUGE_BYTES, IDLE, STUCK};

/// What the healthy client asks for: an answer in one packet or two.
const SMALL_BYTES: usize = 1024;
/// What stuck clients ask for: far more than the kernel buffers.
const LARGE_BYTES: usize = 32 << 20;

/// How long the healthy client measures, alone or in the crowd, on a kept connection and on new ones.
const MEASURE_TIME: Duration = Duration::from_millis(2500);
/// Requests that it makes at most in that time.
const REQUESTS_MAX: usize = 4_000;
/// Requests that it must have made: a tenth of a quiet machine's with a thread per connection.
const REQUESTS_MIN: usize = 50;

/// Bound of p99 in the crowd, on a kept connection. A quiet machine with two cores shows 2 ms at most; one
/// client that waits for another's second, or for a timeout, is beyond it.
const KEPT_P99_MAX: Duration = Duration::from_millis(250);
/// Bound of p99 in the crowd, with a new connection for every request, which queues behind the flood's:
/// with a thread to be made for each, a quiet machine shows 30 to 55 ms.
const FRESH_P99_MAX: Duration = Duration::from_millis(500);

/// Bound of the server's resident memory with the whole crowd, under the loops: 10 MiB are usual.
const LOOPS_PEAK_KIB_MAX: u64 = 48 * 1024;
/// The same with a thread for each of 1,600 connections, its stack and its own engine: 45 MiB are usual,
/// and the allocator keeps more on a machine with more cores.
const THREADS_PEAK_KIB_MAX: u64 = 160 * 1024;

/// Asserts that an answer is right to the last byte.
fn assert_right(reply: &Reply, bytes: &[u8]) {
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert!(reply.body == bytes, "every byte");
}

/// Times requests, one after the other.
fn measured(mut request: impl FnMut() -> Reply) -> Figures {
    let bytes = noise(31, SMALL_BYTES);
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < REQUESTS_MAX && start.elapsed() < MEASURE_TIME {
        let begun = Instant::now();
        let reply = request();
        times.push(begun.elapsed());
        assert_right(&reply, &bytes);
    }
    Figures::of(times)
}

/// A healthy client on one kept connection.
fn kept(server: &Server) -> Figures {
    let mut visitor = server.visit();
    measured(|| visitor.get("/small.bin").expect("an answer"))
}

/// A healthy client with a new connection for every request.
fn fresh(server: &Server) -> Figures {
    measured(|| {
        let mut visitor = Visitor::connect(server.at()).expect("a connection");
        visitor.get_with("/small.bin", "Connection: close\r\n").expect("an answer")
    })
}

fn connections_open(server: &Server) -> usize {
    let status = server.status();
    usize::try_from(status["load"]["connections_open"].as_u64().expect("a count")).expect("a small one")
}

/// What the crowd of clients that stay amounts to; those who open and close come on top.
const STAYING: usize = DRIBBLING + STUCK + GREEDY + IDLE;

fn a_crowd_of_hostile_clients_delays_nobody(kind: Kind) {
    process::raise_open_files();
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.bin", noise(31, SMALL_BYTES));
    tree.file("large.bin", noise(37, LARGE_BYTES)).plant(folder.path());
    // Without blocks of its own: reading it costs no disk.
    std::fs::File::create(folder.path().join("huge.bin")).unwrap().set_len(HUGE_BYTES).unwrap();
    let server = Server::start(kind, folder.path(), &["--threads", "2"]);
    let alone = (kept(&server), fresh(&server));
    println!("{kind}, alone, kept: {}", alone.0);
    println!("{kind}, alone, new connections: {}", alone.1);

    let crowd = Crowd::gather(server.at(), "/large.bin", "/huge.bin");
    until("the crowd is there", || {
        connections_open(&server) >= STAYING
            && crowd.opened() >= 2 * FLOODING as u64
            && crowd.swallowed() >= HUGE_BYTES
    });
    let among = (kept(&server), fresh(&server));
    println!("{kind}, in the crowd, kept: {}", among.0);
    println!("{kind}, in the crowd, new connections: {}", among.1);

    until("each dribbling client has sent some bytes", || crowd.dribbled() >= 3 * DRIBBLING as u64);
    assert_eq!(crowd.let_go(), 0, "of the idle");
    assert!(connections_open(&server) >= STAYING, "the crowd is still there");
    let (pid, opened) = (server.pid(), crowd.opened());
    let (peak, shared) = (process::peak_kib(pid), process::proportional_kib(pid));
    let threads = process::threads(pid);
    println!("{kind}: greedy clients have read {} MiB", crowd.swallowed() >> 20);
    println!("{kind}: peak {peak} KiB, now {shared} KiB in proportion, {threads} threads, flood of {opened}");
    for (figures, bound) in [(among.0, KEPT_P99_MAX), (among.1, FRESH_P99_MAX)] {
        assert!(figures.count() >= REQUESTS_MIN, "only {figures}");
        assert!(figures.within(990) <= bound, "{figures}: more than {bound:?}");
    }
    let bound = if kind == Kind::Thread { THREADS_PEAK_KIB_MAX } else { LOOPS_PEAK_KIB_MAX };
    assert!(peak <= bound, "{peak} KiB at the peak: more than {bound}");

    drop(crowd);
    until("the crowd has gone", || connections_open(&server) == 1);
    assert_right(&server.visit().get("/small.bin").unwrap(), &noise(31, SMALL_BYTES));
    assert_eq!(server.status()["load"]["connections_panicked"], 0);
}

on_each_engine!(alone: a_crowd_of_hostile_clients_delays_nobody);
