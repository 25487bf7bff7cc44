//! Clients that take responses slowly, or send requests slowly, in front of `plimsoll proxy`: they keep no
//! connection to an origin, so that new clients are served.
//!
//! The hostile clients are many more than the slots of the origin. They do not reconnect.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{EngineKind, Server, Visitor, alone, has_a_ring, is_long, process, until};
use plimsoll_tests::tree::noise;

use crate::reverse_proxy::proxy;
use crate::slots::{SERVED_TIME, assert_served};

/// More than the buffers of all connections hold.
const LARGE_BYTES: usize = 5_000_000;
const NARROW_BYTES: usize = 4096;
/// The origin has some 160 slots with these: a few more than the connections to it that may be in use.
const OPEN_FILES: u32 = 1024;
/// Several times the slots of the origin.
const HOSTILE: usize = 900;
/// The same where each of them is a process, with a spool of its own.
const HOSTILE_PROCESSES: usize = 200;

/// How the proxy reaches its origin.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp,
    Shm,
    ShmCopy,
}

/// The behaviour of the hostile clients.
#[derive(Clone, Copy, Debug)]
enum Misbehaviour {
    /// They request a large file, and take next to nothing of it.
    SlowRead,
    /// A third of them does; the others send a head, or a body, and never end it.
    Mix,
}

impl Misbehaviour {
    /// Returns what a client sends.
    fn request(self, number: usize) -> &'static str {
        match (self, number % 3) {
            (Misbehaviour::SlowRead, _) | (Misbehaviour::Mix, 0) => {
                "GET /large.bin HTTP/1.1\r\nHost: slow\r\nCache-Control: no-store\r\n\r\n"
            }
            (Misbehaviour::Mix, 1) => "GET /large.bin HTTP/1.1\r\nHost: slow\r\nX-Slow: ",
            (Misbehaviour::Mix, _) => {
                "POST /small.txt HTTP/1.1\r\nHost: slow\r\nContent-Length: 60000\r\n\r\n{"
            }
        }
    }
}

/// Returns a hostile client's address, which is not one of the honest clients'.
fn hostile(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number + 256).expect("a few hundred").to_be_bytes();
    Ipv4Addr::new(127, 0, high, low)
}

fn hold(at: SocketAddr, count: usize, (manner, addresses): (Misbehaviour, usize)) -> Vec<TcpStream> {
    let connect = |number: usize| {
        let stream = connect_from(hostile(number % addresses), at, Some(NARROW_BYTES)).ok()?;
        let mut visitor = Visitor::new(stream).ok()?;
        visitor.send(manner.request(number / addresses)).ok()?;
        Some(visitor.stream)
    };
    (0..count).filter_map(connect).collect()
}

fn gets_a_file(at: SocketAddr) -> bool {
    let stream = TcpStream::connect_timeout(&at, SERVED_TIME).ok();
    let Some(mut visitor) = stream.and_then(|stream| Visitor::new(stream).ok()) else { return false };
    visitor.stream.set_read_timeout(Some(SERVED_TIME)).is_ok()
        && visitor.get("/small.txt").is_ok_and(|reply| reply.status == 200 && reply.body == b"small\n")
}

fn start(kind: EngineKind, folder: &Path, transport: Transport, cache: Option<&Path>) -> (Server, Server) {
    let (site, socket) = (folder.join("site"), folder.join("channel"));
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(5, LARGE_BYTES)).plant(&site);
    let socket_text = socket.to_str().unwrap();
    let args = ["--trusted-proxy", "127.0.0.1", "--channel", socket_text];
    let origin = Server::start_with_few_open_files(kind, &site, &args, OPEN_FILES);
    let (url, channel) = match transport {
        Transport::Tcp => (format!("http://{}", origin.at()), "tcp"),
        Transport::Shm => (format!("unix:{socket_text}"), "shm"),
        Transport::ShmCopy => (format!("unix:{socket_text}"), "shm-copy"),
    };
    let cache = cache.map(|cache| ["--cache", cache.to_str().unwrap()]);
    let args =
        [&["--origin", &url, "--channel", channel][..], cache.as_ref().map_or(&[], |cache| &cache[..])];
    (origin, proxy(kind, &args.concat()))
}

fn new_clients_are_served(
    kind: EngineKind,
    transport: Transport,
    is_cached: bool,
    (manner, addresses): (Misbehaviour, usize),
) {
    process::raise_open_files();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let (_origin, proxy) = start(kind, folder.path(), transport, is_cached.then_some(&*cache));
    assert_served("a file before", || gets_a_file(proxy.at()));
    let count = if kind == EngineKind::Process { HOSTILE_PROCESSES } else { HOSTILE };
    let held = hold(proxy.at(), count, (manner, addresses));
    if kind == EngineKind::Process {
        // Each connection before it has to become a process first.
        until("the accept queue is empty", || gets_a_file(proxy.at()));
    }
    let times = [0; 4].map(|_| assert_served("a file", || gets_a_file(proxy.at())));
    println!(
        "{kind}, {transport:?}, cache {is_cached}, {manner:?} of {addresses}: {times:?}, {} held",
        held.len()
    );
}

/// All crowds in a long run; on each commit, those that a proxy failed with once.
fn attacked(kind: EngineKind) {
    let _permit = alone();
    let ways = [
        (Transport::Tcp, false),
        (Transport::Shm, false),
        (Transport::Tcp, true),
        (Transport::Shm, true),
        (Transport::ShmCopy, false),
    ];
    let crowds =
        [3, 30, 300].map(|addresses| [(Misbehaviour::SlowRead, addresses), (Misbehaviour::Mix, addresses)]);
    for (transport, is_cached) in ways {
        for crowd in crowds.as_flattened() {
            let is_short = matches!(
                (transport, is_cached, crowd),
                (Transport::Tcp, false, _) | (_, true, (Misbehaviour::SlowRead, 3))
            );
            if is_long() || is_short && (kind == EngineKind::Epoll || crowd.1 == 3) {
                // The processes share no memory for a cache.
                new_clients_are_served(kind, transport, is_cached && kind != EngineKind::Process, *crowd);
            }
        }
    }
}

mod slow_clients_alone {
    use super::*;

    #[test]
    fn under_epoll() {
        attacked(EngineKind::Epoll);
    }

    #[test]
    fn under_thread() {
        attacked(EngineKind::Thread);
    }

    #[test]
    fn under_uring() {
        if has_a_ring() {
            attacked(EngineKind::Uring);
        }
    }

    #[test]
    fn under_process() {
        attacked(EngineKind::Process);
    }
}
