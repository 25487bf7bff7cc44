//! The engine `process` at the real binary: a process for each connection, a fork master, the program beside
//! it, and what becomes of each when another ends.
//!
//! It is not what holds under every engine. What must hold: processes and threads are counted where the
//! system tells of them; no test relies on how fast one of them is.

mod accounts;
mod bounds;
mod counting;
mod ending;
mod logging;
mod refused;
mod stopping;

use std::path::Path;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{Broken, Kind, Server, Visitor, process, until};
use plimsoll_tests::tree::noise;

/// More than sockets hold: who does not read it keeps its process.
const LARGE_BYTES: usize = 24 << 20;

/// A server with a site and nothing else, and more settings.
fn start(folder: &Path, more: &[&str]) -> Server {
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(3, LARGE_BYTES)).plant(folder);
    Server::start(Kind::Process, folder, &[&["--accounts", "false"], more].concat())
}

/// The one process that the program makes.
fn master(server: &Server) -> u32 {
    let made = process::children(server.pid());
    assert_eq!(made.len(), 1, "the program makes its master, and nothing else: {made:?}");
    made[0]
}

/// The processes of connections.
fn children(server: &Server) -> Vec<u32> {
    process::children(master(server))
}

/// Waits until there are so many processes of connections, and returns them.
fn children_are(server: &Server, count: usize) -> Vec<u32> {
    until("there are so many processes", || children(server).len() == count);
    children(server)
}

/// A visitor who has been served, and the process that did it.
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

/// A download that its reader does not go on with.
fn begun(server: &Server) -> (Visitor, usize) {
    let mut reader = server.visit_narrowly();
    reader.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (reply, length) = reader.head().unwrap();
    assert_eq!((reply.status, length), (200, LARGE_BYTES));
    (reader, length)
}

/// Reads what was begun to its end.
fn assert_whole((mut reader, length): (Visitor, usize)) {
    let mut body = Vec::new();
    while body.len() < length {
        let more = reader.some_body().expect("more");
        assert!(!more.is_empty(), "cut off after {} bytes", body.len());
        body.extend_from_slice(&more);
    }
    assert!(body == noise(3, LARGE_BYTES), "every byte");
}

/// Asserts that a connection was cut off, in whatever way.
fn assert_cut_off(visitor: &mut Visitor) {
    let heard = visitor.get("/small.txt");
    assert!(matches!(heard, Err(Broken::Ended | Broken::Refused(_))), "{heard:?}");
}

fn load(server: &Server, name: &str) -> u64 {
    server.status()["load"][name].as_u64().expect("a count")
}
