//! Transfers in progress when a right is revoked: by an operator's command, or at another front of the
//! tiers.

use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Member, Server, command, tool, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use crate::tiers::Workspace;

/// The maximal time of a transfer after that. The documents promise one second in one process and 2.5
/// seconds across tiers; a machine that runs other tests needs more.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// More than the buffers between server and client hold.
const LARGE_BYTES: usize = 24 << 20;

/// The pause after each block of at most 64 KiB: the whole file takes longer than any check of a right.
const READ_PAUSE: Duration = Duration::from_millis(20);

/// Starts an upload and sends a small part. The server answers 100 once it has permitted the upload.
fn start_upload(member: &mut Member, target: &str) {
    let fields = format!("{}Content-Length: 1000000\r\nExpect: 100-continue\r\n", member.field());
    member.visitor.send(&format!("PUT {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).unwrap();
    assert_eq!(member.visitor.head().unwrap().0.status, 100);
    member.visitor.send("begin").unwrap();
}

/// Starts a download of a file of [`LARGE_BYTES`], and reads nothing behind the head.
fn start_download(member: &mut Member, target: &str) {
    member.visitor.send(&format!("GET {target} HTTP/1.1\r\nHost: test\r\n{}\r\n", member.field())).unwrap();
    assert_eq!(member.visitor.head().unwrap().0.status, 200);
}

/// Asserts that the server broke the download off: the client receives what the network has buffered, and
/// then the connection breaks.
fn is_broken_off(reader: &mut Member) {
    let mut came = 0;
    while let Ok(bytes) = reader.visitor.some_body() {
        // Slowly: a download's right is checked separately, up to a second after an upload's.
        std::thread::sleep(READ_PAUSE);
        came += bytes.len();
        if bytes.is_empty() {
            break;
        }
    }
    assert!(came < LARGE_BYTES, "all of it came");
}

/// Waits until the server ends the upload, and returns the status.
fn ends(member: &mut Member, since: Instant) -> u16 {
    let reply = member.visitor.reply().expect("an answer");
    let took = since.elapsed();
    assert!(took < ENDS_WITHIN, "{took:?}");
    println!("{} after {took:?}", reply.status);
    reply.status
}

fn account(data: &Path, args: &[&str]) {
    tool::run(command().arg("account").args(args).arg("--data").arg(data)).well();
}

fn an_operators_command_ends_transfers_in_progress(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/large", &noise(1, LARGE_BYTES)).status, 201);
    let (mut reader, mut writer) = (alice.again(&server), alice.again(&server));
    start_download(&mut reader, "/files/large");
    start_upload(&mut writer, "/files/new");
    account(data.path(), &["permit", "alice", "read,delete,share"]);
    assert_eq!(ends(&mut writer, Instant::now()), 403);
    assert_eq!(alice.put("/files/new", b"new").status, 403);
    account(data.path(), &["permit", "alice", "all"]);
    until("the permission is back", || alice.again(&server).put("/files/other", b"other").status == 201);
    let mut writer = alice.again(&server);
    start_upload(&mut writer, "/files/new");
    account(data.path(), &["disable", "alice"]);
    assert_eq!(ends(&mut writer, Instant::now()), 401);
    is_broken_off(&mut reader);
    assert!(!data.path().join("accounts/alice/files/new").exists());
}

fn a_right_that_ends_at_one_front_ends_transfers_at_another(kind: EngineKind) {
    let place = Workspace::new();
    // A storage server does not support the engine `process`.
    let of_store = if kind == EngineKind::Process { EngineKind::Epoll } else { kind };
    let (_auth, _store) = (place.auth(), crate::stores::store(&place, of_store));
    let fronts =
        [crate::stores::front(&place, kind, "one"), crate::stores::front(&place, EngineKind::Epoll, "two")];
    let mut alice = Member::new(&fronts[0], "alice");
    assert_eq!(alice.ask("MKCOL", "/files/docs", "", b"").status, 201);
    let mut bob = Member::new(&fronts[0], "bob");
    let share = r#"{"path":"docs","with":"bob","permission":"write"}"#;
    let share = alice.ask("POST", "/api/shares", "Content-Type: application/json\r\n", share.as_bytes());
    let share = format!("/api/shares/{}", share.json()["id"].as_str().unwrap());
    assert_eq!(alice.put("/files/docs/large", &noise(1, LARGE_BYTES)).status, 201);
    let (mut reader, mut shared_reader) = (alice.again(&fronts[0]), bob.again(&fronts[0]));
    start_download(&mut reader, "/files/docs/large");
    start_download(&mut shared_reader, "/shared/alice/docs/large");
    start_upload(&mut bob, "/shared/alice/docs/new");
    let (mut writer, mut other) = (alice.again(&fronts[0]), alice.again(&fronts[1]));
    start_upload(&mut writer, "/files/new");
    assert_eq!(other.ask("DELETE", &share, "", b"").status, 204);
    assert_eq!(ends(&mut bob, Instant::now()), 403);
    is_broken_off(&mut shared_reader);
    assert_eq!(other.ask("DELETE", "/api/sessions/current", "", b"").status, 204);
    assert_eq!(ends(&mut writer, Instant::now()), 401);
    is_broken_off(&mut reader);
    let files = place.path("files/accounts/alice/files");
    assert!(!files.join("new").exists() && !files.join("docs/new").exists());
}

on_each_engine!(forks:
    an_operators_command_ends_transfers_in_progress,
    a_right_that_ends_at_one_front_ends_transfers_at_another,
);
