//! Connections that come when all workers are busy, with `--queue refuse`.

use plimsoll_tests::binary::{Reply, Visitor, among_others, until};

use super::{HELD, SMALL, assert_ends, assert_small, holding, let_go, start};

/// More than the queue's length for one worker.
const MANY: usize = 100;

fn assert_refused(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.head);
    assert!(reply.closes, "{}", reply.head);
    assert!(reply.field("Retry-After").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
    assert_eq!(reply.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(reply.json()["detail"], "All workers are taken; try again shortly.");
}

fn settings() -> Vec<&'static str> {
    [&HELD[..], &["--queue", "refuse"]].concat()
}

#[test]
fn a_client_without_a_worker_is_refused_with_a_retry_time() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &settings());
    let (mut first, mut second) = (holding(&server), server.visit());
    assert_refused(&second.get("/small.txt").expect("an answer"));
    assert_ends(&mut second);
    // Also a client that sends nothing.
    assert_refused(&server.visit().reply().expect("an answer"));
    let_go(&mut first);
    // A new connection finds a worker that is free or idle; on a busy machine it may take a moment.
    let mut refused = 2;
    until("somebody is served", || {
        let reply = server.visit().get("/small.txt").expect("an answer");
        refused += u64::from(reply.status == 503);
        reply.status == 200
    });
    let mut counted = None;
    until("the status is reported", || {
        let reply = server.visit().get("/api/status").expect("an answer");
        counted =
            (reply.status == 200).then(|| reply.json()["load"]["connections_refused"].as_u64().unwrap());
        counted.is_some()
    });
    assert!(counted.is_some_and(|counted| counted >= refused), "{counted:?} of {refused}");
}

#[test]
fn a_refusal_of_head_has_no_body() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &settings());
    let (_first, mut second) = (holding(&server), server.visit());
    second.send("HEAD /small.txt HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (reply, length) = second.head().unwrap();
    assert_eq!((reply.status, length > 0), (503, true), "{}", reply.head);
    assert_ends(&mut second);
}

#[test]
fn every_client_is_refused_though_the_queue_is_full() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &settings());
    let mut first = holding(&server);
    let mut others: Vec<Visitor> = (0..MANY).map(|_| server.visit()).collect();
    others.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
    for visitor in &mut others {
        assert_refused(&visitor.reply().expect("an answer"));
    }
    let_go(&mut first);
}

#[test]
fn a_request_on_an_idle_connection_is_refused_when_no_worker_comes_to_it() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &settings());
    let mut idle = server.visit();
    assert_small(idle.get("/small.txt").unwrap());
    let mut holding = holding(&server);
    assert_refused(&idle.get("/small.txt").expect("an answer"));
    assert_ends(&mut idle);
    let_go(&mut holding);
}

#[test]
fn refusals_are_in_the_access_log() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let more = [&settings()[..], &["--access-log", log.to_str().unwrap()]].concat();
    let server = start(&folder.path().join("site"), 1, &more);
    let _first = holding(&server);
    assert_refused(&server.visit().get("/small.txt").unwrap());
    let logged = || std::fs::read_to_string(&log).unwrap_or_default();
    until("the log has it", || logged().contains("\"GET /small.txt HTTP/1.1\" 503 "));
}
