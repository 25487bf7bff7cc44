//! The system calls of the engine `uring` in steady state, from a trace.
//!
//! It is not a measurement. A keep-alive connection must be served by io_uring_enter alone, and large files
//! by sendfile as well. All other calls must belong to the lookup of a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{EngineKind, Server, Visitor, among_others, has_a_ring, until};
use plimsoll_tests::skips::{Need, skip};
use plimsoll_tests::tree::noise;
use rustix::process::{Pid, Signal, kill_process};

const REQUESTS: usize = 100;
/// The calls that look up and read a small file.
const LOOKUP: [&str; 8] = ["openat2", "fcntl", "statx", "fstat", "newfstatat", "preadv2", "pread64", "close"];

/// A trace of one thread, written to a file.
struct Trace<'a> {
    strace: Child,
    log: &'a Path,
}

impl Trace<'_> {
    /// Starts to trace `thread`; `None` if this machine does not permit it.
    fn of(thread: u32, log: &Path) -> Option<Trace<'_>> {
        let mut strace = Command::new("strace");
        strace.args(["--attach", &thread.to_string(), "--output"]).arg(log);
        let strace = strace.stderr(Stdio::null()).spawn().expect("tests/install brings it");
        let mut trace = Trace { strace, log };
        let mut is_attached = None;
        until("strace is attached or has ended", || {
            let ended = trace.strace.try_wait().expect("a child").is_some();
            is_attached = if ended { Some(false) } else { is_traced(thread).then_some(true) };
            is_attached.is_some()
        });
        is_attached.filter(|attached| *attached).map(|_| trace)
    }

    /// Ends the trace, and returns the number of each call; strace writes the whole log before it ends.
    fn end(mut self) -> BTreeMap<String, usize> {
        kill_process(Pid::from_child(&self.strace), Signal::INT).expect("strace is there");
        self.strace.wait().expect("a child");
        let log = std::fs::read_to_string(self.log).expect("a trace");
        let mut calls = BTreeMap::new();
        for line in log.lines() {
            let name = line.split('(').next().unwrap_or_default();
            if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
        calls
    }
}

fn is_traced(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).expect("the server is there");
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
}

/// Returns the calls that serve `target` on a keep-alive connection, after a warm-up.
fn calls_for(server: &Server, target: &str, bytes: usize) -> Option<BTreeMap<String, usize>> {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut visitor = server.visit();
    let ask = |visitor: &mut Visitor| {
        let reply = visitor.get(target).expect("an answer");
        assert!(reply.status == 200 && reply.body.len() >= bytes, "{}", reply.head);
    };
    (0..REQUESTS).for_each(|_| ask(&mut visitor));
    // With one event loop, that is the first thread.
    let trace = Trace::of(server.pid(), log.path())?;
    (0..REQUESTS).for_each(|_| ask(&mut visitor));
    let calls = trace.end();
    println!("{target}: {calls:?}");
    assert!(calls.get("io_uring_enter").is_some_and(|count| *count >= REQUESTS), "{calls:?}");
    Some(calls)
}

fn assert_only(calls: &BTreeMap<String, usize>, allowed: &[&str]) {
    let other: Vec<_> = calls.keys().filter(|name| !allowed.contains(&name.as_str())).collect();
    assert!(other.is_empty(), "{other:?} beside {allowed:?}");
}

#[test]
fn a_kept_connection_is_served_by_the_ring_alone_and_a_large_file_by_sendfile_too() {
    if !has_a_ring() {
        return;
    }
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.bin", noise(31, 1024));
    tree.file("large.bin", noise(37, 100 << 10)).plant(folder.path());
    // With this time, no file is looked up again, however slow the machine is.
    let args = ["--threads", "1", "--accounts", "false", "--hot-time", "1d"];
    let server = Server::start(EngineKind::Uring, folder.path(), &args);
    let Some(calls) = calls_for(&server, "/healthz", 0) else {
        skip(Need::Tracing, "strace may not attach to a process here");
        return;
    };
    assert_only(&calls, &["io_uring_enter"]);
    let small = calls_for(&server, "/small.bin", 1024).expect("it was allowed before");
    assert_only(&small, &["io_uring_enter"]);
    let large = calls_for(&server, "/large.bin", 100 << 10).expect("it was allowed before");
    assert_only(&large, &[&["io_uring_enter", "sendfile"], &LOOKUP[..]].concat());
}
