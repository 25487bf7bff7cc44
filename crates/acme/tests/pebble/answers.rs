//! A web server that answers validations. It ends with the tests.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_acme::Token;

/// A web server that answers validations from a state folder.
pub(crate) struct Answers {
    /// Its port.
    pub(crate) port: u16,
    /// Whether it answers something else.
    pub(crate) are_wrong: Arc<AtomicBool>,
}

impl Answers {
    /// Starts a server that answers from the folder `state`.
    pub(crate) fn serve(state: &Path) -> Answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (are_wrong, state) = (Arc::<AtomicBool>::default(), state.to_owned());
        let wrong = Arc::clone(&are_wrong);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that has gone is of no interest.
                let _ = answer(stream.unwrap(), &state, wrong.load(Ordering::Relaxed));
            }
        });
        Answers { port, are_wrong }
    }
}

fn answer(mut stream: TcpStream, state: &Path, is_wrong: bool) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let token = target.strip_prefix("/.well-known/acme-challenge/").and_then(Token::parse);
    let file = token.and_then(|token| fs::read(state.join("challenges").join(token.as_str())).ok());
    let body = if is_wrong { b"something else".to_vec() } else { file.unwrap_or_default() };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat())
}
