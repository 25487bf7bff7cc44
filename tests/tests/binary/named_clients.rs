//! Clients behind a trusted proxy, which names them: shares and evictions are the clients', not the proxy's.
//!
//! The proxy is the test itself: one address that writes a header of the PROXY protocol, or the field
//! X-Forwarded-For. Hostile clients hold what they get, and do not reconnect.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{
    EngineKind, PATIENCE, Reply, Server, Visitor, alone, among_others, has_a_ring, until,
};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

use crate::slots::{OPEN_FILES, SERVED_TIME, assert_served};

/// More than socket buffers hold.
const LARGE_BYTES: usize = 16 << 20;
const NARROW_BYTES: usize = 4096;

/// How the proxy names its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Naming {
    Header,
    Field,
}

impl Naming {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Naming::Header => &["--proxy-protocol=http,ftp", "--trusted-proxy", "127.0.0.1"],
            Naming::Field => &["--trusted-proxy", "127.0.0.1"],
        }
    }

    /// Returns the start of a connection for a client.
    fn start(self, client: Ipv4Addr) -> String {
        match self {
            Naming::Header => format!("PROXY TCP4 {client} 127.0.0.1 1000 80\r\n"),
            Naming::Field => String::new(),
        }
    }

    /// Returns the field of a request of a client.
    fn field(self, client: Ipv4Addr) -> String {
        match self {
            Naming::Header => String::new(),
            Naming::Field => format!("X-Forwarded-For: {client}\r\n"),
        }
    }

    /// Connects for a client.
    fn connect(self, client: Ipv4Addr, at: SocketAddr, window: Option<usize>) -> Visitor {
        let stream = connect_from(Ipv4Addr::LOCALHOST, at, window).expect("the server accepts connections");
        let mut visitor = Visitor::new(stream).expect("a socket");
        visitor.send(&self.start(client)).expect("it reads");
        visitor
    }

    /// Begins a download that the client does not read.
    fn stuck(self, client: Ipv4Addr, at: SocketAddr) -> Visitor {
        let mut visitor = self.connect(client, at, Some(NARROW_BYTES));
        let field = self.field(client);
        // The server may have refused the client already.
        let _ = visitor.send(&format!("GET /large.bin HTTP/1.1\r\nHost: slow\r\n{field}\r\n"));
        visitor
    }
}

/// Returns one of many clients.
fn client(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number + 256).expect("a few hundred").to_be_bytes();
    Ipv4Addr::new(192, 0, high, low)
}

fn start(kind: EngineKind, folder: &Path, naming: Naming, more: &[&str]) -> Server {
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(5, LARGE_BYTES)).plant(folder);
    // A download that is not read holds a worker.
    let threads = if kind == EngineKind::Pool { "32" } else { "2" };
    let args = [&["--threads", threads][..], naming.flags(), more].concat();
    Server::start_with_few_open_files(kind, folder, &args, OPEN_FILES)
}

fn is_small(reply: &Reply) -> bool {
    reply.status == 200 && reply.body == b"small\n"
}

fn is_over_share(reply: &Reply) -> bool {
    let detail = "Your address has too many connections open.";
    reply.status == 503 && reply.json()["detail"] == detail && reply.field("Retry-After").is_some()
}

const SHARE: [&str; 2] = ["--connections-per-address", "3"];

fn a_client_that_a_header_names_is_refused_over_its_share(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let ftp = ["--ftp", "127.0.0.1:0"];
    let server = start(kind, folder.path(), Naming::Header, &[&SHARE[..], &ftp].concat());
    let get = |number| {
        let mut visitor = Naming::Header.connect(client(number), server.at(), None);
        let reply = visitor.get("/small.txt").expect("an answer");
        (visitor, reply)
    };
    let mut inside: Vec<_> = (0..3).map(|_| get(1)).collect();
    assert!(inside.iter().all(|(_, reply)| is_small(reply)));
    assert!(is_over_share(&get(1).1));
    let mut control = connect_from(Ipv4Addr::LOCALHOST, server.ftp_at(), None).unwrap();
    control.write_all(Naming::Header.start(client(1)).as_bytes()).unwrap();
    assert!(words(control).starts_with("421 "));
    assert!(is_small(&get(2).1), "another client of the proxy");
    drop(inside.pop());
    until("the slot is free", || is_small(&get(1).1));
}

/// Returns all that a server sends.
fn words(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut words = String::new();
    stream.read_to_string(&mut words).unwrap();
    words
}

fn a_client_that_a_field_names_is_refused_over_its_share_and_its_proxy_is_not(kind: EngineKind) {
    let (folder, naming) = (tempfile::tempdir().unwrap(), Naming::Field);
    let server = start(kind, folder.path(), naming, &SHARE);
    let get = |visitor: &mut Visitor, number| {
        visitor.get_with("/small.txt", &naming.field(client(number))).expect("an answer")
    };
    // Connections that the proxy keeps for its next requests count for none of its clients.
    let mut kept: Vec<_> = (0..6).map(|_| naming.connect(client(1), server.at(), None)).collect();
    assert!(kept.iter_mut().all(|visitor| is_small(&get(visitor, 1))));
    let mut stuck: Vec<_> = (0..3).map(|_| naming.stuck(client(1), server.at())).collect();
    stuck.iter_mut().for_each(|visitor| drop(visitor.head().expect("an answer")));
    let refused = get(&mut kept[0], 1);
    assert!(is_over_share(&refused) && !refused.closes, "{}", refused.head);
    assert!(is_small(&get(&mut kept[0], 2)), "the next request is another client's");
    drop(stuck.pop());
    until("the slot is free", || is_small(&get(&mut kept[1], 1)));
}

/// Hostile clients hold all that they can, from so many addresses.
fn a_new_client_is_served_beside_slow_ones(kind: EngineKind, naming: Naming, addresses: usize) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), naming, &[]);
    let held: Vec<_> = (0..300).map(|number| naming.stuck(client(number % addresses), server.at())).collect();
    if kind == EngineKind::Process {
        // Each connection before it has to become a process first.
        until("the accept queue is empty", || is_served(&server, naming, client(400)));
    }
    let times =
        [400, 401, 402].map(|number| assert_served("a file", || is_served(&server, naming, client(number))));
    println!("{kind}, {naming:?}, {addresses} addresses with {} downloads: {times:?}", held.len());
}

fn is_served(server: &Server, naming: Naming, client: Ipv4Addr) -> bool {
    let stream = TcpStream::connect_timeout(&server.at(), SERVED_TIME).ok();
    let Some(mut visitor) = stream.and_then(|stream| Visitor::new(stream).ok()) else { return false };
    let time = Some(SERVED_TIME);
    visitor.stream.set_read_timeout(time).is_ok()
        && visitor.send(&naming.start(client)).is_ok()
        && visitor.get_with("/small.txt", &naming.field(client)).is_ok_and(|reply| is_small(&reply))
}

fn new_clients_of_a_proxy_are_served_beside_its_slow_ones(kind: EngineKind) {
    // Nothing is evicted while each slot has an address of its own. The engine process has 28 slots here.
    let many = if kind == EngineKind::Process { 20 } else { 30 };
    for naming in [Naming::Header, Naming::Field] {
        for addresses in [1, 2, 3, many] {
            a_new_client_is_served_beside_slow_ones(kind, naming, addresses);
        }
    }
}

on_each_engine!(
    forks: a_client_that_a_header_names_is_refused_over_its_share,
    a_client_that_a_field_names_is_refused_over_its_share_and_its_proxy_is_not,
);

mod pool {
    use super::*;

    #[test]
    fn a_client_that_a_proxy_names_is_refused_over_its_share() {
        let _permit = among_others();
        a_client_that_a_header_names_is_refused_over_its_share(EngineKind::Pool);
        a_client_that_a_field_names_is_refused_over_its_share_and_its_proxy_is_not(EngineKind::Pool);
    }
}

mod beside_slow_ones_alone {
    use super::*;

    fn attacked(kind: EngineKind) {
        let _permit = alone();
        new_clients_of_a_proxy_are_served_beside_its_slow_ones(kind);
    }

    #[test]
    fn under_epoll() {
        attacked(EngineKind::Epoll);
    }

    #[test]
    fn under_thread() {
        attacked(EngineKind::Thread);
    }

    #[test]
    fn under_process() {
        attacked(EngineKind::Process);
    }

    #[test]
    fn under_uring() {
        if has_a_ring() {
            attacked(EngineKind::Uring);
        }
    }
}
