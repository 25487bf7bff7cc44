//! System calls from traces: those of the engine `uring` in steady state, and the bytes that a proxy
//! receives.
//!
//! It is not a measurement. A keep-alive connection must be served by io_uring_enter alone, and large files
//! by sendfile as well. All other calls must belong to the lookup of a file. A proxy must not receive a body
//! that its origin passes as a descriptor.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{EngineKind, Server, Visitor, among_others, has_a_ring, until};
use plimsoll_tests::skips::{Need, skip};
use plimsoll_tests::tree::noise;
use rustix::process::{Pid, Signal, kill_process};

use super::reverse_proxy::{LARGE_BYTES, over_a_channel, site};

const REQUESTS: usize = 100;
/// The calls that look up and read a small file.
const LOOKUP: [&str; 8] = ["openat2", "fcntl", "statx", "fstat", "newfstatat", "preadv2", "pread64", "close"];

/// The calls by which a process gets bytes from a descriptor, without the ring of the engine `uring`.
const RECEIVING: [&str; 8] =
    ["read", "readv", "pread64", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg"];
/// The calls that move bytes from one descriptor to another within the kernel.
const MOVING: [&str; 3] = ["sendfile", "splice", "copy_file_range"];
/// Bytes that a proxy may receive for a file whose descriptor is passed: a request, and what wakes it.
const RECEIVED_BYTES_MAX: u64 = 4096;

/// A trace of a process or one of its threads, written to a file.
struct Trace<'a> {
    strace: Child,
    log: &'a Path,
}

impl Trace<'_> {
    /// Starts to trace `thread`; `None` if this machine does not permit it.
    fn of(thread: u32, log: &Path) -> Option<Trace<'_>> {
        Trace::start(thread, log, &[], || is_traced(thread))
    }

    /// Starts to trace all threads of a process.
    fn of_process<'a>(process: u32, log: &'a Path, options: &[&str]) -> Option<Trace<'a>> {
        let tasks = || std::fs::read_dir(format!("/proc/{process}/task")).expect("the process is there");
        let threads = || tasks().filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        Trace::start(process, log, &[&["--follow-forks"], options].concat(), || threads().all(is_traced))
    }

    fn start<'a>(
        attach: u32,
        log: &'a Path,
        options: &[&str],
        is_complete: impl Fn() -> bool,
    ) -> Option<Trace<'a>> {
        let mut strace = Command::new("strace");
        strace.args(["--attach", &attach.to_string(), "--output"]).arg(log).args(options);
        let strace = strace.stderr(Stdio::null()).spawn().expect("tests/install brings it");
        let mut trace = Trace { strace, log };
        let mut is_attached = None;
        until("strace is attached or has ended", || {
            let ended = trace.strace.try_wait().expect("a child").is_some();
            is_attached = if ended { Some(false) } else { is_complete().then_some(true) };
            is_attached.is_some()
        });
        is_attached.filter(|attached| *attached).map(|_| trace)
    }

    /// Ends the trace, and returns its log, which strace writes before it ends.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.strace), Signal::INT).expect("strace is there");
        self.strace.wait().expect("a child");
        std::fs::read_to_string(self.log).expect("a trace")
    }

    /// Ends the trace, and returns the number of each call.
    fn end_and_count(self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for line in self.end().lines() {
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

/// Returns the sum of the results of calls with these names. A line of the log has a thread, a call and its
/// result. The line of a call that another thread interrupted begins with `<...`.
fn bytes_of(log: &str, names: &[&str]) -> u64 {
    let is_named = |line: &&str| {
        let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
        let call = call.strip_prefix("<... ").unwrap_or(call);
        names.contains(&call.split(['(', ' ']).next().unwrap_or_default())
    };
    // An error, or a call that has not returned, has no number of bytes.
    let bytes = |line: &str| line.rsplit_once(" = ")?.1.split(' ').next()?.parse::<u64>().ok();
    log.lines().filter(is_named).filter_map(bytes).sum()
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
    let calls = trace.end_and_count();
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
    let _permit = among_others();
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

#[test]
fn a_proxy_receives_no_byte_of_a_body_whose_file_its_origin_passes() {
    let _permit = among_others();
    for kind in [EngineKind::Epoll, EngineKind::Thread] {
        let (folder, work) = (site(), tempfile::tempdir().expect("a folder"));
        let (origin, proxy) = over_a_channel(kind, folder.path(), &work.path().join("channel"), "shm");
        let traced = format!("trace={}", [&RECEIVING[..], &MOVING[..]].concat().join(","));
        let log = work.path().join("log");
        let Some(trace) = Trace::of_process(proxy.pid(), &log, &["-e", &traced]) else {
            skip(Need::Tracing, "strace may not attach to a process here");
            return;
        };
        let reply = proxy.visit().get("/large.bin").expect("an answer");
        assert!(reply.status == 200 && reply.body == noise(3, LARGE_BYTES), "{kind}: {}", reply.head);
        let log = trace.end();
        let (received, moved) = (bytes_of(&log, &RECEIVING), bytes_of(&log, &MOVING));
        assert!((1..RECEIVED_BYTES_MAX).contains(&received), "{kind}: {received} bytes: {log}");
        assert!(moved >= LARGE_BYTES as u64, "{kind}: {moved} bytes: {log}");
        // Bytes in shared memory are received without a call.
        let copied = origin.status()["channel"]["bytes_copied"].as_u64().expect("a number");
        assert!(copied < RECEIVED_BYTES_MAX, "{kind}: {copied} bytes");
    }
}

#[test]
fn the_results_of_interrupted_calls_are_counted() {
    let log = "7 read(3, \"a = 9\", 9) = 5\n7 recvmsg(4, <unfinished ...>\n8 write(1, \"x\", 1) = 1\n\
               8 recvfrom(5, 0x1, 9, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)\n\
               7 <... recvmsg resumed>{msg_namelen=0}, 0) = 40\n7 sendfile(1, 2, [0] => [7], 7) = 7\n\
               8 +++ exited with 0 +++\n";
    assert_eq!((bytes_of(log, &RECEIVING), bytes_of(log, &MOVING)), (45, 7));
}
