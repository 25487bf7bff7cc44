//! A client on a blocking socket, for tests that count or measure: plain threads drive it.
//!
//! It is not [`crate::Client`], which runs on an engine inside the test. It must distinguish an end before
//! an answer, which a server may choose, from an end within an answer, which is an error.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

use super::PATIENCE;

/// The small receive buffer. A default buffer takes megabytes of an answer before the server has to wait.
const NARROW_BYTES: usize = 16 * 1024;

/// One connection.
pub struct Visitor {
    pub stream: TcpStream,
    held: Vec<u8>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the server announces that it closes the connection.
    pub closes: bool,
}

/// How a connection ended instead of an answer.
#[derive(Debug)]
pub enum Broken {
    /// A clean end before the answer's first byte.
    Ended,
    /// An error before the answer's first byte.
    Refused(io::Error),
    /// An end in the middle of an answer.
    Within(String),
}

impl Reply {
    /// Returns a field of the head.
    pub fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Visitor {
    /// Connects.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn connect(at: SocketAddr) -> io::Result<Visitor> {
        TcpStream::connect_timeout(&at, PATIENCE).and_then(Visitor::new)
    }

    /// Connects with a small receive buffer, so that the server soon has to wait if the test does not read.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn connect_narrowly(at: SocketAddr) -> io::Result<Visitor> {
        Visitor::new(connect_from(Ipv4Addr::LOCALHOST, at, Some(NARROW_BYTES))?)
    }

    /// Wraps a connected stream.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn new(stream: TcpStream) -> io::Result<Visitor> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Visitor { stream, held: Vec::new() })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn send(&mut self, bytes: &str) -> io::Result<()> {
        self.stream.write_all(bytes.as_bytes())
    }

    /// Sends a GET on the keep-alive connection.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn get(&mut self, target: &str) -> Result<Reply, Broken> {
        self.get_with(target, "")
    }

    /// Sends a GET with more field lines, each ended by CRLF.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn get_with(&mut self, target: &str, fields: &str) -> Result<Reply, Broken> {
        // A server that has closed the connection may have sent an answer before that: the read shows it.
        let sent = self.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        match self.reply() {
            Err(Broken::Ended) if sent.is_err() => Err(Broken::Ended),
            progress => progress,
        }
    }

    /// Sends any request with a body on the keep-alive connection; `fields` each end in CRLF.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn ask(&mut self, method: &str, target: &str, fields: &str, body: &[u8]) -> Result<Reply, Broken> {
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n"
        );
        // In one write. The server may refuse early without reading all, so a write error is ignored if
        // there is an answer.
        let sent = self.stream.write_all(&[head.as_bytes(), body].concat());
        match self.reply() {
            Err(Broken::Ended) if sent.is_err() => Err(Broken::Ended),
            progress => progress,
        }
    }

    /// Receives the next answer.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn reply(&mut self) -> Result<Reply, Broken> {
        let (mut reply, length) = self.head()?;
        while self.held.len() < length {
            let progress = format!("{} of {length} bytes", self.held.len());
            match self.receive() {
                Ok(0) => return Err(Broken::Within(progress)),
                Err(error) => return Err(Broken::Within(format!("{progress}: {error}"))),
                Ok(_) => {}
            }
        }
        let rest = self.held.split_off(length);
        reply.body = std::mem::replace(&mut self.held, rest);
        Ok(reply)
    }

    /// Receives the head of the next answer, and returns it with the length of its body.
    ///
    /// # Errors
    /// Returns how the connection ended instead of an answer.
    pub fn head(&mut self) -> Result<(Reply, usize), Broken> {
        loop {
            if let Some((len, reply, length)) = parse(&self.held) {
                self.held.drain(..len);
                return Ok((reply, length));
            }
            let begun = !self.held.is_empty();
            match self.receive() {
                Ok(0) if begun => return Err(Broken::Within("a head".to_owned())),
                Err(error) if begun => return Err(Broken::Within(format!("a head: {error}"))),
                Ok(0) => return Err(Broken::Ended),
                Err(error) => return Err(Broken::Refused(error)),
                Ok(_) => {}
            }
        }
    }

    /// Returns buffered bytes of a body, or receives some; an empty vector at the end.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn some_body(&mut self) -> io::Result<Vec<u8>> {
        if self.held.is_empty() {
            self.receive()?;
        }
        Ok(std::mem::take(&mut self.held))
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut block = [0; 64 * 1024];
        // A receive with a time limit is not resumed by the kernel after the process was stopped (signal(7)).
        let bytes = loop {
            match self.stream.read(&mut block) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                received => break received?,
            }
        };
        self.held.extend_from_slice(&block[..bytes]);
        Ok(bytes)
    }
}

fn parse(bytes: &[u8]) -> Option<(usize, Reply, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(len) = head.parse(bytes).expect("an answer's head") else { return None };
    let field = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    let length = field("Content-Length").map_or(0, |length| length.parse().expect("a number"));
    let closes = field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let status = head.code.expect("a status");
    let head = String::from_utf8_lossy(&bytes[..len]).into_owned();
    Some((len, Reply { status, head, body: Vec::new(), closes }, length))
}

/// Connects from a loopback address, with a receive buffer of `buffer` bytes if given.
///
/// # Errors
/// Returns the operating system's error.
pub fn connect_from(source: Ipv4Addr, at: SocketAddr, buffer: Option<usize>) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if let Some(bytes) = buffer {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    connect(&socket, &at)?;
    Ok(TcpStream::from(socket))
}

/// Encodes bytes in base64 (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let word = (0..3).fold(0, |word, at| word << 8 | usize::from(*three.get(at).unwrap_or(&0)));
        (0..4).map(move |at| (word >> (18 - 6 * at)) & 63).enumerate().map({
            let letters = three.len() + 1;
            move |(at, six)| if at < letters { char::from(LETTERS[six]) } else { '=' }
        })
    };
    bytes.chunks(3).flat_map(group).collect()
}
