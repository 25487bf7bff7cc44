//! The FTP client in the simulator, against a server whose lines are written by hand.
//! A failing seed is printed; run it again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cut;
mod downloads;
mod sessions;
mod times;
mod uploads;

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_client::ftp::{Command, Error, Session, Times};
use plimsoll_client::{NextSegment, Source};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Address, Io, Listener, Segment, Stream, Want, join};
use plimsoll_wire::ftp::command::Verb;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a client against a scripted server, until both have ended.
fn run(
    (seed, faults): (u64, Faults),
    server: impl AsyncFnOnce(Server) + 'static,
    client: impl AsyncFnOnce(Client) + 'static,
) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("client"), sim.host("server"));
    let at = Address::Ip((far.ip(), 21).into());
    let listener = far.io().listen(&at).unwrap();
    let (io, server) = (near.io(), {
        let (io, ip) = (far.io(), far.ip());
        async move { server(Server { listener, io, ip }).await }
    });
    sim.run(&near, async move {
        join(client(Client { io, at }), server).await;
    });
    assert_eq!((near.leased_bytes(), sim.connections_open()), (0, 0), "seed {seed}: something is left");
    assert!(sim.panics().is_empty());
}

/// Returns a seed and no faults: nothing is random.
fn calm() -> (u64, Faults) {
    (0, Faults::none())
}

/// A client before it connects.
struct Client {
    io: Io,
    at: Address,
}

impl Client {
    async fn connect(&self) -> Result<Session, Error> {
        Session::connect(&self.io, &self.at, Times::default()).await
    }

    /// Returns a session that is logged in.
    async fn log_in(&self) -> Result<Session, Error> {
        let mut session = self.connect().await?;
        session.log_in("alice", "secret").await?;
        Ok(session)
    }
}

/// A server that a test scripts.
struct Server {
    listener: Listener,
    io: Io,
    ip: IpAddr,
}

impl Server {
    /// Accepts a control connection, without a greeting.
    async fn accept(&mut self) -> Control {
        let stream = self.listener.accept().await.unwrap();
        Control { stream, received: Vec::new(), io: self.io.clone(), ip: self.ip }
    }

    /// Accepts a control connection and a log-in.
    async fn logged_in(&mut self) -> Control {
        let mut control = self.accept().await;
        control.send_line("220 ready");
        control.answer("USER alice", "331 go on").await;
        control.answer("PASS secret", "230 welcome").await;
        control.answer("TYPE I", "200 as they are").await;
        control
    }
}

/// The server's end of a control connection.
struct Control {
    stream: Stream,
    received: Vec<u8>,
    io: Io,
    ip: IpAddr,
}

impl Control {
    /// Receives the next command, as a whole line.
    async fn line(&mut self) -> String {
        let at = loop {
            match self.received.windows(2).position(|end| end == b"\r\n") {
                Some(at) => break at,
                None => {
                    let lease = self.stream.rx.recv(Want::Head).await.unwrap().expect("more from the client");
                    self.received.extend_from_slice(&lease);
                }
            }
        };
        let line = self.received.drain(..at + 2).take(at).collect();
        String::from_utf8(line).unwrap()
    }

    /// Expects the command `line`.
    #[track_caller]
    fn expect_line(&mut self, line: &'static str) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move { assert_eq!(self.line().await, line, "{at}") }
    }

    fn send_line(&mut self, answer: &str) {
        self.stream.tx.push(Segment::Owned(format!("{answer}\r\n").into_bytes()));
    }

    /// Expects a command and answers it with a line.
    async fn answer(&mut self, line: &'static str, answer: &str) {
        self.expect_line(line).await;
        self.send_line(answer);
    }

    /// Answers EPSV, and listens on the port of that answer.
    async fn passive(&mut self) -> Listener {
        let (listener, port) = self.listen();
        self.answer("EPSV", &format!("229 Entering Extended Passive Mode (|||{port}|)")).await;
        listener
    }

    fn listen(&self) -> (Listener, u16) {
        let listener = self.io.listen(&Address::Ip((self.ip, 0).into())).unwrap();
        let Address::Ip(at) = *listener.address() else { panic!("it is TCP") };
        (listener, at.port())
    }

    /// Expects the client to end the connection cleanly, without further bytes.
    async fn ended(mut self) {
        assert_eq!(String::from_utf8_lossy(&self.received), "");
        let end = self.stream.rx.recv(Want::Head).await;
        assert!(matches!(end, Ok(None)), "not an end: {end:?}");
    }

    /// Expects QUIT, and the end after it.
    async fn quit(mut self) {
        self.answer("QUIT", "221 goodbye").await;
        self.ended().await;
    }
}

/// Sends bytes over a data connection, and a clean end, which the client answers with its own.
async fn give(listener: &mut Listener, bytes: &[u8]) {
    let mut data = listener.accept().await.unwrap();
    data.tx.push(Segment::Owned(bytes.to_vec()));
    data.finish().await.unwrap();
}

/// Receives all bytes of a data connection, until a clean end.
async fn take(listener: &mut Listener) -> io::Result<Vec<u8>> {
    let mut data = listener.accept().await?;
    let mut all = Vec::new();
    while let Some(lease) = data.rx.recv(Want::Body).await? {
        all.extend_from_slice(&lease);
    }
    data.tx.finish();
    Ok(all)
}

/// Downloads a file and returns its bytes, if it is complete.
async fn fetch(session: &mut Session, path: &str, offset: u64) -> Result<Vec<u8>, Error> {
    let mut download = session.retrieve(path.as_bytes(), offset).await?;
    let mut all = Vec::new();
    while let Some(lease) = download.recv().await? {
        all.extend_from_slice(&lease);
    }
    assert_eq!(download.bytes(), all.len() as u64);
    Ok(all)
}

/// A source of these pieces, followed by an error if there is one.
struct Pieces(Vec<Vec<u8>>, Option<io::ErrorKind>);

impl Pieces {
    fn of(pieces: &[&[u8]]) -> Pieces {
        Pieces(pieces.iter().rev().map(|piece| piece.to_vec()).collect(), None)
    }
}

impl Source for Pieces {
    fn next(&mut self) -> NextSegment<'_> {
        let piece = match (self.0.pop(), self.1) {
            (Some(piece), _) => Ok(Some(Segment::Owned(piece))),
            (None, None) => Ok(None),
            (None, Some(kind)) => Err(kind.into()),
        };
        Box::pin(std::future::ready(piece))
    }
}

/// Returns whether `error` is the refusal `code` of `verb`.
fn is_refused(error: &Error, verb: Verb, refusal: u16) -> bool {
    matches!(error, Error::Refused { command: Command::Verb(asked), code, .. }
        if (*asked, *code) == (verb, refusal))
}
