//! The engine `process` in the real binary: connection processes, a fork master, the program's process, and
//! the effect of each one's end.
//!
//! It does not repeat the behaviours that hold under every engine. Processes and threads must be counted
//! from `/proc`. No test may rely on the speed of a process.

mod accounts;
mod bounds;
mod counting;
mod ending;
mod logging;
mod refused;
mod stopping;

use std::path::Path;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{Broken, EngineKind, Server, Visitor, process, until};
use plimsoll_tests::tree::noise;

/// More than socket buffers hold: a client that does not read it keeps its process.
const LARGE_BYTES: usize = 24 << 20;

/// Starts a server with a site, no accounts, and more settings.
fn start(folder: &Path, more: &[&str]) -> Server {
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(3, LARGE_BYTES)).plant(folder);
    Server::start(EngineKind::Process, folder, &[&["--accounts", "false"], more].concat())
}

/// Returns the fork master, the only child process of the program.
fn master(server: &Server) -> u32 {
    let made = process::children(server.pid());
    assert_eq!(made.len(), 1, "the program makes its master, and nothing else: {made:?}");
    made[0]
}

/// Returns the connection processes.
fn children(server: &Server) -> Vec<u32> {
    process::children(master(server))
}

/// Waits until there are `count` connection processes, and returns them.
fn children_are(server: &Server, count: usize) -> Vec<u32> {
    until("there are so many processes", || children(server).len() == count);
    children(server)
}

/// Returns a connection that was served, and its process.
fn served(server: &Server) -> (Visitor, u32) {
    let before = children(server);
    let mut visitor = server.visit();
    assert_small(&mut visitor);
    let new: Vec<u32> = children(server).into_iter().filter(|child| !before.contains(child)).collect();
    assert_eq!(new.len(), 1, "a process for the connection: {new:?}, and before {before:?}");
    (visitor, new[0])
}

fn assert_small(visitor: &mut Visitor) {
    assert_eq!(visitor.get("/small.txt").expect("an answer").body, b"small\n");
}

/// Starts a download that its client does not continue to read.
fn begun(server: &Server) -> (Visitor, usize) {
    let mut reader = server.visit_narrowly();
    reader.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (reply, length) = reader.head().unwrap();
    assert_eq!((reply.status, length), (200, LARGE_BYTES));
    (reader, length)
}

/// Reads a download in progress to its end.
fn assert_whole((mut reader, length): (Visitor, usize)) {
    let mut body = Vec::new();
    while body.len() < length {
        let more = reader.some_body().expect("more");
        assert!(!more.is_empty(), "cut off after {} bytes", body.len());
        body.extend_from_slice(&more);
    }
    assert!(body == noise(3, LARGE_BYTES), "every byte");
}

/// Asserts that a connection was cut off, by an end or by an error.
fn assert_cut_off(visitor: &mut Visitor) {
    let reply = visitor.get("/small.txt");
    assert!(matches!(reply, Err(Broken::Ended | Broken::Refused(_))), "{reply:?}");
}

fn load(server: &Server, name: &str) -> u64 {
    server.status()["load"][name].as_u64().expect("a count")
}
