//! A connection of the model server: HTTP/1.1 with keep-alive.
//!
//! It is not a general HTTP server: it reads no request body. Invariant: a request has used all its demands
//! before its response is sent.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, Sender, channel};

use plimsoll_wire::http::head::{Framing, HeadLimits, parse_head};

use super::Centres;
use super::station::{Job, Sleeper};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nmodel\n";
const REFUSAL: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves a connection until its end. An error of the connection ends it.
pub(super) fn serve(stream: &TcpStream, centres: &Centres) {
    let _ = stream.set_nodelay(true);
    let _ = serve_requests(stream, &mut User::new(centres));
}

fn serve_requests(mut stream: &TcpStream, user: &mut User<'_>) -> io::Result<()> {
    let limits = HeadLimits::default();
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let head = match parse_head(&received, &limits) {
            Ok(Some(head)) if head.framing() == Framing::None => head,
            Ok(None) => {
                let count = stream.read(&mut chunk)?;
                if count == 0 {
                    return Ok(());
                }
                received.extend_from_slice(chunk.get(..count).unwrap_or_default());
                continue;
            }
            Ok(Some(_)) | Err(_) => return stream.write_all(REFUSAL),
        };
        received.drain(..head.len());
        user.use_all();
        stream.write_all(ANSWER)?;
        if !head.keeps_alive() {
            return Ok(());
        }
    }
}

/// The use of the centres by one connection.
struct User<'a> {
    centres: &'a Centres,
    served: Sender<()>,
    done: Receiver<()>,
    sleeper: Sleeper,
}

impl User<'_> {
    fn new(centres: &Centres) -> User<'_> {
        let (served, done) = channel();
        User { centres, served, done, sleeper: Sleeper::default() }
    }

    /// Uses each centre once, one after the other.
    fn use_all(&mut self) {
        for queue in [&self.centres.processor, &self.centres.lock].into_iter().flatten() {
            // The threads of the centres live as long as the process.
            if queue.send(Job { served: self.served.clone() }).is_ok() {
                let _ = self.done.recv();
            }
        }
        if let Some(delay) = &self.centres.delay {
            let time = delay.lock().unwrap_or_else(PoisonError::into_inner).next();
            self.sleeper.sleep(time);
        }
    }
}
