//! A stuck, slow or flooding client never delays another, nor makes the server's memory grow without bound.
//!
//! A bound of latency includes the delay with which this machine wakes a thread. Measured figures are
//! printed. Each flooding client has
//! one connection in progress at a time. A flood without that bound, from another core, can fill the accept
//! queue of a thread-per-connection engine faster than the engine empties it.

use std::time::{Duration, Instant};

use plimsoll_tests::binary::figures::{Figures, WakeupDelays};
use plimsoll_tests::binary::{EngineKind, Reply, Server, Visitor, process, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

use crate::crowd::{Crowd, DRIBBLING, FLOODING, GREEDY, HUGE_BYTES, IDLE, STUCK};

/// The size of the healthy client's answers: one packet or two.
const SMALL_BYTES: usize = 1024;
/// The size of the stuck clients' answers: far more than the kernel buffers.
const LARGE_BYTES: usize = 32 << 20;

/// The duration of the healthy client's measurement, alone or in the crowd, on keep-alive and on new
/// connections.
const MEASURE_TIME: Duration = Duration::from_millis(2500);
/// The maximal number of its requests in that time.
const REQUESTS_MAX: usize = 4_000;
/// The minimal number of its requests: a tenth of a quiet machine's with a thread per connection.
const REQUESTS_MIN: usize = 50;

/// The bound of p99 in the crowd, on a keep-alive connection, beyond the machine's own delays. A quiet
/// machine with two cores shows 2 ms at most.
const KEPT_P99_MAX: Duration = Duration::from_millis(20);
/// The same with a new connection for every request, which queues behind the flood's.
const FRESH_P99_MAX: Duration = Duration::from_millis(40);
/// The same with one thread per connection: a quiet machine shows 30 to 55 ms.
const FRESH_THREAD_P99_MAX: Duration = Duration::from_millis(200);
/// How many delays of a wakeup a request may wait for: of client, server and scheduler, on the way and back.
const WAKEUPS_MAX: u32 = 4;

/// The bound of the server's resident memory with the whole crowd, under the event loops: 10 MiB are usual.
const LOOPS_PEAK_KIB_MAX: u64 = 48 * 1024;
/// The same with a thread for each of 1,600 connections, with its stack and its engine: 45 MiB are usual.
/// The allocator keeps more on a machine with more cores.
const THREADS_PEAK_KIB_MAX: u64 = 160 * 1024;

/// Asserts that an answer is correct to the last byte.
fn assert_right(reply: &Reply, bytes: &[u8]) {
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert!(reply.body == bytes, "every byte");
}

/// Times sequential requests.
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

/// Measures a healthy client on one keep-alive connection.
fn kept(server: &Server) -> Figures {
    let mut visitor = server.visit();
    measured(|| visitor.get("/small.bin").expect("an answer"))
}

/// Measures a healthy client with a new connection for every request.
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

/// The number of clients that keep their connection; flooding clients are extra.
const STAYING: usize = DRIBBLING + STUCK + GREEDY + IDLE;

fn a_crowd_of_hostile_clients_delays_no_healthy_client(kind: EngineKind) {
    process::raise_open_files();
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.bin", noise(31, SMALL_BYTES));
    tree.file("large.bin", noise(37, LARGE_BYTES)).plant(folder.path());
    // A sparse file: reading it needs no disk access.
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
    let delays = WakeupDelays::measure();
    let among = (kept(&server), fresh(&server));
    let delays = delays.end();
    println!("{kind}, in the crowd, kept: {}", among.0);
    println!("{kind}, in the crowd, new connections: {}", among.1);
    println!("{kind}, in the crowd, delays of a wakeup: {delays}");

    until("each dribbling client has sent some bytes", || crowd.dribbled() >= 3 * DRIBBLING as u64);
    assert_eq!(crowd.let_go(), 0, "of the idle");
    assert!(connections_open(&server) >= STAYING, "the crowd is still there");
    let (pid, opened) = (server.pid(), crowd.opened());
    let (peak, shared) = (process::peak_kib(pid), process::proportional_kib(pid));
    let threads = process::threads(pid);
    println!("{kind}: greedy clients have read {} MiB", crowd.swallowed() >> 20);
    println!("{kind}: peak {peak} KiB, now {shared} KiB in proportion, {threads} threads, flood of {opened}");
    let fresh_max = if kind == EngineKind::Thread { FRESH_THREAD_P99_MAX } else { FRESH_P99_MAX };
    for (figures, bound) in [(among.0, KEPT_P99_MAX), (among.1, fresh_max)] {
        let bound = bound + delays.within(990) * WAKEUPS_MAX;
        assert!(figures.count() >= REQUESTS_MIN, "only {figures}");
        assert!(figures.within(990) <= bound, "{figures}: more than {bound:?}");
    }
    let bound = if kind == EngineKind::Thread { THREADS_PEAK_KIB_MAX } else { LOOPS_PEAK_KIB_MAX };
    assert!(peak <= bound, "{peak} KiB at the peak: more than {bound}");

    drop(crowd);
    until("the crowd has gone", || connections_open(&server) == 1);
    assert_right(&server.visit().get("/small.bin").unwrap(), &noise(31, SMALL_BYTES));
    assert_eq!(server.status()["load"]["connections_panicked"], 0);
}

on_each_engine!(alone: a_crowd_of_hostile_clients_delays_no_healthy_client);
