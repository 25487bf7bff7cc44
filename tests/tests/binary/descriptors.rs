//! Nothing is left behind after 10,000 connections with all kinds of ends. The server has as many
//! descriptors and threads as before, and hardly more memory.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Server, Visitor, process, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::net::sockopt;

const CONNECTIONS: usize = 10_000;
/// Clients that connect at the same time.
const CLIENTS: usize = 8;
/// Connections before the first measurement: they fill pools and the allocator's arenas, which stay.
const FIRST_CONNECTIONS: usize = 1_000;
/// More than the kernel buffers, so that a client that leaves in the middle leaves a transfer in progress.
const LARGE_BYTES: usize = 16 << 20;
/// The bound of resident memory left by 10,000 connections. A leak of a kilobyte per connection would be 10
/// MiB.
const GROWTH_KIB_MAX: u64 = 8 * 1024;
/// The bound of the server's peak resident memory, with [`CLIENTS`] at once: 6 MiB are usual.
const PEAK_KIB_MAX: u64 = 32 * 1024;

/// The ways in which a connection ends.
const ENDS: [fn(&Server); 8] = [
    kept_and_left,
    asked_to_close,
    never_used,
    reset_at_once,
    half_a_head,
    half_a_head_and_reset,
    left_in_the_middle,
    reset_in_the_middle,
];

/// Makes a later drop reset the connection instead of closing it.
fn reset_on_drop(visitor: &Visitor) {
    sockopt::set_socket_linger(&visitor.stream, Some(Duration::ZERO)).unwrap();
}

fn kept_and_left(server: &Server) {
    let mut visitor = server.visit();
    for _ in 0..3 {
        assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n");
    }
}

fn asked_to_close(server: &Server) {
    let mut visitor = server.visit();
    let reply = visitor.get_with("/small.txt", "Connection: close\r\n").unwrap();
    assert_eq!(reply.body, b"small\n");
    assert!(visitor.some_body().unwrap().is_empty(), "a clean end");
}

fn never_used(server: &Server) {
    server.visit();
}

fn reset_at_once(server: &Server) {
    reset_on_drop(&server.visit());
}

fn half_a_head(server: &Server) {
    server.visit().stream.write_all(b"GET /small.txt HTTP/1.1\r\nHos").unwrap();
}

fn half_a_head_and_reset(server: &Server) {
    let mut visitor = server.visit();
    visitor.stream.write_all(b"GET /small.txt HTTP/1.1\r\nHost: test\r\nX: ").unwrap();
    reset_on_drop(&visitor);
}

/// Unread bytes turn a close into a reset.
fn left_in_the_middle(server: &Server) {
    let mut visitor = server.visit();
    visitor.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (reply, length) = visitor.head().unwrap();
    assert_eq!((reply.status, length), (200, LARGE_BYTES));
    assert!(!visitor.some_body().unwrap().is_empty());
}

fn reset_in_the_middle(server: &Server) {
    let mut visitor = server.visit();
    visitor.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    reset_on_drop(&visitor);
    visitor.head().unwrap();
}

/// Opens `count` connections from [`CLIENTS`] threads, and ends them in every way.
fn connect_and_end(server: &Server, count: usize) {
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in (client..count).step_by(CLIENTS) {
                    ENDS[number / CLIENTS % ENDS.len()](server);
                }
            });
        }
    });
}

/// Waits until the only open connection is that of the status request.
fn until_all_have_gone(server: &Server) {
    until("all connections have gone", || server.status()["load"]["connections_open"] == 1);
}

/// Returns `counts` when they have been the same for a while: connections close a moment after their end.
fn settled<T: PartialEq>(counts: impl Fn() -> T) -> T {
    let (mut last, mut same) = (counts(), 0);
    until("the counts stay the same", || {
        let now = counts();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 50
    });
    last
}

fn nothing_is_left_after_ten_thousand_connections(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(29, LARGE_BYTES));
    tree.plant(folder.path());
    let server = Server::start(kind, folder.path(), &["--threads", "2"]);
    let pid = server.pid();
    let counts = || (process::descriptors(pid), process::threads(pid));
    connect_and_end(&server, FIRST_CONNECTIONS);
    until_all_have_gone(&server);
    let before = settled(counts);
    let resident = process::resident_kib(pid);
    connect_and_end(&server, CONNECTIONS);
    until_all_have_gone(&server);
    until("descriptors and threads are as many as before", || counts() == before);
    let (grown, peak) = (process::resident_kib(pid).saturating_sub(resident), process::peak_kib(pid));
    println!("{kind}: {before:?} descriptors and threads, {resident} KiB, then {grown} more, peak {peak}");
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more than before");
    assert!(peak <= PEAK_KIB_MAX, "{peak} KiB at the peak");
    let status = server.status();
    let accepted = status["load"]["connections_accepted"].as_u64().unwrap();
    let made = FIRST_CONNECTIONS + CONNECTIONS;
    // The kernel need not report to a loop a connection that was reset before any byte.
    let unheard = if matches!(kind, EngineKind::Epoll | EngineKind::Uring) { made / ENDS.len() } else { 0 };
    assert!(accepted > (made - unheard) as u64, "{status}");
    assert_eq!(status["load"]["connections_panicked"], 0, "{status}");
}

on_each_engine!(alone: nothing_is_left_after_ten_thousand_connections);
