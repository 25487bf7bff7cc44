//! Clients that hold all workers without progress: each only until a time limit.

use plimsoll_tests::binary::{Visitor, among_others};

use super::{assert_small, start};

const WORKERS: usize = 2;

/// All limits are short, except the idle and linger times.
const LIMITS: [&str; 10] = [
    "--limits-head-time",
    "500ms",
    "--limits-receive-time",
    "500ms",
    "--limits-send-time",
    "500ms",
    "--limits-linger-time",
    "1h",
    "--limits-idle-time",
    "1h",
];

/// Asserts that a healthy client is served although twice as many stuck clients as workers came before it.
fn is_served_behind(stuck: impl Fn(&mut Visitor)) {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), WORKERS, &LIMITS);
    let begin = |_| {
        let mut visitor = server.visit_narrowly();
        stuck(&mut visitor);
        visitor
    };
    let _stuck: Vec<Visitor> = (0..2 * WORKERS).map(begin).collect();
    assert_small(server.visit().get("/small.txt").expect("an answer"));
}

#[test]
fn silent_clients_hold_no_workers() {
    is_served_behind(|_| {});
}

#[test]
fn clients_that_never_end_a_head_hold_workers_for_the_time_of_a_head() {
    is_served_behind(|visitor| visitor.send("GET /small.txt HTTP/1.1\r\nHost: test\r\n").unwrap());
}

#[test]
fn clients_that_never_end_a_body_hold_workers_for_the_time_of_a_receive() {
    let head = "POST /api/sessions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n";
    is_served_behind(|visitor| visitor.send(&format!("{head}Content-Length: 100\r\n\r\n{{")).unwrap());
}

#[test]
fn clients_that_read_nothing_hold_workers_for_the_time_of_a_send() {
    is_served_behind(|visitor| visitor.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap());
}
