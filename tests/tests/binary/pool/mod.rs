//! The engine `pool` in the real binary: a fixed number of workers, and the treatment of connections that
//! come when all workers are busy.
//!
//! It does not repeat the behaviours, which hold under this engine as under any other. No test may rely on
//! the speed of a worker. Where nothing should happen, the test waits for a while and checks that.

mod channels;
mod ftp;
mod idle;
mod refusing;
mod stopping;
mod stuck;
mod waiting;
mod workers;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, Member, PATIENCE, Server, Visitor};
use plimsoll_tests::tree::noise;

/// More than socket buffers hold: a client that does not read it holds its worker.
const LARGE_BYTES: usize = 32 << 20;
const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
/// Longer than a test takes: a client in the middle of a body keeps its worker for that time.
const HELD: [&str; 2] = ["--limits-receive-time", "1h"];
/// Long enough to be served, if there were a worker.
const NOT_SERVED_TIME: Duration = Duration::from_millis(400);

/// Starts a server with `workers` workers, a site, and more settings.
fn start(folder: &Path, workers: usize, more: &[&str]) -> Server {
    Tree::new().file("small.txt", "small\n").file("large.bin", noise(3, LARGE_BYTES)).plant(folder);
    let workers = workers.to_string();
    Server::start(EngineKind::Pool, folder, &[&["--threads", &workers], more].concat())
}

/// Returns a client that keeps a worker indefinitely: it has logged in and is in the middle of a body. A
/// client without a login gives its worker up for others.
fn holding(server: &Server) -> Visitor {
    static MEMBERS: AtomicUsize = AtomicUsize::new(0);
    let number = MEMBERS.fetch_add(1, Ordering::Relaxed);
    let member = Member::new(server, &format!("holder-{number}"));
    let fields = format!("{}Content-Length: 2\r\nExpect: 100-continue\r\n", member.field());
    let mut visitor = member.visitor;
    visitor.send(&format!("PUT /files/held HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).unwrap();
    // After the 100, a worker certainly waits for the body and does nothing else.
    assert_eq!(visitor.reply().expect("a worker is free").status, 100);
    visitor
}

/// Completes the client's request.
fn let_go(visitor: &mut Visitor) {
    visitor.send("{}").unwrap();
    let reply = visitor.reply().expect("an answer");
    assert_eq!(reply.status, 201, "{}", reply.head);
}

fn assert_small(reply: plimsoll_tests::binary::Reply) {
    assert_eq!((reply.status, reply.body), (200, b"small\n".to_vec()), "{}", reply.head);
}

/// Asserts that nothing is received for a while, and that the connection stays open.
fn assert_waits(stream: &TcpStream) {
    stream.set_read_timeout(Some(NOT_SERVED_TIME)).unwrap();
    let waited = stream.peek(&mut [0]);
    let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(waited.as_ref().is_err_and(timed_out), "{waited:?} though all workers are taken");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

/// Asserts that the server ends the connection, cleanly and without another byte.
fn assert_ends(visitor: &mut Visitor) {
    assert_eq!(visitor.some_body().expect("a clean end"), b"");
}

/// An FTP control connection, line by line.
struct Session(BufReader<TcpStream>);

impl Session {
    fn connect(server: &Server) -> Session {
        let stream = TcpStream::connect(server.ftp_at()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Session(BufReader::new(stream))
    }

    /// Connects, and reads the greeting: the control connection has a worker.
    fn begun(server: &Server) -> Session {
        let mut session = Session::connect(server);
        session.expect("220 ");
        session
    }

    /// Returns a control connection that keeps its worker, because its client has logged in.
    fn logged_in(server: &Server) -> Session {
        drop(Member::new(server, "alice"));
        let mut session = Session::begun(server);
        session.command("USER alice", "331 ");
        session.command(&format!("PASS {PASSWORD}"), "230 ");
        session
    }

    /// Returns the next line, or an empty string at the end.
    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line, or the end");
        line
    }

    #[track_caller]
    fn expect(&mut self, code: &str) -> String {
        let line = self.reply();
        assert!(line.starts_with(code), "{line:?} instead of {code}");
        line
    }

    #[track_caller]
    fn command(&mut self, command: &str, code: &str) -> String {
        write!(self.0.get_mut(), "{command}\r\n").unwrap();
        self.expect(code)
    }
}
