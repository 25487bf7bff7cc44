//! Ways to end the server: signals, `q` on a terminal, and the end of the grace period.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{self, EngineKind, Server, Visitor, reached_within, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::{Pid, Signal, kill_process};

/// More than the kernel buffers between a server and a client that does not read.
const LARGE_BYTES: usize = 24 << 20;
/// The bound of an end that waits for no connection; wide enough for a noisy machine.
const AT_ONCE: Duration = Duration::from_secs(10);
/// A grace period for which no test waits.
const LONG: &str = "600s";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(7, LARGE_BYTES)).plant(folder.path());
    folder
}

/// Starts a download, and reads its head and first bytes.
fn begin_download(server: &Server) -> (Visitor, Vec<u8>) {
    let mut reader = server.visit_narrowly();
    reader.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (reply, length) = reader.head().unwrap();
    assert_eq!((reply.status, length), (200, LARGE_BYTES));
    let first = reader.some_body().unwrap();
    assert!(!first.is_empty());
    (reader, first)
}

fn a_signal_drains(kind: EngineKind, signal: Signal) {
    let folder = folder();
    let mut server = Server::start(kind, folder.path(), &["--grace", LONG]);
    let mut kept = server.visit();
    assert_eq!(kept.get("/small.txt").unwrap().body, b"small\n");
    let (mut reader, mut body) = begin_download(&server);
    server.signal(signal);
    server.wait_until_refused();
    assert!(server.is_running(), "the download goes on: {}", server.stderr());
    assert!(matches!(kept.reply(), Err(binary::Broken::Ended)), "an idle connection ends cleanly");
    while body.len() < LARGE_BYTES {
        let more = reader.some_body().unwrap();
        assert!(!more.is_empty(), "cut off after {} bytes", body.len());
        body.extend_from_slice(&more);
    }
    assert!(body == noise(7, LARGE_BYTES), "every byte");
    assert!(reader.some_body().unwrap().is_empty(), "and then a clean end");
    assert_eq!(server.ends_within(AT_ONCE).code(), Some(0), "{}", server.stderr());
    assert!(server.stderr().contains("a second signal ends at once"), "{}", server.stderr());
}

/// A slow download in progress completes byte for byte; new connections are refused; exit 0.
fn sigterm_drains(kind: EngineKind) {
    a_signal_drains(kind, Signal::TERM);
}

/// Ctrl-C has the same effect.
fn sigint_drains(kind: EngineKind) {
    a_signal_drains(kind, Signal::INT);
}

/// With a stuck connection and a long grace period: the second signal waits for neither.
fn a_second_signal_ends_at_once(kind: EngineKind) {
    let folder = folder();
    let (first, second) = (Signal::TERM, Signal::INT);
    for (signals, code) in [([first, first], 128 + 15), ([second, second], 128 + 2)] {
        let mut server = Server::start(kind, folder.path(), &["--grace", LONG]);
        let stuck = begin_download(&server);
        server.signal(signals[0]);
        server.wait_until_refused();
        assert!(server.is_running(), "the grace is long");
        server.signal(signals[1]);
        assert_eq!(server.ends_within(AT_ONCE).code(), Some(code), "{}", server.stderr());
        drop(stuck);
    }
}

/// With nothing in progress, the first signal ends the server without the grace period; idle connections
/// are closed.
fn an_idle_server_ends_without_waiting(kind: EngineKind) {
    let folder = folder();
    let mut server = Server::start(kind, folder.path(), &["--grace", LONG]);
    let mut idle: Vec<Visitor> = (0..20).map(|_| server.visit()).collect();
    for visitor in &mut idle[..10] {
        assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n");
    }
    // The kernel may defer the acceptance of connections without any byte.
    until("all are here", || server.status()["load"]["connections_open"].as_u64() > Some(20));
    // A new connection without any byte is not waited for either.
    let _silent = server.visit();
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(AT_ONCE).code(), Some(0), "{}", server.stderr());
    for visitor in &mut idle {
        assert!(matches!(visitor.reply(), Err(binary::Broken::Ended)), "a clean end");
    }
}

/// A client that never reads is not waited for beyond the grace period.
fn the_end_of_the_grace_ends_it(kind: EngineKind) {
    let folder = folder();
    let mut server = Server::start(kind, folder.path(), &["--grace", "1s"]);
    let stuck = begin_download(&server);
    let ordered = Instant::now();
    server.signal(Signal::TERM);
    let ended = server.ends_within(AT_ONCE);
    assert!(ordered.elapsed() >= Duration::from_secs(1), "the grace was kept");
    assert_eq!(ended.code(), Some(0), "{}", server.stderr());
    drop(stuck);
}

/// `q` and Enter on a terminal act as SIGTERM; other words do nothing.
fn q_on_a_terminal_ends_it(kind: EngineKind) {
    let folder = folder();
    let (mut hands, input) = binary::terminal();
    let mut server = Server::start_reading(input, kind, folder.path(), &["--grace", LONG]);
    for word in ["", "quit", "Q?"] {
        binary::type_line(&mut hands, word);
    }
    let (reader, _) = begin_download(&server);
    assert!(server.is_running());
    binary::type_line(&mut hands, "q");
    server.wait_until_refused();
    assert!(server.is_running(), "the download goes on");
    drop(reader);
    assert_eq!(server.ends_within(AT_ONCE).code(), Some(0), "{}", server.stderr());
}

/// The first `q` drains, the second ends at once.
fn a_second_q_ends_at_once(kind: EngineKind) {
    let folder = folder();
    let (mut hands, input) = binary::terminal();
    let mut server = Server::start_reading(input, kind, folder.path(), &["--grace", LONG]);
    let stuck = begin_download(&server);
    binary::type_line(&mut hands, "q");
    server.wait_until_refused();
    assert!(server.is_running(), "the grace is long");
    binary::type_line(&mut hands, "q");
    let ended = server.ends_within(AT_ONCE);
    assert!(ended.code().is_some_and(|code| code != 0), "{ended}");
    drop(stuck);
}

/// `q` on a pipe, or the end of the pipe, has no effect.
fn q_on_a_pipe_does_nothing(kind: EngineKind) {
    let folder = folder();
    let mut server = Server::start_reading(Stdio::piped(), kind, folder.path(), &[]);
    let mut input = server.take_stdin();
    input.write_all(b"q\n").unwrap();
    drop(input);
    // A terminal's `q` ends an idle server in a fraction of this.
    let ended = reached_within(Duration::from_millis(700), || !server.is_running());
    assert!(!ended, "{}", server.stderr());
    assert_eq!(server.visit().get("/small.txt").unwrap().body, b"small\n");
}

/// The reader of standard output and standard error has stopped reading. Requests are answered all the
/// same, and the first signal ends the server.
fn unread_logs_delay_no_request(kind: EngineKind) {
    let folder = folder();
    let mut command = binary::command();
    command.arg("serve").arg("--site").arg(format!("/={}", folder.path().display()));
    command.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--access-log", "-"]);
    command.args(["--accounts", "false"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut greeting = BufReader::new(child.stdout.take().expect("a pipe"));
    let at = loop {
        let mut line = String::new();
        assert!(greeting.read_line(&mut line).unwrap() > 0, "it says where it listens");
        if let Some(at) = line.trim().strip_prefix("http://") {
            break at.parse().expect("IP:PORT");
        }
    };
    let mut visitor = Visitor::connect(at).unwrap();
    // Far more lines than a pipe holds.
    for _ in 0..3_000 {
        assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = reached_within(AT_ONCE, || child.try_wait().unwrap().is_some());
    child.kill().ok();
    assert!(ended, "the server waits for whoever reads its log");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

on_each_engine!(forks:
    sigterm_drains,
    sigint_drains,
    a_second_signal_ends_at_once,
    an_idle_server_ends_without_waiting,
    the_end_of_the_grace_ends_it,
    q_on_a_terminal_ends_it,
    a_second_q_ends_at_once,
    unread_logs_delay_no_request,
    q_on_a_pipe_does_nothing,
);
