//! The order to stop: requests in progress are finished, and every waiting client gets an answer.

use plimsoll_tests::binary::{PATIENCE, among_others};
use rustix::process::Signal;

use super::{HELD, SMALL, Session, assert_small, assert_waits, holding, let_go, start};

const WITH_FTP: [&str; 2] = ["--ftp", "127.0.0.1:0"];

#[test]
fn waiting_clients_are_served_before_the_end() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let more = [&HELD[..], &["--grace", "1h"]].concat();
    let mut server = start(folder.path(), 1, &more);
    let (mut first, mut waiting) = (holding(&server), [server.visit(), server.visit(), server.visit()]);
    waiting.iter_mut().for_each(|visitor| visitor.send(SMALL).unwrap());
    assert_waits(&waiting[0].stream);
    server.signal(Signal::TERM);
    server.wait_until_refused();
    let_go(&mut first);
    waiting.iter_mut().for_each(|visitor| assert_small(visitor.reply().expect("an answer")));
    drop((first, waiting));
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
}

#[test]
fn clients_without_a_worker_are_refused_at_the_end_of_the_grace() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let more = [&HELD[..], &WITH_FTP, &["--grace", "1s"]].concat();
    let mut server = start(folder.path(), 1, &more);
    let (mut first, mut waiting, mut silent) = (holding(&server), server.visit(), server.visit());
    let mut session = Session::connect(&server);
    waiting.send(SMALL).unwrap();
    assert_waits(&waiting.stream);
    server.signal(Signal::TERM);
    for visitor in [&mut waiting, &mut silent] {
        let reply = visitor.reply().expect("a word");
        assert_eq!((reply.status, reply.closes), (503, true), "{}", reply.head);
    }
    session.expect("421 ");
    assert!(first.reply().is_err(), "the grace period is over");
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    assert!(server.stderr().contains("the grace period is over"), "{}", server.stderr());
}
