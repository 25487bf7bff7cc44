//! As many connections as may be: no address takes more than half of the places, who comes to a full server
//! waits, and the server serves on.

use std::net::Ipv4Addr;
use std::time::Duration;

use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{Broken, Kind, PATIENCE, Server, Visitor, until};
use plimsoll_tests::{Tree, on_each_engine};

/// So few descriptors that a handful of connections is all that may be.
const OPEN_FILES: u32 = 128;
/// Long enough to be served in, had there been a place.
const NOT_SERVED_TIME: Duration = Duration::from_millis(400);

const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";

fn visit_from(last: u8, server: &Server) -> Visitor {
    let stream = connect_from(Ipv4Addr::new(127, 0, 0, last), server.at(), None).expect("it listens");
    Visitor::new(stream).expect("a connection")
}

fn assert_served(visitor: &mut Visitor) {
    assert_eq!(visitor.get("/small.txt").expect("an answer").body, b"small\n");
}

/// So many connections of one address, each of which has been served.
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

/// Asserts that nothing comes for a while, and nothing ends.
fn assert_waits(visitor: &Visitor) {
    visitor.stream.set_read_timeout(Some(NOT_SERVED_TIME)).unwrap();
    let waited = visitor.stream.peek(&mut [0]);
    let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(waited.as_ref().is_err_and(timed_out), "{waited:?} though the server is full");
    visitor.stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

fn start(kind: Kind, root: &std::path::Path) -> Server {
    Tree::new().file("small.txt", "small\n").plant(root);
    // One loop, so that nobody is counted while another loop takes the last place.
    Server::start_with_few_open_files(kind, root, &["--threads", "1"], OPEN_FILES)
}

fn one_address_gets_half_of_the_places(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path());
    let max = load(&server, "connections_max");
    assert!((4..=50).contains(&max), "{max}: the limit of open files is that of connections");
    let mut first = served_from(2, &server, max / 2);
    for further in 1..=3 {
        let mut visitor = visit_from(2, &server);
        let refused = visitor.get("/small.txt");
        assert!(matches!(refused, Err(Broken::Ended | Broken::Refused(_))), "{refused:?}");
        assert_eq!(load(&server, "connections_refused"), further);
    }
    // Others are served, and so are those who are in.
    assert_served(&mut visit_from(3, &server));
    first.iter_mut().for_each(assert_served);
    // A place that is given back can be had again.
    drop(first.pop());
    until("the place is free", || load(&server, "connections_open") == max / 2);
    assert_served(&mut visit_from(2, &server));
}

fn who_comes_to_a_full_server_waits_for_a_place(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path());
    let max = load(&server, "connections_max");
    until("only the visitor who asks is there", || load(&server, "connections_open") == 1);
    let mut inside = served_from(2, &server, max / 2);
    until("its visitors and who asks are there", || load(&server, "connections_open") == max / 2 + 1);
    inside.extend(served_from(3, &server, max - max / 2 - 1));
    // The last place may be held by who asked last, for a moment.
    inside.extend(served_from(4, &server, 1));
    let (mut next, mut last) = (visit_from(5, &server), visit_from(6, &server));
    for waiting in [&mut next, &mut last] {
        waiting.send(SMALL).unwrap();
        assert_waits(waiting);
    }
    // Those who are in are served, all at once.
    inside.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
    inside.iter_mut().for_each(|visitor| assert_eq!(visitor.reply().unwrap().body, b"small\n"));
    drop(inside.pop());
    assert_eq!(next.reply().expect("a place became free").body, b"small\n");
    assert_waits(&last);
    drop(next);
    assert_eq!(last.reply().expect("a place became free").body, b"small\n");
    drop((inside, last));
    until("all have gone", || load(&server, "connections_open") == 1);
    let status = server.status();
    assert_eq!(status["load"]["connections_panicked"], 0, "{status}");
    assert_eq!(status["load"]["connections_refused"], 0, "{status}");
}

on_each_engine!(one_address_gets_half_of_the_places, who_comes_to_a_full_server_waits_for_a_place);
