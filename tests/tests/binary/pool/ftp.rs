//! FTP control connections: each has a worker from its greeting to its end, with all its transfers.

use std::io::Read as _;
use std::net::TcpStream;

use plimsoll_tests::binary::{among_others, until};
use plimsoll_tests::tree::noise;

use super::{LARGE_BYTES, SMALL, Session, assert_small, assert_waits, start};

const WITH_FTP: [&str; 4] = ["--ftp", "127.0.0.1:0", "--ftp-guests", "true"];

fn refusing() -> Vec<&'static str> {
    [&WITH_FTP[..], &["--queue", "refuse"]].concat()
}

#[test]
fn a_session_beyond_the_workers_gets_421_where_sessions_are_refused() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 2, &refusing());
    let (mut first, mut second) = (Session::begun(&server), Session::begun(&server));
    let mut third = Session::connect(&server);
    third.expect("421 ");
    assert_eq!(third.reply(), "");
    // Open control connections are not affected.
    second.command("USER anonymous", "331 ");
    first.command("QUIT", "221 ");
    assert_eq!(first.reply(), "");
    until("a worker is free", || Session::connect(&server).reply().starts_with("220 "));
}

#[test]
fn a_session_beyond_the_workers_waits_where_those_wait() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &WITH_FTP);
    let (mut first, mut second) = (Session::logged_in(&server), Session::connect(&server));
    assert_waits(second.0.get_ref());
    first.command("QUIT", "221 ");
    second.expect("220 ");
}

#[test]
fn an_idle_session_is_not_thrown_out_for_others() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &WITH_FTP);
    let (mut session, mut visitor) = (Session::logged_in(&server), server.visit());
    visitor.send(SMALL).unwrap();
    assert_waits(&visitor.stream);
    session.command("NOOP", "200 ");
    session.command("QUIT", "221 ");
    assert_small(visitor.reply().unwrap());
}

#[test]
fn a_transfer_needs_no_worker_but_its_sessions_own() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), 1, &WITH_FTP);
    let mut session = Session::begun(&server);
    session.command("USER anonymous", "331 ");
    session.command("PASS me@here", "230 ");
    session.command("TYPE I", "200 ");
    let opened = session.command("EPSV", "229 ");
    let port: u16 = opened.split('|').nth(3).and_then(|port| port.parse().ok()).expect(&opened);
    let mut data = TcpStream::connect(("127.0.0.1", port)).unwrap();
    session.command("RETR large.bin", "150 ");
    let mut bytes = Vec::new();
    data.read_to_end(&mut bytes).unwrap();
    assert!(bytes == noise(3, LARGE_BYTES));
    session.expect("226 ");
}
