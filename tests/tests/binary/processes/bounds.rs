//! The limit of connections derives from the kernel's limit of processes, and one address gets at most half
//! of it. If fork fails below that limit, clients wait.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{
    EngineKind, PATIENCE, Server, Visitor, among_others, limit_processes, process, until,
};
use plimsoll_tests::skips::{Need, skip};
use rustix::process::{Signal, geteuid};

use super::{assert_small, children, load, master};

/// The limit of connections for this limit of processes: the rest is reserved for the server and for other
/// programs.
const MAX: usize = 6;
const PROCESSES: usize = 64 + MAX;
/// Long enough to be served, if there were a slot.
const NOT_SERVED_TIME: Duration = Duration::from_millis(400);

/// Starts a server with a limit of processes. The limit does not bind root. For other accounts, it includes
/// their present processes, so that the server might not even start.
fn start_with_few_processes(folder: &Path) -> Option<Server> {
    if !geteuid().is_root() {
        skip(Need::SecondUser, "only root can set the limit for one program");
        return None;
    }
    Tree::new().file("small.txt", "small\n").plant(folder);
    Some(Server::start_with_few_processes(EngineKind::Process, folder, PROCESSES))
}

fn visit_from(last: u8, server: &Server) -> Visitor {
    let stream = connect_from(Ipv4Addr::new(127, 0, 0, last), server.at(), None).expect("it listens");
    Visitor::new(stream).expect("a connection")
}

fn served_from(last: u8, server: &Server) -> Visitor {
    let mut visitor = visit_from(last, server);
    assert_small(&mut visitor);
    visitor
}

#[test]
fn one_address_gets_half_of_the_slots_and_idle_processes_end_for_new_clients() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = start_with_few_processes(folder.path()) else { return };
    assert_eq!(load(&server, "connections_max"), MAX as u64);
    until("who asked has gone", || children(&server).is_empty());
    let mut inside: Vec<Visitor> = (0..MAX / 2).map(|_| served_from(2, &server)).collect();
    let refused = visit_from(2, &server).get("/small.txt").expect("an answer");
    assert_eq!((refused.status, refused.closes), (503, true), "{}", refused.head);
    inside.extend((0..MAX / 2).map(|_| served_from(3, &server)));
    for from in 4..10 {
        served_from(from, &server);
        assert!(process::children(master(&server)).len() <= MAX);
    }
    assert!(inside[0].get("/small.txt").is_err(), "the oldest has ended for a new one");
    assert!(load(&server, "connections_evicted") > 0);
    assert!(!server.stderr().contains("signal"), "{}", server.stderr());
}

/// Starts a server whose master's fork can be made to fail by a limit of its account.
fn start_with_a_limit(folder: &Path, more: &[&str]) -> Option<Server> {
    let site = folder.join("site");
    Tree::new().file("small.txt", "small\n").plant(&site);
    for path in [folder, &site] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let server =
        Server::start_as_nobody(EngineKind::Process, &site, &[&["--accounts", "false"], more].concat());
    if server.is_none() {
        skip(Need::SecondUser, "no other account can run the binary");
    }
    server
}

/// Connects and sends a request that finds no process.
fn asking(server: &Server) -> Visitor {
    let mut visitor = server.visit();
    visitor.send("GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    visitor
}

const LOGGED: &str = "allows no process for a connection";

#[test]
fn a_client_without_a_process_waits_for_one_and_no_client_is_dropped() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = start_with_a_limit(folder.path(), &[]) else { return };
    let mut inside = server.visit();
    assert_small(&mut inside);
    limit_processes(master(&server), Some(1));
    let mut waiting = asking(&server);
    until("it is logged", || server.stderr().contains(LOGGED));
    // They wait in the kernel's accept queue.
    let mut others = [asking(&server), asking(&server)];
    waiting.stream.set_read_timeout(Some(NOT_SERVED_TIME)).unwrap();
    let peeked = waiting.stream.peek(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(peeked, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it waits: {peeked:?}");
    waiting.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_small(&mut inside);
    assert_eq!(server.stderr().matches(LOGGED).count(), 1, "{}", server.stderr());
    limit_processes(master(&server), None);
    for visitor in [&mut waiting].into_iter().chain(&mut others) {
        assert_eq!(visitor.reply().expect("there is a process").body, b"small\n");
    }
    assert_eq!(load(&server, "connections_refused"), 0);
}

#[test]
fn a_client_that_waits_for_a_process_at_a_stop_is_served_too() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut server) = start_with_a_limit(folder.path(), &["--grace", "600s"]) else { return };
    let master = master(&server);
    limit_processes(master, Some(1));
    let mut waiting = asking(&server);
    until("it is logged", || server.stderr().contains(LOGGED));
    let mut next = asking(&server);
    // The client's end of a connection is ready a moment before the server's.
    until("it waits in the kernel", || process::queued_connections(server.at()) == 1);
    server.signal(Signal::TERM);
    server.wait_until_refused();
    limit_processes(master, None);
    for visitor in [&mut waiting, &mut next] {
        assert_eq!(visitor.reply().expect("there is a process").body, b"small\n");
    }
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
}

#[test]
fn a_client_that_waits_for_a_process_after_the_grace_is_cut_off_and_counted() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut server) = start_with_a_limit(folder.path(), &["--grace", "100ms"]) else { return };
    limit_processes(master(&server), Some(1));
    let _waiting = asking(&server);
    until("it is logged", || server.stderr().contains(LOGGED));
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    assert!(server.stderr().contains("connections=1"), "{}", server.stderr());
}
