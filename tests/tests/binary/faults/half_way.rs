//! Clients that stop in the middle of an upload, and slow ones: nothing is left of incomplete uploads.

use std::io::Write as _;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Member, Server, Visitor, until};
use plimsoll_tests::on_each_engine;

use super::left::{pending, until_nothing_is_pending};

/// A limit short enough to wait for.
const RECEIVE_TIME: &str = "300ms";
const BODY_BYTES: usize = 200_000;

/// Begins a PUT and sends some of its body.
fn begin(server: &Server, alice: &Member, target: &str, sent: usize) -> Visitor {
    let mut visitor = server.visit();
    let field = alice.field();
    let head = format!("PUT {target} HTTP/1.1\r\nHost: t\r\n{field}Content-Length: {BODY_BYTES}\r\n\r\n");
    visitor.stream.write_all(&[head.as_bytes(), &vec![b'x'; sent]].concat()).unwrap();
    visitor
}

fn a_client_that_stops_half_way_leaves_nothing(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/old", b"old").status, 201);
    for sent in [0, 1, 70_000, BODY_BYTES - 1] {
        for target in ["/files/old", "/files/new"] {
            let visitor = begin(&server, &alice, target, sent);
            if sent > 65_536 {
                until("bytes are pending", || !pending(data.path(), "alice").is_empty());
            }
            drop(visitor);
        }
    }
    until_nothing_is_pending(data.path(), "alice");
    assert_eq!(alice.names("/files/"), ["old"]);
    assert_eq!(alice.get("/files/old").body, b"old");
    until("only who asks is there", || server.status()["load"]["connections_open"].as_u64() <= Some(2));
}

fn a_stalled_upload_is_refused_and_leaves_nothing(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--limits-receive-time", RECEIVE_TIME]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/old", b"old").status, 201);
    let mut visitor = begin(&server, &alice, "/files/old", 100_000);
    let begun = Instant::now();
    let reply = visitor.reply().expect("an answer");
    assert_eq!(reply.status, 408, "{}", reply.text());
    assert!(reply.text().contains("too slowly"), "{}", reply.text());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    until_nothing_is_pending(data.path(), "alice");
    assert_eq!(alice.again(&server).get("/files/old").body, b"old");
}

/// A client that sends a byte at a time is slow, but alive: it is served, and delays no other.
fn a_client_that_sends_single_bytes_is_served_and_delays_no_other(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--limits-receive-time", "5s", "--threads", "1"]);
    let alice = Member::new(&server, "alice");
    let slow: Vec<Visitor> = (0..20)
        .map(|number| {
            let mut visitor = server.visit();
            let field = alice.field();
            let line = format!("PUT /files/slow-{number} HTTP/1.1");
            let head = format!("{line}\r\nHost: t\r\n{field}Content-Length: 5\r\n\r\n");
            visitor.stream.write_all(head.as_bytes()).unwrap();
            visitor
        })
        .collect();
    let mut other = alice.again(&server);
    for byte in b"a byte"[..5].chunks(1) {
        for visitor in &slow {
            (&visitor.stream).write_all(byte).unwrap();
        }
        let begun = Instant::now();
        assert_eq!(other.put("/files/quick", b"quick").status / 100, 2);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        std::thread::sleep(Duration::from_millis(300));
    }
    for mut visitor in slow {
        assert_eq!(visitor.reply().expect("an answer").status, 201);
    }
    assert_eq!(other.get("/files/slow-7").body, b"a byt");
    assert_eq!(other.names("/files/").len(), 21);
    until_nothing_is_pending(data.path(), "alice");
}

on_each_engine!(
    a_client_that_stops_half_way_leaves_nothing,
    a_stalled_upload_is_refused_and_leaves_nothing,
    a_client_that_sends_single_bytes_is_served_and_delays_no_other,
);
