//! A socket to a database, with a deadline for every wait, for the databases whose protocol is spoken here.
//!
//! A directory's calls run where the engine lets them block. It knows no database's protocol. Invariant: no
//! wait for the peer outlasts the deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::deadline::Deadline;
use super::endpoint::Endpoint;

/// Returns the time left, which is more than zero.
fn left(by: Deadline) -> io::Result<Duration> {
    let left = by.left();
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "it gave no answer in time")
}

/// Converts the error of a socket whose timeout has expired.
fn timeout_error(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

/// An open socket, and the deadline of the present call.
pub(in crate::directory) struct Socket {
    stream: Stream,
    by: Deadline,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects. The host name is resolved by the C library, with a timeout of its own.
    pub(in crate::directory) fn open(place: &Endpoint, by: Deadline) -> io::Result<Socket> {
        let stream = match place {
            Endpoint::Tcp(host, port) => Stream::Tcp(open_tcp(host, *port, by)?),
            Endpoint::Unix(path) => Stream::Unix(open_unix(path)?),
        };
        Ok(Socket { stream, by })
    }

    /// Sets the deadline from now on.
    pub(in crate::directory) fn set_deadline(&mut self, by: Deadline) {
        self.by = by;
    }

    /// Returns whether no bytes are left to receive. Bytes after a response mean that the server closes
    /// the connection.
    pub(in crate::directory) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(self.stream.as_fd(), &mut [0_u8; 1], flags);
        matches!(seen, Err(rustix::io::Errno::AGAIN))
    }

    /// Sends all of `bytes`.
    pub(in crate::directory) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.send(bytes, left(self.by)?) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(timeout_error(error)),
            }
        }
        Ok(())
    }

    /// Receives at least one byte into `block`. Returns the count.
    pub(in crate::directory) fn receive(&mut self, block: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.receive(block, left(self.by)?) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
                Ok(received) => return Ok(received),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(timeout_error(error)),
            }
        }
    }
}

fn open_tcp(host: &str, port: u16, by: Deadline) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(by)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Never waits: if the server no longer accepts and its backlog is full, the connection is refused.
fn open_unix(path: &std::path::Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

impl Stream {
    fn send(&mut self, bytes: &[u8], time: Duration) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(time)).and_then(|()| stream.write(bytes)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(time)).and_then(|()| stream.write(bytes)),
        }
    }

    fn receive(&mut self, block: &mut [u8], time: Duration) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(block)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(block)),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
