//! Two accounts write one path at once: at any moment the file is one of the complete versions.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::binary::member::send;
use plimsoll_tests::binary::{EngineKind, Member, Server};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use serde_json::json;

use super::left::until_nothing_is_pending;

/// The duration of the writes.
const WRITE_TIME: Duration = Duration::from_secs(2);

/// Returns version `number` of writer `writer`: its name, then noise derived from it.
fn version(writer: usize, number: usize) -> Vec<u8> {
    let bytes = number * 7919 % 120_000;
    [format!("{writer}.{number}\n").as_bytes(), &noise((writer * 100_000 + number) as u64, bytes)].concat()
}

fn assert_whole(bytes: &[u8]) {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (writer, number) = line.split_once('.').unwrap_or_else(|| panic!("{} bytes: {line}", bytes.len()));
    assert!(
        version(writer.parse().unwrap(), number.parse().unwrap()) == bytes,
        "{line}: not the whole of it"
    );
}

/// Creates a share for bob to write to; his path to it differs.
fn shared(server: &Server) -> (Member, Member) {
    let (mut alice, bob) = (Member::new(server, "alice"), Member::new(server, "bob"));
    alice.mkcol("/files/common");
    let new = json!({ "path": "/common", "with": "bob", "permission": "write" });
    let fields = format!("{}Content-Type: application/json\r\n", alice.field());
    let given = alice.visitor.ask("POST", "/api/shares", &fields, new.to_string().as_bytes()).unwrap();
    assert_eq!(given.status, 201, "{}", given.text());
    assert_eq!(send(&mut server.visit(), "POST", "/api/shares", &new).unwrap().status, 401);
    (alice, bob)
}

fn two_people_write_one_path(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let (alice, bob) = shared(&server);
    let (over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let write = |mut member: Member, writer: usize, target: &'static str| {
        let mut number = 0;
        while !over.load(Ordering::Relaxed) {
            number += 1;
            let reply = member.put(target, &version(writer, number));
            assert!(matches!(reply.status, 201 | 204), "{}: {}", reply.status, reply.text());
        }
        number
    };
    let read = |mut member: Member| {
        while !over.load(Ordering::Relaxed) {
            let reply = member.get("/files/common/file");
            if reply.status == 200 {
                assert_whole(&reply.body);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let written = std::thread::scope(|scope| {
        let one = scope.spawn(|| write(alice.again(&server), 1, "/files/common/file"));
        let other = scope.spawn(|| write(bob.again(&server), 2, "/shared/alice/common/file"));
        scope.spawn(|| read(alice.again(&server)));
        std::thread::sleep(WRITE_TIME);
        over.store(true, Ordering::Relaxed);
        (one.join().unwrap(), other.join().unwrap())
    });
    let reads = reads.into_inner();
    println!("{kind}: {written:?} versions written, {reads} read");
    assert!(written.0 > 5 && written.1 > 5 && reads > 5, "{written:?}, {reads}: hardly at once");
    let mut alice = alice.again(&server);
    assert_whole(&alice.get("/files/common/file").body);
    assert_eq!(alice.names("/files/common/"), ["file"]);
    until_nothing_is_pending(data.path(), "alice");
}

on_each_engine!(forks: two_people_write_one_path);
