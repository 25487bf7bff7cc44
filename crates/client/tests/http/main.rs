//! The HTTP client in the simulator: against a server of bytes written by hand, and against the real one.
//! A failing seed is printed; run it again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod bodies;
mod cut;
mod early;
mod keep_alive;
mod places;
mod real;
mod times;
mod tls;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::http::{Client, Error, NextSegment, Request, Response, Source};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Io, Listener, Segment, Stream, Want, join};

const SECOND: Duration = Duration::from_secs(1);
const MAX: usize = 1 << 20;

/// Runs a client against a scripted server, until both have ended.
fn run(
    (seed, faults): (u64, Faults),
    server: impl AsyncFnOnce(Server) + 'static,
    client: impl AsyncFnOnce(Client, Io) + 'static,
) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("client"), sim.host("server"));
    let listener = far.io().listen(&":80".parse().unwrap()).unwrap();
    let (io, server_io) = (near.io(), far.io());
    sim.run(&near, async move {
        let to = Client::new(&io, "http://127.0.0.1/base".parse().unwrap());
        join(client(to, io), server(Server { listener, io: server_io })).await;
    });
    assert_eq!((near.leased_bytes(), sim.connections_open()), (0, 0), "seed {seed}: something is left");
    assert!(sim.panics().is_empty());
}

/// Returns a seed and no faults: nothing is random.
fn calm() -> (u64, Faults) {
    (0, Faults::none())
}

/// A server that a test scripts.
struct Server {
    listener: Listener,
    io: Io,
}

impl Server {
    async fn accept(&mut self) -> Peer {
        Peer { stream: self.listener.accept().await.unwrap(), received: Vec::new() }
    }
}

/// One connection of it.
struct Peer {
    stream: Stream,
    received: Vec<u8>,
}

impl Peer {
    /// Reads until the received bytes end in `end`, and returns them.
    async fn read_to(&mut self, end: &str) -> String {
        let at = loop {
            let found = self.received.windows(end.len()).position(|part| part == end.as_bytes());
            match found {
                Some(at) => break at + end.len(),
                None => {
                    let lease = self.stream.rx.recv(Want::Head).await.unwrap().expect("more from the client");
                    self.received.extend_from_slice(&lease);
                }
            }
        };
        String::from_utf8(self.received.drain(..at).collect()).unwrap()
    }

    /// Reads the head of a request.
    async fn head(&mut self) -> String {
        self.read_to("\r\n\r\n").await
    }

    fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.tx.push(Segment::Owned(bytes.as_ref().to_vec()));
    }

    /// Sends the last bytes, and waits until the client has ended, too, in any way.
    async fn end(mut self, bytes: impl AsRef<[u8]>) {
        self.send_bytes(bytes);
        let _ = self.stream.finish().await;
    }

    /// Expects the client to end the connection without further bytes.
    async fn ended(mut self) {
        assert_eq!(String::from_utf8_lossy(&self.received), "");
        if let Ok(Some(lease)) = self.stream.rx.recv(Want::Head).await {
            panic!("not asked for: {:?}", String::from_utf8_lossy(&lease));
        }
    }
}

/// Answers one request with `bytes` and waits for the client's end.
async fn answer_once(mut server: Server, bytes: Vec<u8>) {
    let mut peer = server.accept().await;
    peer.head().await;
    peer.end(bytes).await;
}

fn get(target: &str) -> Request<'_> {
    Request::new("GET", target)
}

/// Returns the status and text of an answer.
async fn status_and_body(response: Result<Response<'_>, Error>) -> Result<(u16, String), Error> {
    let mut response = response?;
    let status = response.status().code();
    Ok((status, response.text(MAX).await?))
}

/// A source of pieces, which counts how many were taken.
struct Pieces {
    left: Vec<Vec<u8>>,
    taken: Rc<Cell<usize>>,
    /// The end after the pieces: clean, or an error.
    last: Option<io::ErrorKind>,
}

impl Pieces {
    fn of(pieces: &[&[u8]]) -> Pieces {
        let left = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
        Pieces { left, taken: Rc::default(), last: None }
    }
}

impl Source for Pieces {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(async move {
            let piece = self.left.pop();
            self.taken.set(self.taken.get() + usize::from(piece.is_some()));
            match (piece, self.last) {
                (Some(piece), _) => Ok(Some(Segment::Owned(piece))),
                (None, None) => Ok(None),
                (None, Some(kind)) => Err(kind.into()),
            }
        })
    }
}

/// A source that has no end.
struct Endless;

impl Source for Endless {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(async { Ok(Some(Segment::Owned(vec![b'x'; 10_000]))) })
    }
}
