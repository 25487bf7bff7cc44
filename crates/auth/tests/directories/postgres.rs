//! Tests of directories on PostgreSQL only: its transactions, and its errors.

use std::io::{Read as _, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread;

use plimsoll_auth::directory::{DirectoryError, open};

use crate::{NOW, add, fresh, session, session_id, with_server};

/// Starts a relay to a Unix socket, for connections that come one after the other. It replaces a text
/// that clients send by one of the same length. Returns its port.
fn altering_relay(socket: String, text: &'static str, other: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                // Either side may close.
                let _ = std::io::copy(&mut from_server, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
            let mut block = [0; 4096];
            while let Ok(received @ 1..) = client.read(&mut block) {
                let mut bytes = block[..received].to_vec();
                for at in 0..bytes.len().saturating_sub(text.len()) {
                    if bytes[at..].starts_with(text.as_bytes()) {
                        bytes[at..at + text.len()].copy_from_slice(other.as_bytes());
                    }
                }
                if server.write_all(&bytes).is_err() {
                    break;
                }
            }
        }
    });
    port
}

#[test]
fn a_transaction_that_does_not_begin_changes_nothing() {
    let at = fresh("postgres");
    let mut directory = open(&at.url).unwrap();
    let alice = add(&mut *directory, "alice");
    directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
    let (before, folder) = at.url.split_once("?host=").unwrap();
    let port = altering_relay(format!("{folder}/.s.PGSQL.5432"), "BEGIN READ WRITE", "BEGIN READ WRONG");
    let url = before.replace("@/", &format!("@127.0.0.1:{port}/"));
    let mut relayed = open(&url).unwrap();
    assert!(relayed.session(session_id(1), NOW).unwrap().is_some(), "reads need no transaction");
    let error = relayed.set_password(alice.id, 1, "second", None).unwrap_err();
    assert!(error.to_string().contains("42601"), "the first error is reported: {error}");
    // One statement is a transaction, too.
    relayed.end_session(session_id(1)).unwrap_err();
    relayed.check_writable(NOW).unwrap_err();
    assert_eq!(directory.account("alice").unwrap().unwrap().version, 1);
    assert!(directory.session(session_id(1), NOW).unwrap().is_some());
    assert!(!directory.has_foreign_changes().unwrap());
}

#[test]
fn an_error_says_whether_the_disk_was_full_or_the_transaction_was_rolled_back() {
    let at = fresh("postgres");
    let mut directory = open(&at.url).unwrap();
    let alice = add(&mut *directory, "alice");
    directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
    let mut fails_with = |code: &str| {
        let function = format!(
            "CREATE OR REPLACE FUNCTION plimsoll.fail() RETURNS trigger LANGUAGE plpgsql \
             AS $$ BEGIN RAISE 'as the test demands' USING ERRCODE = '{code}'; END $$"
        );
        let trigger = "CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON plimsoll.sessions \
                       EXECUTE FUNCTION plimsoll.fail()";
        with_server("postgres", |server| server.run(&at, &format!("{function}; {trigger}")));
        directory.add_session(&session(2, &alice, 1), 1).unwrap_err()
    };
    assert!(matches!(fails_with("53100"), DirectoryError::Full(_)));
    assert!(matches!(fails_with("40P01"), DirectoryError::RolledBack(_)));
    assert!(matches!(fails_with("40001"), DirectoryError::RolledBack(_)));
    assert!(matches!(fails_with("22000"), DirectoryError::Failed(_)));
    assert!(directory.session(session_id(1), NOW).unwrap().is_some(), "it was not displaced");
}

#[test]
fn a_statement_has_the_same_result_however_often_a_connection_has_run_it() {
    let mut directory = open(&fresh("postgres").url).unwrap();
    let alice = add(&mut *directory, "alice");
    for number in 1..=4 {
        assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
        let ended = directory.add_session(&session(number, &alice, number.into()), 2).unwrap().unwrap();
        let expected: Vec<_> =
            number.checked_sub(2).filter(|id| *id > 0).map(session_id).into_iter().collect();
        assert_eq!(ended, expected);
    }
}
