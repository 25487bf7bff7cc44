//! A socket to a database, every wait of which ends: the one file of this crate that has a socket and a
//! clock.
//!
//! A directory's calls run where the engine lets them block, as SQLite's do; what SQLite asks of the system
//! inside its own code, is here. It knows no database's language. What must hold: nothing here waits beyond
//! the deadline, whoever has stopped at the other end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Where a database listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::directory) enum Place {
    /// At a port of a host.
    Tcp(String, u16),
    /// At a Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Tcp(host, port) => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// When a wait ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::directory) struct Deadline(Instant);

impl Deadline {
    /// So much later than now.
    pub(in crate::directory) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// This one, or so much later than now if that is sooner.
    pub(in crate::directory) fn within(self, time: Duration) -> Deadline {
        Deadline(self.0.min(Instant::now() + time))
    }

    pub(in crate::directory) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }

    /// What is left of it, which is more than nothing.
    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(left) }
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "it gave no answer in time")
}

/// What a socket says when the time that it was given is over.
fn told(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

/// An open socket, and by when what is being done with it must be over.
pub(in crate::directory) struct Socket {
    stream: Stream,
    by: Deadline,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects. The name of a host is looked up by the system, which has a time of its own for that.
    pub(in crate::directory) fn open(place: &Place, by: Deadline) -> io::Result<Socket> {
        let stream = match place {
            Place::Tcp(host, port) => Stream::Tcp(open_tcp(host, *port, by)?),
            Place::Unix(path) => Stream::Unix(open_unix(path)?),
        };
        Ok(Socket { stream, by })
    }

    /// From now on, by when it must be over.
    pub(in crate::directory) fn set_deadline(&mut self, by: Deadline) {
        self.by = by;
    }

    /// Whether nothing has come since the last answer. What does come then is a farewell.
    pub(in crate::directory) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(self.stream.as_fd(), &mut [0_u8; 1], flags);
        matches!(seen, Err(rustix::io::Errno::AGAIN))
    }

    /// Sends all of `bytes`.
    pub(in crate::directory) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.send(bytes, self.by.left()?) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(())
    }

    /// Receives at least a byte into `block`: how many.
    pub(in crate::directory) fn receive(&mut self, block: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.receive(block, self.by.left()?) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
                Ok(received) => return Ok(received),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(told(error)),
            }
        }
    }
}

fn open_tcp(host: &str, port: u16, by: Deadline) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, by.left()?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Waits for nothing: a socket whose server takes no connections any more is refused once its queue is full.
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
