//! Connections between two requests: they hold no worker that others need, and lose no request.
//!
//! The tests use an idle time longer than the test's wait limit.

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{EngineKind, Member, PATIENCE, Server, Visitor, among_others};
use rustix::process::Signal;

use super::{SMALL, assert_ends, assert_small, start};

/// The server's limit of open files in the test of its slots, which leaves a few dozen connections.
const OPEN_FILES: u32 = 256;
const NEVER: [&str; 6] =
    ["--limits-idle-time", "1h", "--limits-linger-time", "1h", "--limits-head-time", "1h"];

/// An open connection on which a request was answered.
fn idle(server: &Server) -> Visitor {
    let mut visitor = server.visit();
    ask(&mut visitor);
    visitor
}

fn ask(visitor: &mut Visitor) {
    let reply = visitor.get("/small.txt").expect("an answer");
    assert!(!reply.closes, "{}", reply.head);
    assert_small(reply);
}

#[test]
fn ten_times_as_many_connections_as_workers_lose_no_request() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 4, &NEVER);
    let mut visitors: Vec<Visitor> = (0..40).map(|_| server.visit()).collect();
    for _ in 0..5 {
        visitors.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
        for visitor in &mut visitors {
            let reply = visitor.reply().expect("an answer");
            assert!(!reply.closes, "{}", reply.head);
            assert_small(reply);
        }
    }
    let load = &server.status()["load"];
    assert_eq!((&load["connections_accepted"], &load["connections_evicted"]), (&41.into(), &0.into()));
}

#[test]
fn an_idle_connection_is_served_again_after_others_had_its_worker() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &NEVER);
    let mut visitors: Vec<Visitor> = (0..5).map(|_| idle(&server)).collect();
    visitors.iter_mut().rev().for_each(ask);
}

#[test]
fn a_client_that_has_logged_in_stays_so_on_whichever_worker() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 2, &NEVER);
    let mut member = Member::new(&server, "alice");
    let mut others: Vec<Visitor> = (0..4).map(|_| idle(&server)).collect();
    for _ in 0..3 {
        let field = member.field();
        let reply = member.visitor.get_with("/api/whoami", &field).expect("an answer");
        assert_eq!((reply.status, reply.text().contains("alice")), (200, true), "{}", reply.head);
        others.iter_mut().for_each(ask);
    }
}

#[test]
fn a_silent_client_holds_no_worker_and_is_served_when_it_asks() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &NEVER);
    let (mut silent, mut second) = (server.visit(), server.visit());
    ask(&mut second);
    ask(&mut silent);
}

#[test]
fn an_idle_connection_without_a_worker_ends_after_the_idle_time() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &["--limits-idle-time", "500ms"]);
    let mut visitors: Vec<Visitor> = (0..3).map(|_| idle(&server)).collect();
    visitors.iter_mut().for_each(assert_ends);
}

#[test]
fn idle_connections_without_a_worker_end_at_a_stop() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), 1, &["--limits-idle-time", "1h", "--grace", "1h"]);
    let mut visitors: Vec<Visitor> = (0..5).map(|_| idle(&server)).collect();
    server.signal(Signal::TERM);
    visitors.iter_mut().for_each(assert_ends);
    drop(visitors);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
}

#[test]
fn idle_connections_without_a_worker_are_closed_where_slots_run_short() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    Tree::new().file("small.txt", "small\n").plant(&folder.path().join("site"));
    let site = format!("/={}", folder.path().join("site").display());
    let more = ["--site", &site, "--threads", "1", "--connections-per-address", "none"];
    let data = folder.path().join("data");
    let server = Server::on_data_with_few_open_files(EngineKind::Pool, &data, &more, OPEN_FILES);
    let slots = server.status()["load"]["connections_max"].as_u64().unwrap();
    let mut visitors: Vec<Visitor> = (0..slots).map(|_| idle(&server)).collect();
    // Connections that were idle for longest are closed first.
    assert_ends(&mut visitors[0]);
    ask(visitors.last_mut().unwrap());
}
