//! Accounts and their files: the program's process holds them, and connection processes send RPC requests
//! to it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use plimsoll_tests::binary::{
    EngineKind, Member, PATIENCE, Server, Visitor, among_others, process, reached_within, tool, until,
};
use plimsoll_tests::tree::noise;
use rustix::process::Signal;

use super::{children, children_are, master};
use crate::tiers::{ALICE, Workspace, curl, sign_up};

const FTP: [&str; 2] = ["--ftp", "127.0.0.1:0"];
const LARGE_BYTES: usize = 3 << 20;

fn on_data(data: &Path) -> Server {
    Server::on_data(EngineKind::Process, data, &FTP)
}

#[test]
fn a_change_by_one_process_is_seen_by_another_at_the_next_request() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = on_data(folder.path());
    let mut alice = Member::new(&server, "alice");
    let mut again = alice.again(&server);
    assert_eq!(children_are(&server, 2).len(), 2);
    let large = noise(5, LARGE_BYTES);
    assert_eq!(alice.put("/files/large.bin", &large).status, 201);
    assert!(again.get("/files/large.bin").body == large, "every byte");
    assert_eq!(again.put("/files/large.bin", b"small").status, 204);
    assert_eq!(alice.get("/files/large.bin").body, b"small");
    assert_eq!(alice.ask("DELETE", "/api/sessions/current", "", b"").status, 204);
    assert_eq!(again.get("/files/large.bin").status, 401);
    for child in children(&server) {
        assert_eq!((process::threads(child), process::children(child).len()), (1, 0));
    }
    assert_eq!(process::threads(master(&server)), 1);
}

#[test]
fn an_operation_in_any_process_is_counted_and_logged_once() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = on_data(folder.path());
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/one.txt", b"one").status, 201);
    assert_eq!(alice.again(&server).put("/files/two.txt", b"two").status, 201);
    let mut curl = tool("curl");
    let at = format!("ftp://{}/one.txt", server.ftp_at());
    curl.args(["-q", "--silent", "--show-error", "--user", "alice:correct horse", &at]);
    assert_eq!(tool::run(&mut curl).well().stdout, b"one");
    let metrics = || server.visit().get("/metrics").unwrap().text();
    let counts = ["protocol=\"http\",operation=\"upload\"} 2", "protocol=\"ftp\",operation=\"download\"} 1"];
    for count in counts {
        let line = format!("plimsoll_operation_duration_seconds_count{{{count}");
        until("all of them are counted", || metrics().lines().any(|counted| counted == line));
    }
    server.signal(Signal::TERM);
    drop(alice);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    let log = std::fs::read_to_string(folder.path().join("transfers.jsonl")).unwrap();
    let uploads = log.lines().filter(|line| line.contains("\"operation\":\"upload\"")).count();
    let downloads = log.lines().filter(|line| line.contains("\"operation\":\"download\"")).count();
    assert_eq!((uploads, downloads), (2, 1), "{log}");
}

/// An upload whose process is killed in the middle: the old file stays, and the quota that it reserved is
/// free again.
#[test]
fn a_process_that_is_killed_in_the_middle_of_an_upload_leaves_the_old_file() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = on_data(folder.path());
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/kept.txt", b"old").status, 201);
    let before = children(&server);
    let mut uploading = alice.again(&server);
    let head = format!("PUT /files/kept.txt HTTP/1.1\r\nHost: test\r\n{}", uploading.field());
    uploading
        .visitor
        .send(&format!("{head}Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"))
        .unwrap();
    assert_eq!(uploading.visitor.reply().expect("leave to send").status, 100);
    uploading.visitor.send(&"x".repeat(100_000)).unwrap();
    let child = children(&server).into_iter().find(|child| !before.contains(child)).expect("a process");
    super::ending::kill(child);
    until("its process has ended", || !process::is_running(child));
    assert!(uploading.visitor.reply().is_err());
    assert_eq!(alice.get("/files/kept.txt").body, b"old");
    let pending = folder.path().join("accounts/alice/pending");
    until("nothing is left of it", || std::fs::read_dir(&pending).unwrap().count() == 0);
    assert_eq!(alice.put("/files/kept.txt", b"new").status, 204);
}

/// Returns the sockets for RPC requests of connection processes, in their servers' data folder.
fn sockets_in(data: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("desk-")
    };
    paths.filter(is_socket).collect()
}

#[test]
fn a_server_has_a_socket_of_its_own_and_clears_away_what_one_that_was_killed_has_left() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut killed = on_data(folder.path());
    let left = sockets_in(folder.path());
    assert_eq!(left.len(), 1, "{left:?}");
    super::ending::kill(killed.pid());
    killed.ends_within(PATIENCE);
    let mut server = on_data(folder.path());
    let own = sockets_in(folder.path());
    assert!(own.len() == 1 && own != left, "{left:?}, then {own:?}");
    drop(Member::new(&server, "alice"));
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    assert_eq!(sockets_in(folder.path()), Vec::<PathBuf>::new());
}

/// Two authentication servers may share one directory of accounts, and so one folder: during a handover, or
/// permanently.
#[test]
fn an_authentication_server_that_ends_leaves_another_of_its_folder_what_it_has() {
    let _permit = among_others();
    let place = Workspace::new();
    let mut first = place.auth_at_port(EngineKind::Process);
    let second = place.auth_at_port(EngineKind::Process);
    let fronts = [place.front_of(&first, "one"), place.front_of(&second, "two")];
    sign_up(&fronts[0]);
    assert_eq!(curl(&fronts[1], "/api/whoami", &["--user", ALICE]).0, 200);
    first.signal(Signal::TERM);
    assert_eq!(first.ends_within(PATIENCE).code(), Some(0), "{}", first.stderr());
    assert_eq!(sockets_in(&place.path("accounts")).len(), 1);
    assert_eq!(curl(&fronts[1], "/api/whoami", &["--user", ALICE]).0, 200);
    assert_eq!(curl(&fronts[1], "/api/whoami", &["--user", "alice:a guess"]).0, 401);
}

#[test]
fn a_request_to_the_socket_without_the_secret_learns_nothing() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let _server = on_data(&folder.path().join("data"));
    let sockets = sockets_in(&folder.path().join("data"));
    let mut socket = UnixStream::connect(&sockets[0]).unwrap();
    let question = "\"shares_by\"";
    let to = "POST /api/auth/questions HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer 00\r\n";
    let to = format!("{to}Connection: close\r\n");
    write!(socket, "{to}Content-Length: {}\r\n\r\n{question}", question.len()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[test]
fn an_order_to_stop_waits_for_an_upload_and_then_ends_all() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::on_data(EngineKind::Process, folder.path(), &["--grace", "600s"]);
    let mut alice = Member::new(&server, "alice");
    let head = format!("PUT /files/last.txt HTTP/1.1\r\nHost: test\r\n{}", alice.field());
    alice.visitor.send(&format!("{head}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n")).unwrap();
    assert_eq!(alice.visitor.reply().expect("leave to send").status, 100);
    server.signal(Signal::TERM);
    server.wait_until_refused();
    assert!(!reached_within(std::time::Duration::from_millis(200), || !server.is_running()));
    alice.visitor.send("0123456789").unwrap();
    assert_eq!(alice.visitor.reply().expect("an answer").status, 201);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    let again = on_data(folder.path());
    let token = plimsoll_tests::binary::member::log_in(&mut again.visit(), "alice").unwrap();
    let mut visitor: Visitor = again.visit();
    let field = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(visitor.get_with("/files/last.txt", &field).unwrap().body, b"0123456789");
}
