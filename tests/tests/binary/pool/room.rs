//! Idle connections make room for those who wait, and so do those of which only the end is left.
//!
//! What shows it: the time without a request is longer than a test has patience.

use plimsoll_tests::binary::{Visitor, among_others};

use super::{SMALL, assert_ends, assert_small, assert_waits, start};

const NEVER: [&str; 4] = ["--limits-idle-time", "1h", "--limits-linger-time", "1h"];

fn kept(server: &plimsoll_tests::binary::Server) -> Visitor {
    let mut visitor = server.visit();
    let reply = visitor.get("/small.txt").unwrap();
    assert!(!reply.closes, "nobody waits");
    assert_small(reply);
    visitor
}

#[test]
fn an_idle_connection_ends_at_once_for_who_waits_even_if_its_client_never_does() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &NEVER);
    let mut idle: Vec<Visitor> = Vec::new();
    for _ in 0..5 {
        // Each takes the place of the one before, which has not ended its side.
        idle.push(kept(&server));
    }
    let last = idle.len() - 1;
    idle[..last].iter_mut().for_each(assert_ends);
    assert_small(idle[last].get("/small.txt").unwrap());
}

#[test]
fn as_many_idle_connections_end_as_wait_and_no_more() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 3, &NEVER);
    let mut idle: Vec<Visitor> = (0..3).map(|_| kept(&server)).collect();
    let mut fourth = kept(&server);
    let kept_on = idle.iter_mut().filter_map(|visitor| visitor.get("/small.txt").ok()).count();
    assert_eq!(kept_on, 2);
    assert_small(fourth.get("/small.txt").unwrap());
}

#[test]
fn a_client_that_has_only_just_come_has_a_moment_to_ask() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &[&NEVER[..], &["--limits-head-time", "1h"]].concat());
    let (mut first, mut second) = (server.visit(), server.visit());
    second.send(SMALL).unwrap();
    assert_waits(&second.stream);
    assert_small(first.get("/small.txt").expect("it came first"));
    assert_small(second.reply().unwrap());
}

#[test]
fn a_silent_client_gives_its_worker_up_for_one_that_waits() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &[&NEVER[..], &["--limits-head-time", "1h"]].concat());
    let (mut silent, mut second) = (server.visit(), server.visit());
    assert_small(second.get("/small.txt").unwrap());
    assert_ends(&mut silent);
}

#[test]
fn who_comes_and_says_nothing_makes_room_after_that_time() {
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &[&NEVER[..], &["--limits-head-time", "500ms"]].concat());
    let (mut silent, mut second) = (server.visit(), server.visit());
    assert_small(second.get("/small.txt").unwrap());
    assert_ends(&mut silent);
}
