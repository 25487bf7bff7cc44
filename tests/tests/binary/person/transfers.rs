//! Properties of put and get besides the bytes: no wait before them, modification times, no repeated
//! transfers, and the output on a terminal.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_tests::binary::{EngineKind, among_others, tool};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::accounts::{NEVER, on_a_terminal, read_until};
use super::wire::Wire;
use super::{PASSWORD, Person, Workspace};

/// A sparse file that takes much longer to hash than any step here may take.
const SPARSE_BYTES: u64 = 64 << 30;
/// The maximal wait for the first bytes, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximal size of a file that is sent in one request.
const SMALL: usize = 1 << 20;

/// Downloads a file by curl, and requests its digest; returns the response's head.
fn head_by_curl(place: &Workspace, target: &str, more: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-D", "-", "-o", "/dev/null", "-u", &format!("alice:{PASSWORD}")]);
    curl.args(["-H", "Want-Repr-Digest: sha-256=1"]).args(more).arg(place.server.url(target));
    tool::run(&mut curl).well().text()
}

#[test]
fn a_large_file_comes_without_a_wait_for_its_digest() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("sparse", "");
    alice.types(&["put", "sparse"]).well();
    let stored = place.data.path().join("accounts/alice/files/sparse");
    std::fs::File::options().write(true).open(stored).unwrap().set_len(SPARSE_BYTES).unwrap();
    let began = Instant::now();
    let mut get = alice.command(&["get", "sparse", "-"]).stdout(Stdio::piped()).spawn().unwrap();
    get.stdout.take().unwrap().read_exact(&mut [1; 1 << 20]).unwrap();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    get.kill().unwrap();
    get.wait().unwrap();
    let began = Instant::now();
    let head = head_by_curl(&place, "/files/sparse", &["-r", "0-9"]);
    assert!(began.elapsed() < PATIENCE && head.starts_with("HTTP/1.1 206"), "{head}");
    assert!(!head.contains("Repr-Digest"), "{head}");
}

/// The digest that verified an upload is stored, and not computed again.
fn the_digest_of_an_upload_is_said_with_its_bytes(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    for bytes in [SMALL, SMALL + 1, 9 << 20] {
        alice.writes("file", noise(3, bytes));
        alice.types(&["put", "file"]).well();
        let head = head_by_curl(&place, "/files/file", &[]);
        assert!(head.contains("Repr-Digest: sha-256=:"), "{bytes} bytes: {head}");
    }
    let mut put = alice.command(&["put", "-", "stream"]).stdin(Stdio::piped()).spawn().unwrap();
    put.stdin.take().unwrap().write_all(&noise(4, 3 << 20)).unwrap();
    assert!(put.wait().unwrap().success());
    let head = head_by_curl(&place, "/files/stream", &[]);
    assert!(head.contains("Repr-Digest: sha-256=:"), "{head}");
    // A file that changed since then has another digest, and the old one is not sent.
    std::fs::write(place.data.path().join("accounts/alice/files/stream"), noise(5, 3 << 20)).unwrap();
    let head = head_by_curl(&place, "/files/stream", &[]);
    assert!(!head.contains("Repr-Digest"), "{head}");
    alice.types(&["get", "stream"]).well();
    assert!(alice.reads("stream") == noise(5, 3 << 20));
}

fn date(path: &Path, time: SystemTime) {
    std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn modified(path: &Path) -> SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

fn files_keep_their_times_and_the_same_are_not_sent_again(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let names = ["small", "sub/large"];
    for (name, bytes) in names.iter().zip([5_000, SMALL + 5]) {
        let path = format!("tree/{name}");
        alice.writes(&path, noise(6, bytes));
        date(&alice.path(&path), time);
    }
    let sent = |put: &serde_json::Value| -> Vec<u64> {
        put["files"].as_array().unwrap().iter().map(|file| file["sent"].as_u64().unwrap()).collect()
    };
    assert_eq!(sent(&alice.json(&["put", "-r", "tree"])), [5_000, SMALL as u64 + 5]);
    assert_eq!(sent(&alice.json(&["put", "-r", "tree"])), [0, 0]);
    // The same size and the same second, but another time.
    alice.writes("tree/small", noise(7, 5_000));
    date(&alice.path("tree/small"), time + Duration::from_nanos(1));
    let again = alice.json(&["put", "-r", "tree"]);
    assert_eq!(again["files"].as_array().unwrap().len(), 2, "{again}");
    assert_eq!(sent(&again).iter().sum::<u64>(), 5_000, "{again}");
    alice.types(&["get", "-r", "tree", "back/"]).well();
    assert!(alice.reads("back/tree/small") == noise(7, 5_000));
    for (name, later) in names.iter().zip([1, 0]) {
        let path = alice.path(&format!("back/tree/{name}"));
        assert_eq!(modified(&path), time + Duration::from_nanos(later), "{name}");
    }
    // Downloaded files count as unchanged, too. A single file has the time of HTTP, in whole seconds.
    assert_eq!(sent(&alice.json(&["put", "-r", "back/tree", "tree"])), [0, 0]);
    alice.types(&["get", "tree/small", "alone"]).well();
    assert_eq!(modified(&alice.path("alone")), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    // Other clients send the time in the same field.
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-i", "-u", &format!("alice:{PASSWORD}"), "-H", "X-OC-Mtime: 1000000001.5", "-T"]);
    let done = tool::run(curl.arg(alice.path("alone")).arg(place.server.url("/files/by-curl"))).well();
    assert!(done.text().contains("X-OC-Mtime: accepted"), "{}", done.text());
    assert!(done.text().contains("Last-Modified: Sun, 09 Sep 2001 01:46:41 GMT"), "{}", done.text());
}

fn a_file_of_a_time_that_the_server_does_not_store_is_sent_once(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    for (name, bytes) in [("small", 5_000), ("large", SMALL + 5)] {
        alice.writes(&format!("old/{name}"), noise(8, bytes));
        let time = SystemTime::UNIX_EPOCH - Duration::new(157_766_400, 5);
        date(&alice.path(&format!("old/{name}")), time);
    }
    alice.types(&["put", "-r", "old"]).well();
    let again = alice.json(&["put", "-r", "old"]);
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["sent"] == 0), "{again}");
    assert!(alice.json(&["ls", "old"]).to_string().contains("1970-01-01T00:00:00Z"));
}

on_each_engine!(
    the_digest_of_an_upload_is_said_with_its_bytes,
    files_keep_their_times_and_the_same_are_not_sent_again,
    a_file_of_a_time_that_the_server_does_not_store_is_sent_once,
);

/// Returns the text that remains on the last line of a terminal.
fn last_line(shown: &str) -> &str {
    shown.trim_end().rsplit(['\n', '\r']).next().unwrap_or_default()
}

#[test]
fn a_terminal_shows_what_was_done_and_no_bar_that_is_left() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    for name in ["a", "b", "c"] {
        alice.writes(&format!("tree/{name}"), noise(1, 1000));
    }
    alice.writes("one", noise(1, 2000));
    for (args, end) in [
        (&["put", "one"][..], "one  1.95 KiB in "),
        (&["put", "-r", "tree"], "3 files  2.92 KiB in "),
        (&["put", "-r", "tree"], "0 files  0 B in "),
        (&["get", "-r", "tree", "back/"], "3 files  2.92 KiB in "),
        (&["get", "one", "back/"], "back/one  1.95 KiB in "),
    ] {
        let (mut hands, mut child) = on_a_terminal(&alice, args);
        let shown = read_until(&mut hands, NEVER);
        assert!(child.wait().unwrap().success(), "{shown}");
        assert!(last_line(&shown).contains(end), "{args:?}: {shown:?}");
    }
    let (mut hands, _child) = on_a_terminal(&alice, &["put", "-r", "tree"]);
    assert!(read_until(&mut hands, NEVER).contains("; 3 unchanged"));
}

/// A stream has no length that could be shown.
#[test]
fn progress_of_a_stream_shows_no_total() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    let shell = "(head -c 300000 /dev/zero; sleep 0.5; head -c 300000 /dev/zero) | \"$0\" put - stream";
    let (mut hands, terminal) = plimsoll_tests::binary::terminal();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "sh", "-c", shell]).arg(plimsoll_tests::binary::plimsoll());
    alice.settle(&mut command);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let shown = read_until(&mut hands, NEVER);
    assert!(child.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("KiB") && !shown.contains(" of "), "{shown:?}");
    assert!(last_line(&shown).contains("stream  585 KiB in "), "{shown:?}");
}

#[test]
fn an_interrupted_transfer_says_that_the_same_command_resumes() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let wire = Wire::to(place.server.at());
    let alice = Person::at(&wire.url(), "alice");
    alice.writes("large", noise(1, 9 << 20));
    wire.hold_after_up(6 << 20);
    let mut put = alice.command(&["put", "large"]);
    let child = put.stderr(Stdio::piped()).spawn().unwrap();
    plimsoll_tests::binary::until("the wire holds it up", || wire.is_held());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    // The signal itself; a shell reports it as 130.
    assert_eq!(done.status.signal(), Some(rustix::process::Signal::INT.as_raw()), "{stderr}");
    assert!(stderr.contains("Type the same command again"), "{stderr}");
    wire.open();
    alice.types(&["put", "large"]).well();
}
