//! The limit of connections: no address takes more than half of the slots. A full server closes idle
//! connections for new ones, but not a transfer of an address with no more connections than others. A
//! client that finds no slot waits for one.

use std::net::Ipv4Addr;
use std::time::Duration;

use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{EngineKind, PATIENCE, Server, Visitor, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

/// So few descriptors that the limit is 16 to 25 connections, by engine. With a handful, a status request
/// whose slot is not free yet would make slots run short.
const OPEN_FILES: u32 = 192;
/// Long enough to be served, if there were a slot.
const NOT_SERVED_TIME: Duration = Duration::from_millis(400);

/// More than socket buffers hold: a client that does not read it keeps its slot.
const LARGE_BYTES: usize = 16 << 20;

const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

fn visit_from(last: u8, server: &Server) -> Visitor {
    let stream = connect_from(Ipv4Addr::new(127, 0, 0, last), server.at(), None).expect("it listens");
    Visitor::new(stream).expect("a connection")
}

fn assert_served(visitor: &mut Visitor) {
    assert_eq!(visitor.get("/small.txt").expect("an answer").body, b"small\n");
}

/// Opens `count` connections from one address, each of which is served once.
fn served_from(last: u8, server: &Server, count: u64) -> Vec<Visitor> {
    let connect = |_| {
        let mut visitor = visit_from(last, server);
        assert_served(&mut visitor);
        visitor
    };
    (0..count).map(connect).collect()
}

fn load(server: &Server, name: &str) -> u64 {
    server.status()["load"][name].as_u64().expect("a count")
}

/// Asserts that nothing is received for a while, and that the connection stays open.
fn assert_waits(visitor: &Visitor) {
    visitor.stream.set_read_timeout(Some(NOT_SERVED_TIME)).unwrap();
    let waited = visitor.stream.peek(&mut [0]);
    let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(waited.as_ref().is_err_and(timed_out), "{waited:?} though the server is full");
    visitor.stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

fn start(kind: EngineKind, root: &std::path::Path) -> Server {
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(7, LARGE_BYTES)).plant(root);
    // One event loop: with several, a second loop could take the last slot during a count.
    Server::start_with_few_open_files(kind, root, &["--threads", "1"], OPEN_FILES)
}

fn one_address_gets_half_of_the_slots(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path());
    let max = load(&server, "connections_max");
    assert!((4..=50).contains(&max), "{max}: the limit of open files is that of connections");
    let mut first = served_from(2, &server, max / 2);
    for further in 1..=3 {
        let mut visitor = visit_from(2, &server);
        let refused = visitor.get("/small.txt").expect("an answer");
        assert_eq!((refused.status, refused.closes), (503, true), "{}", refused.head);
        assert_eq!(load(&server, "connections_refused"), further);
    }
    // Other addresses are served, and so are the open connections.
    assert_served(&mut visit_from(3, &server));
    first.iter_mut().for_each(assert_served);
    // A freed slot can be taken again.
    drop(first.pop());
    until("the place is free", || load(&server, "connections_open") == max / 2);
    assert_served(&mut visit_from(2, &server));
}

/// Opens connections from two addresses until one slot is left, which the status requests use.
fn fill(server: &Server, max: u64, open: impl Fn(u8) -> Visitor) -> Vec<Visitor> {
    until("only the visitor who asks is there", || load(server, "connections_open") == 1);
    let mut inside: Vec<Visitor> = (0..max / 2).map(|_| open(2)).collect();
    inside.extend((0..max - max / 2 - 1).map(|_| open(3)));
    inside
}

fn a_full_server_closes_idle_connections_for_new_ones(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path());
    let max = load(&server, "connections_max");
    let idle = fill(&server, max, |from| {
        let idle = served_from(from, &server, 1).remove(0);
        // The server records the age of connections to the millisecond.
        std::thread::sleep(Duration::from_millis(3));
        idle
    });
    for from in 4..20 {
        assert_served(&mut visit_from(from, &server));
    }
    let has_ended = |visitor: &Visitor| {
        visitor.stream.set_nonblocking(true).unwrap();
        matches!(visitor.stream.peek(&mut [0]), Ok(0))
    };
    let ended = idle.iter().map(has_ended).collect::<Vec<_>>();
    assert!(ended[0], "the oldest is closed first, cleanly: {ended:?}");
    assert!(ended.iter().any(|has_ended| !has_ended), "no more than had to be: {ended:?}");
    let status = server.status();
    assert!(status["load"]["connections_evicted"].as_u64() > Some(0), "{status}");
    assert_eq!(status["load"]["connections_panicked"], 0, "{status}");
}

fn a_client_that_finds_transfers_in_every_slot_waits(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path());
    let max = load(&server, "connections_max");
    let download = |from| {
        let stream = connect_from(Ipv4Addr::new(127, 0, 0, from), server.at(), Some(16 * 1024));
        let mut visitor = Visitor::new(stream.expect("it listens")).expect("a connection");
        visitor.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        assert_eq!(visitor.head().expect("a response").0.status, 200);
        visitor
    };
    until("only the visitor who asks is there", || load(&server, "connections_open") == 1);
    // Each from a different address: no address has more connections than the mean.
    let last_of_addresses = 20 + u8::try_from(max).expect("a few dozen");
    let mut inside: Vec<Visitor> = (20..last_of_addresses).map(download).collect();
    let (mut next, mut last) = (visit_from(5, &server), visit_from(6, &server));
    for waiting in [&mut next, &mut last] {
        waiting.send(SMALL).unwrap();
        assert_waits(waiting);
    }
    drop(inside.pop());
    assert_eq!(next.reply().expect("a slot became free").body, b"small\n");
    assert_eq!(last.reply().expect("the other one is idle now").body, b"small\n");
    for visitor in &mut inside {
        assert!(!visitor.some_body().expect("no transfer was closed").is_empty());
    }
    drop((inside, next, last));
    until("all have gone", || load(&server, "connections_open") == 1);
    assert_eq!(load(&server, "connections_refused"), 0);
}

on_each_engine!(
    one_address_gets_half_of_the_slots,
    a_full_server_closes_idle_connections_for_new_ones,
    a_client_that_finds_transfers_in_every_slot_waits,
);
