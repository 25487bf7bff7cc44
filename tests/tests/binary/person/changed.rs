//! A byte that changes in transit is detected, in uploads and downloads.

use std::io::Write as _;
use std::process::Stdio;

use plimsoll_tests::binary::{EngineKind, among_others};
use plimsoll_tests::tree::noise;

use super::wire::Wire;
use super::{Person, Workspace};

const SMALL: usize = 200_000;
const LARGE: usize = 3 << 20;

fn setting() -> (Workspace, Wire, Person) {
    let place = Workspace::open(EngineKind::Epoll);
    let wire = Wire::to(place.server.at());
    let alice = Person::at(&wire.url(), "alice");
    (place, wire, alice)
}

#[test]
fn an_upload_that_arrives_otherwise_is_refused() {
    let _permit = among_others();
    let (_place, wire, alice) = setting();
    for bytes in [SMALL, LARGE] {
        alice.writes("file", noise(1, bytes));
        wire.change_after(bytes as i64 / 2);
        alice.fails(&["put", "file"], 1, &["file", "again"]);
        assert_eq!(alice.types(&["ls"]).well().text(), "", "nothing is there");
    }
    alice.types(&["put", "file"]).well();
    alice.types(&["get", "file", "back/"]).well();
    assert!(alice.reads("back/file") == noise(1, LARGE));
}

#[test]
fn a_stream_that_arrives_otherwise_is_an_error() {
    let _permit = among_others();
    let (_place, wire, alice) = setting();
    wire.change_after(LARGE as i64 / 2);
    let mut command = alice.command(&["put", "-", "stream"]);
    let mut put = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    put.stdin.take().unwrap().write_all(&noise(1, LARGE)).unwrap();
    let done = put.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("did not arrive as they were sent"), "{stderr}");
}

#[test]
fn a_download_that_arrives_otherwise_is_fetched_again() {
    let _permit = among_others();
    let (_place, wire, alice) = setting();
    for bytes in [SMALL, LARGE] {
        alice.writes("file", noise(2, bytes));
        alice.types(&["put", "file"]).well();
        wire.change_after(bytes as i64 / 2);
        let got = alice.json(&["get", "file", "back/"]);
        assert_eq!(got["files"][0]["received"], 2 * bytes, "it came twice");
        assert!(alice.reads("back/file") == noise(2, bytes));
        // Bytes already written to standard output cannot be fetched again.
        wire.change_after(bytes as i64 / 2);
        alice.fails(&["get", "file", "-"], 1, &["file", "Get it again"]);
        wire.change_after(i64::MAX);
    }
}
