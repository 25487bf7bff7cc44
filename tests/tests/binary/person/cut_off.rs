//! Interrupted transfers are resumed: by the program itself, or when the same command is repeated.

use std::path::Path;
use std::process::{Child, Stdio};

use plimsoll_tests::binary::{EngineKind, Server, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::process::Signal;
use serde_json::Value;

use super::wire::Wire;
use super::{Person, Workspace, serve};

/// More than two parts of an upload.
const BYTES: usize = 10 << 20;
/// The first part of an upload, which the server has committed.
const PART: usize = 4 << 20;

/// Starts a command, and waits until its wire withholds bytes.
fn begin(alice: &Person, wire: &Wire, args: &[&str]) -> Child {
    let mut command = alice.command(&[args, &["--json"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the wire holds it up", || wire.is_held());
    child
}

/// Waits for a started command, and returns its JSON output.
fn end(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value, name: &str) -> usize {
    usize::try_from(value["files"][0][name].as_u64().unwrap()).unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the size of the largest file in a folder.
fn largest(folder: &Path) -> usize {
    let sizes = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    usize::try_from(sizes.max().unwrap_or(0)).unwrap()
}

fn setting(kind: EngineKind) -> (Workspace, Wire, Person) {
    let place = Workspace::open(kind);
    let wire = Wire::to(place.server.at());
    let alice = Person::at(&wire.url(), "alice");
    alice.writes("large", noise(7, BYTES));
    (place, wire, alice)
}

/// An interrupted upload is listed, and gone once it is discarded.
fn a_broken_upload_can_be_seen_and_discarded(kind: EngineKind) {
    let (_place, wire, alice) = setting(kind);
    assert_eq!(alice.types(&["uploads"]).well().text(), "");
    wire.hold_after_up((PART + PART / 2) as i64);
    kill(begin(&alice, &wire, &["put", "large"]));
    wire.open();
    let listed = alice.json(&["uploads"]);
    let upload = &listed["uploads"][0];
    assert_eq!((&upload["path"], upload["length"].as_u64()), (&"/large".into(), Some(BYTES as u64)));
    let id = upload["id"].as_str().unwrap();
    let output = alice.types(&["uploads"]).well().text();
    assert!(output.contains(id) && output.contains("of 10.0 MiB") && output.contains("/large"), "{output}");
    until("the server has seen the end", || alice.types(&["uploads", "--rm", id]).status.success());
    assert_eq!(alice.json(&["uploads"])["uploads"].as_array().map(Vec::len), Some(0));
    alice.fails(&["uploads", "--rm", id], 1, &["no such upload", "plimsoll uploads"]);
    alice.fails(&["uploads", "--rm", "../x"], 2, &["the id"]);
}

fn killed(place: Workspace, kind: EngineKind) -> Workspace {
    let Workspace { server, data } = place;
    let at = server.at().to_string();
    server.signal(Signal::KILL);
    drop::<Server>(server);
    Workspace { server: serve(kind, data.path(), &at), data }
}

/// The server is killed in the middle of an upload and restarted. The same command succeeds, and sends no
/// committed part again.
fn an_upload_outlives_the_server(kind: EngineKind) {
    let (place, wire, alice) = setting(kind);
    wire.hold_after_up((PART + PART / 2) as i64);
    let child = begin(&alice, &wire, &["put", "large"]);
    let _place = killed(place, kind);
    wire.open();
    let sent = number(&end(child), "sent");
    assert!((BYTES..=2 * BYTES - PART).contains(&sent), "the first part went once: {sent}");
    alice.types(&["get", "large", "back/"]).well();
    assert!(alice.reads("back/large") == noise(7, BYTES));
}

/// The server has received the last part, and its answer is lost: the file is not sent again.
fn a_lost_answer_is_no_lost_upload(kind: EngineKind) {
    let (place, wire, alice) = setting(kind);
    alice.writes("large", noise(7, PART));
    let other = Person::logged_out(&place.server.url(""));
    other.types(&["login", "alice"]).well();
    // One answer passes: that of the upload's creation.
    wire.hold_after_down(1);
    let child = begin(&alice, &wire, &["put", "large"]);
    until("the file is in its place", || other.types(&["ls"]).well().text() == "large\n");
    wire.cut();
    assert_eq!(number(&end(child), "sent"), PART);
}

/// The client is killed: the same command sends the rest.
fn an_upload_goes_on_when_it_is_typed_again(kind: EngineKind) {
    let (_place, wire, alice) = setting(kind);
    wire.hold_after_up((PART + PART / 2) as i64);
    kill(begin(&alice, &wire, &["put", "large"]));
    wire.open();
    let sent = number(&alice.json(&["put", "large"]), "sent");
    assert!(sent <= BYTES - PART, "the first part went once: {sent}");
    alice.types(&["get", "large", "back/"]).well();
    assert!(alice.reads("back/large") == noise(7, BYTES));
}

/// The bytes of an old file are not combined with another file of the same name.
fn an_upload_of_a_changed_file_begins_anew(kind: EngineKind) {
    let (_place, wire, alice) = setting(kind);
    wire.hold_after_up((PART + PART / 2) as i64);
    kill(begin(&alice, &wire, &["put", "large"]));
    wire.open();
    alice.writes("large", noise(8, BYTES));
    assert_eq!(number(&alice.json(&["put", "large"]), "sent"), BYTES);
    alice.types(&["get", "large", "back/"]).well();
    assert!(alice.reads("back/large") == noise(8, BYTES));
}

/// The client is killed in the middle of a download: received bytes stay, and the next run gets the rest.
fn a_download_goes_on_when_it_is_typed_again(kind: EngineKind) {
    let (_place, wire, alice) = setting(kind);
    alice.types(&["put", "large"]).well();
    alice.writes("back/large", "what was there");
    wire.hold_after_down(PART as i64);
    let child = begin(&alice, &wire, &["get", "large", "back/"]);
    until("what came is in the part", || largest(&alice.path("back")) >= PART / 2);
    kill(child);
    assert_eq!(alice.reads("back/large"), b"what was there");
    wire.open();
    let received = number(&alice.json(&["get", "large", "back/"]), "received");
    assert!(received <= BYTES - PART / 2, "what had come is kept: {received}");
    assert!(alice.reads("back/large") == noise(7, BYTES));
    assert_eq!(std::fs::read_dir(alice.path("back")).unwrap().count(), 1, "no part is left");
}

/// Received bytes are verified: a part that was damaged meanwhile does not become a file.
fn a_damaged_part_is_fetched_again(kind: EngineKind) {
    let (_place, wire, alice) = setting(kind);
    alice.types(&["put", "large"]).well();
    std::fs::create_dir(alice.path("back")).unwrap();
    wire.hold_after_down(PART as i64);
    let child = begin(&alice, &wire, &["get", "large", "back/"]);
    until("what came is in the part", || largest(&alice.path("back")) >= PART / 2);
    kill(child);
    let part = std::fs::read_dir(alice.path("back")).unwrap().next().unwrap().unwrap().path();
    let mut came = std::fs::read(&part).unwrap();
    came[1000] ^= 1;
    std::fs::write(&part, &came).unwrap();
    wire.open();
    alice.types(&["get", "large", "back/"]).well();
    assert!(alice.reads("back/large") == noise(7, BYTES));
}

/// The server is killed in the middle of a download and restarted.
fn a_download_outlives_the_server(kind: EngineKind) {
    let (place, wire, alice) = setting(kind);
    alice.types(&["put", "large"]).well();
    wire.hold_after_down(PART as i64);
    let child = begin(&alice, &wire, &["get", "large", "back/"]);
    let _place = killed(place, kind);
    wire.open();
    assert!(number(&end(child), "received") <= BYTES);
    assert!(alice.reads("back/large") == noise(7, BYTES));
}

/// The file was replaced meanwhile: none of the old bytes are in the result.
fn a_download_of_a_changed_file_begins_anew(kind: EngineKind) {
    let (place, wire, alice) = setting(kind);
    alice.types(&["put", "large"]).well();
    wire.hold_after_down(PART as i64);
    std::fs::create_dir(alice.path("back")).unwrap();
    let child = begin(&alice, &wire, &["get", "large", "back/"]);
    until("what came is in the part", || largest(&alice.path("back")) >= PART / 2);
    kill(child);
    wire.open();
    alice.writes("large", noise(8, BYTES));
    alice.types(&["put", "large"]).well();
    assert_eq!(number(&alice.json(&["get", "large", "back/"]), "received"), BYTES);
    assert!(alice.reads("back/large") == noise(8, BYTES));
    drop(place);
}

on_each_engine!(
    an_upload_outlives_the_server,
    a_lost_answer_is_no_lost_upload,
    an_upload_goes_on_when_it_is_typed_again,
    a_broken_upload_can_be_seen_and_discarded,
    an_upload_of_a_changed_file_begins_anew,
    a_download_goes_on_when_it_is_typed_again,
    a_damaged_part_is_fetched_again,
    a_download_outlives_the_server,
    a_download_of_a_changed_file_begins_anew,
);
