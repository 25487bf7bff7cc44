//! A socket to a database, with a deadline for every wait, for the databases whose protocol is spoken here.
//!
//! A directory's calls run where the engine lets them block. It knows no database's protocol. Invariant: no
//! wait for the peer outlasts the deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plimsoll_tls::{BlockingConnector, BlockingTls};
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
    /// It has the same deadline.
    Tls(Box<BlockingTls<Socket>>),
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

    /// Encrypts the connection to the server of this name. The caller has received nothing beyond the
    /// agreement to do so: such bytes may be an attacker's.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code, reason = "no other client of our own has TLS"))]
    pub(in crate::directory) fn encrypt(
        self,
        connector: &BlockingConnector,
        name: &str,
    ) -> io::Result<Socket> {
        let by = self.by;
        let stream = Stream::Tls(Box::new(connector.connect(self, name)?));
        Ok(Socket { stream, by })
    }

    /// Sets the deadline from now on.
    pub(in crate::directory) fn set_deadline(&mut self, by: Deadline) {
        self.by = by;
        if let Stream::Tls(tls) = &mut self.stream {
            tls.stream_mut().set_deadline(by);
        }
    }

    /// Returns whether no bytes are left to receive. Bytes after a response mean that the server closes
    /// the connection.
    pub(in crate::directory) fn is_quiet(&mut self) -> bool {
        if let Stream::Tls(tls) = &mut self.stream {
            return tls.is_drained() && tls.stream_mut().is_quiet();
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(self.stream.as_fd(), &mut [0_u8; 1], flags);
        matches!(seen, Err(rustix::io::Errno::AGAIN))
    }

    /// Sends all of `bytes`.
    pub(in crate::directory) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[self.write(bytes)?..];
        }
        self.flush()
    }

    /// Receives at least one byte into `block`. Returns the count.
    pub(in crate::directory) fn receive(&mut self, block: &mut [u8]) -> io::Result<usize> {
        match self.read(block)? {
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            received => Ok(received),
        }
    }

    /// Repeats a system call that a signal interrupts, until the deadline.
    fn repeat(
        &mut self,
        mut call: impl FnMut(&mut Stream, Duration) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match call(&mut self.stream, left(self.by)?) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done.map_err(timeout_error),
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.repeat(|stream, time| stream.receive(block, time))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.repeat(|stream, time| stream.send(bytes, time))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tls(tls) => tls.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
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
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn receive(&mut self, block: &mut [u8], time: Duration) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(block)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(block)),
            Stream::Tls(tls) => tls.read(block),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(tls) => tls.stream().stream.as_fd(),
        }
    }
}
