//! A remote store: the real programs, killed and restarted.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tests::binary::{EngineKind, Server, command, until};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use crate::tiers::{ALICE, Workspace, curl, sign_up};

/// Starts the storage server, always on the same socket.
pub(crate) fn store(place: &Workspace, kind: EngineKind) -> Server {
    let mut store = command();
    store.args(["store", "--listen", &store_at(place), "--engine", &kind.to_string(), "--secret-file"]);
    store.arg(place.path("secret")).arg("--data").arg(place.path("files"));
    Server::spawn(store)
}

fn store_at(place: &Workspace) -> String {
    format!("unix:{}", place.path("store.sock").display())
}

pub(crate) fn front(place: &Workspace, kind: EngineKind, name: &str) -> Server {
    front_with(place, kind, name, &[])
}

fn front_with(place: &Workspace, kind: EngineKind, name: &str, more: &[&str]) -> Server {
    let mut serve = command();
    serve.args(["serve", "--auth", &place.auth_at(), "--store", &store_at(place), "--secret-file"]);
    serve.arg(place.path("secret")).args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0"]);
    serve.args(["--signup", "open", "--ftp", "127.0.0.1:0", "--data"]).arg(place.path(name)).args(more);
    Server::spawn(serve)
}

/// Returns the path of alice's file in the store.
fn kept(place: &Workspace, name: &str) -> PathBuf {
    place.path("files/accounts/alice/files").join(name)
}

/// Writes a local file to upload, and returns its path.
fn written(place: &Workspace, name: &str, bytes: &[u8]) -> String {
    std::fs::write(place.path(name), bytes).unwrap();
    place.path(name).display().to_string()
}

fn put(front: &Server, file: &str, to: &str, more: &[&str]) -> (u16, String) {
    curl(front, to, &[&["--user", ALICE, "--upload-file", file][..], more].concat())
}

fn get(front: &Server, from: &str, more: &[&str]) -> (u16, String) {
    curl(front, from, &[&["--user", ALICE][..], more].concat())
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| b'a' + ((at / 7 + at * seed) % 26) as u8).collect()
}

/// All fronts serve the files of the storage server.
fn fronts_of_one_storage_server_have_the_same_files(kind: EngineKind) {
    let place = Workspace::new();
    let (_auth, _store) = (place.auth(), store(&place, kind));
    let fronts = [front(&place, kind, "one"), front(&place, EngineKind::Thread, "two")];
    sign_up(&fronts[0]);
    let bytes = noise(1, 3_000_000);
    let file = written(&place, "large", &bytes);
    let (status, output) = put(&fronts[0], &file, "/files/large", &[]);
    assert_eq!(status, 201, "{output}");
    assert_eq!(std::fs::read(kept(&place, "large")).unwrap(), bytes);
    let (status, body) = get(&fronts[1], "/files/large", &[]);
    assert!(status == 200 && body.as_bytes() == bytes);
    let (status, body) = get(&fronts[1], "/files/large", &["--range", "1000000-1000009"]);
    assert_eq!((status, body.as_bytes()), (206, &bytes[1_000_000..1_000_010]));
    let new_only = &["--header", "If-None-Match: *"];
    assert_eq!(put(&fronts[1], &file, "/files/large", new_only).0, 412, "another front has put it there");
    let (status, listed) = get(&fronts[1], "/files/", &[]);
    assert!(status == 200 && listed.contains("large"), "{listed}");
    assert_eq!(curl(&fronts[1], "/files/large", &["--user", ALICE, "--request", "DELETE"]).0, 204);
    assert_eq!(get(&fronts[0], "/files/large", &[]).0, 404);
    assert!(!place.path("one/accounts/alice").exists(), "a front keeps no files");
}

/// A client that lost the answer of one front may retry on another.
fn an_upload_that_one_front_completed_is_complete_at_another(kind: EngineKind) {
    let place = Workspace::new();
    let (_auth, _store) = (place.auth(), store(&place, EngineKind::Epoll));
    let fronts = [front(&place, kind, "one"), front(&place, EngineKind::Thread, "two")];
    sign_up(&fronts[0]);
    let tus = ["--user", ALICE, "--include", "--header", "Tus-Resumable: 1.0.0"];
    // The file `a`, of no bytes: it is complete when it is announced.
    let announced =
        ["--request", "POST", "--header", "Upload-Length: 0", "--header", "Upload-Metadata: path YQ=="];
    let (status, output) = curl(&fronts[0], "/uploads", &[&tus[..], &announced].concat());
    let location = output.lines().find_map(|line| line.strip_prefix("Location: ")).expect("a place").trim();
    assert_eq!(status, 201, "{output}");
    let (status, output) = curl(&fronts[1], location, &[&tus[..], &["--head"]].concat());
    assert!(status == 200 && output.contains("Upload-Length: 0"), "{status} {output}");
}

/// Requests are refused with 503 and `Retry-After`, and work again without an operator once the server is
/// back.
fn while_the_storage_server_is_away_files_cannot_be_reached_and_then_they_can(kind: EngineKind) {
    let place = Workspace::new();
    let (_auth, running) = (place.auth(), store(&place, kind));
    let front = front(&place, kind, "one");
    sign_up(&front);
    let file = written(&place, "small", b"small");
    assert_eq!(put(&front, &file, "/files/small", &[]).0, 201);
    until("it is ready", || curl(&front, "/readyz", &[]).0 == 200);
    running.signal(Signal::KILL);
    until("it is not ready", || curl(&front, "/readyz", &[]).0 == 503);
    for (status, output) in
        [get(&front, "/files/small", &["--include"]), put(&front, &file, "/files/b", &["-i"])]
    {
        assert!(status == 503 && output.to_lowercase().contains("retry-after:"), "{status} {output}");
    }
    drop(running);
    let _store = store(&place, kind);
    until("the front asks the server that is back", || get(&front, "/files/small", &[]).0 == 200);
    until("it is ready again", || curl(&front, "/readyz", &[]).0 == 200);
    assert_eq!(get(&front, "/files/b", &[]).0, 404, "what was refused is not there");
}

/// How often the storage server is killed during uploads.
const KILLS: usize = 4;
/// The number of confirmed files before each kill.
const FILES_BETWEEN: usize = 5;

/// A confirmed file is there; an unconfirmed one is complete or absent.
fn a_storage_server_that_is_killed_while_files_come_has_all_that_was_confirmed(kind: EngineKind) {
    let place = Workspace::new();
    let (_auth, mut running) = (place.auth(), Some(store(&place, kind)));
    let front = front(&place, kind, "one");
    sign_up(&front);
    let (is_over, results) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let confirmed = || results.lock().unwrap().iter().filter(|(_, status)| *status == 201).count();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let file = written(&place, "coming", &noise(number, 500_000));
                let (status, _) = put(&front, &file, &format!("/files/{number}"), &[]);
                results.lock().unwrap().push((number, status));
            }
        });
        for _ in 0..KILLS {
            let before = confirmed();
            until("files come", || confirmed() >= before + FILES_BETWEEN);
            running.iter().for_each(|running| running.signal(Signal::KILL));
            let refused = results.lock().unwrap().len();
            until("one more client has a result", || results.lock().unwrap().len() > refused + 1);
            // Reaped before the next server takes its folder.
            drop(running.take());
            running = Some(store(&place, kind));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for (number, status) in results.into_inner().unwrap() {
        assert!(matches!(status, 201 | 503), "file {number}: {status}");
        let found = get(&front, &format!("/files/{number}"), &[]);
        let is_whole = found.0 == 200 && found.1.as_bytes() == noise(number, 500_000);
        assert!(is_whole || (status == 503 && found.0 == 404), "file {number}: {status}, then {}", found.0);
    }
}

/// Returns the bytes of unlinked files below a folder that a process has open.
fn nameless_bytes(pid: u32, folder: &str) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let size = |entry: std::io::Result<std::fs::DirEntry>| {
        let at = entry.unwrap().path();
        let name = std::fs::read_link(&at).unwrap_or_default().display().to_string();
        let is_it = name.contains(folder) && name.ends_with(" (deleted)");
        std::fs::metadata(&at).ok().filter(|_| is_it).map_or(0, |stat| stat.len())
    };
    open.map(size).sum()
}

fn names_in(folder: PathBuf) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// The upload is on the front's disk alone until it is complete, and disappears with the front.
fn an_upload_that_is_spooled_is_gone_when_its_front_is_killed(kind: EngineKind) {
    let place = Workspace::new();
    let (_auth, _store) = (place.auth(), store(&place, kind));
    let killed = front_with(&place, kind, "one", &["--relay", "spool"]);
    sign_up(&killed);
    let bytes = noise(1, 3_000_000);
    let file = written(&place, "large", &bytes);
    assert_eq!(put(&killed, &file, "/files/large", &[]).0, 201);
    assert_eq!(std::fs::read(kept(&place, "large")).unwrap(), bytes);
    let mut half = killed.visit();
    let head = "PUT /files/half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n";
    // "alice:correct horse"
    half.send(&format!("{head}Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\n\r\n")).unwrap();
    half.send(&"x".repeat(500_000)).unwrap();
    until("what came is spooled", || nameless_bytes(killed.pid(), "/spool/") == 500_000);
    assert_eq!(names_in(place.path("files/accounts/alice/pending")), 0, "the store has nothing of it");
    killed.signal(Signal::KILL);
    drop(killed);
    assert_eq!(names_in(place.path("one/spool")), 0);
    // As left behind by a kill between the file's creation and its unlink.
    std::fs::write(place.path("one/spool/left"), "").unwrap();
    let front = front_with(&place, kind, "one", &["--relay", "spool"]);
    assert_eq!(names_in(place.path("one/spool")), 0);
    assert_eq!(get(&front, "/files/half", &[]).0, 404);
    assert_eq!(put(&front, &file, "/files/half", &[]).0, 201);
}

/// The client gets 503, and the front's log has the reason.
fn a_front_with_another_secret_reaches_no_files_and_its_log_says_why(kind: EngineKind) {
    let place = Workspace::new();
    let _store = store(&place, kind);
    std::fs::write(place.path("another"), "not-the-secret-of-the-tiers\n").unwrap();
    let mut serve = command();
    serve
        .args(["serve", "--signup", "open", "--store", &store_at(&place), "--secret-file"])
        .arg(place.path("another"));
    serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--data"]).arg(place.path("one"));
    let front = Server::spawn(serve);
    sign_up(&front);
    assert_eq!(get(&front, "/files/", &[]).0, 503);
    until("the log says why", || front.stderr().contains("does not take the secret"));
}

/// Runs the doctor of a front of this store. Returns its exit code and its line about the store.
fn doctor(place: &Workspace, at: &str, secret: &str) -> (Option<i32>, String) {
    let mut doctor = command();
    doctor.args(["doctor", "--http", "127.0.0.1:0", "--store", at, "--secret-file"]);
    let done = doctor.arg(place.path(secret)).arg("--data").arg(place.path("one")).output().unwrap();
    let output = String::from_utf8(done.stdout).unwrap();
    let line = output.lines().find(|line| line.contains(" store ")).unwrap_or(&output).to_owned();
    (done.status.code(), line)
}

#[test]
fn the_doctor_of_a_front_asks_its_storage_server() {
    let place = Workspace::new();
    let running = store(&place, EngineKind::Epoll);
    let (code, output) = doctor(&place, &store_at(&place), "secret");
    assert!(
        code == Some(0) && output.starts_with("ok ") && output.contains("takes the secret"),
        "{code:?} {output}"
    );
    std::fs::write(place.path("another"), "not-the-secret-of-the-tiers\n").unwrap();
    let (code, output) = doctor(&place, &store_at(&place), "another");
    assert!(code == Some(1) && output.contains("does not take the secret"), "{code:?} {output}");
    drop(running);
    std::fs::create_dir(place.path("site")).unwrap();
    let another_server = Server::start(EngineKind::Epoll, &place.path("site"), &[]);
    for at in [store_at(&place), "http://127.0.0.1:1".to_owned(), another_server.url("")] {
        let (code, output) = doctor(&place, &at, "secret");
        assert_eq!(code, Some(1), "{output}");
        assert!(output.starts_with("fail ") && output.contains("does not answer us"), "{output}");
    }
}

on_each_engine! {
    fronts_of_one_storage_server_have_the_same_files,
    an_upload_that_one_front_completed_is_complete_at_another,
    while_the_storage_server_is_away_files_cannot_be_reached_and_then_they_can,
    a_storage_server_that_is_killed_while_files_come_has_all_that_was_confirmed,
    an_upload_that_is_spooled_is_gone_when_its_front_is_killed,
    a_front_with_another_secret_reaches_no_files_and_its_log_says_why,
}

#[test]
fn a_storage_server_does_not_start_without_a_secret() {
    for args in [&["store"][..], &["serve", "--store", "unix:/nowhere"]] {
        let folder = tempfile::tempdir().unwrap();
        let output = command().args(args).current_dir(&folder).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && message.contains("--secret-file"), "{message}");
    }
}
