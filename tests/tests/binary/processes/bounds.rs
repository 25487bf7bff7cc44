//! As many connections as the system allows processes, and one address no more than half of them.

use std::net::Ipv4Addr;
use std::time::Duration;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{
    Broken, Kind, PATIENCE, Server, Visitor, among_others, process, skipped, until,
};
use rustix::process::geteuid;

use super::{assert_small, children, load, master};

/// So many may be open where so few processes are allowed: the others are left to the server and to others.
const MAX: usize = 6;
const PROCESSES: usize = 64 + MAX;
/// Long enough to be served in, had there been a place.
const NOT_SERVED_TIME: Duration = Duration::from_millis(400);

/// A server that may have so few processes. The administrator's account may have more all the same; for
/// others what they run already counts too, so that the server might not even start.
fn start_with_few_processes(folder: &std::path::Path) -> Option<Server> {
    if !geteuid().is_root() {
        skipped(
            "the bounds of the engine process",
            "only an administrator can set the limit for one program",
        );
        return None;
    }
    Tree::new().file("small.txt", "small\n").plant(folder);
    Some(Server::start_with_few_processes(Kind::Process, folder, PROCESSES))
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
fn one_address_gets_half_of_the_places_and_who_comes_to_a_full_server_waits() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = start_with_few_processes(folder.path()) else { return };
    assert_eq!(load(&server, "connections_max"), MAX as u64);
    until("who asked has gone", || children(&server).is_empty());
    let mut inside: Vec<Visitor> = (0..MAX / 2).map(|_| served_from(2, &server)).collect();
    let refused = visit_from(2, &server).get("/small.txt");
    assert!(matches!(refused, Err(Broken::Ended | Broken::Refused(_))), "{refused:?}");
    inside.extend((0..MAX / 2).map(|_| served_from(3, &server)));
    assert_eq!(process::children(master(&server)).len(), MAX);
    let mut next = visit_from(4, &server);
    next.send("GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    next.stream.set_read_timeout(Some(NOT_SERVED_TIME)).unwrap();
    assert!(next.stream.peek(&mut [0]).is_err(), "it waits for a place");
    next.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    inside.iter_mut().for_each(assert_small);
    drop(inside.pop());
    assert_eq!(next.reply().expect("a place became free").body, b"small\n");
}
