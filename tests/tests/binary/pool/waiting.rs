//! Connections that come when all workers are busy, with a queue.

use plimsoll_tests::binary::{Visitor, among_others};

use super::{HELD, SMALL, assert_small, assert_waits, holding, let_go, start};

/// More than the queue's length for one worker: the last ones wait in the kernel.
const MANY: usize = 100;

#[test]
fn a_client_that_finds_all_workers_taken_is_served_when_one_is_free() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &HELD);
    let (mut first, mut second) = (holding(&server), server.visit());
    second.send(SMALL).unwrap();
    assert_waits(&second.stream);
    let_go(&mut first);
    assert_small(second.reply().unwrap());
    // The connection that gave up its worker is open, and is served again.
    assert_small(first.get("/small.txt").unwrap());
}

#[test]
fn every_client_is_served_though_the_queue_is_full() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &HELD);
    let mut first = holding(&server);
    let mut others: Vec<Visitor> = (0..MANY).map(|_| server.visit()).collect();
    others.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
    assert_waits(&others[0].stream);
    let_go(&mut first);
    others.into_iter().for_each(|mut visitor| assert_small(visitor.reply().expect("an answer")));
}

#[test]
fn a_request_that_finds_a_worker_is_answered_beside_those_that_take_long() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 3, &HELD);
    let _held = [holding(&server), holding(&server)];
    for _ in 0..5 {
        assert_small(server.visit().get("/small.txt").unwrap());
    }
}
