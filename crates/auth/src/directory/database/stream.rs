//! The socket below a driver: TCP or Unix.
//!
//! It knows no database's protocol. Invariants: no attempt to connect outlasts its deadline. A server cannot
//! make the process store more than [`DATABASE_REPLY_BYTES_MAX`] for one call.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use plimsoll_tls::BlockingConnector;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::deadline::Deadline;
use super::endpoint::Endpoint;
use super::guest::Late;
use crate::limits::DATABASE_REPLY_BYTES_MAX;

/// The bytes that a server may still send in the present call. Its clones are the same budget.
#[derive(Clone, Debug)]
pub(super) struct ReplyBudget(Arc<AtomicUsize>);

impl Default for ReplyBudget {
    fn default() -> ReplyBudget {
        ReplyBudget(Arc::new(AtomicUsize::new(DATABASE_REPLY_BYTES_MAX)))
    }
}

impl ReplyBudget {
    /// Begins a call.
    pub(super) fn renew(&self) {
        self.0.store(DATABASE_REPLY_BYTES_MAX, Ordering::Relaxed);
    }

    /// Returns the bytes left.
    #[cfg(feature = "redis")]
    pub(super) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        // One thread at a time uses a connection.
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        let left = left.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "it sends more than any request asks for")
        })?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn spend_all_but(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

/// An open connection.
#[derive(Debug)]
pub(in crate::directory) struct Stream {
    socket: Socket,
    budget: ReplyBudget,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to the first of the host's addresses that accepts. The time until the deadline is divided
    /// among them, so that one without a server leaves time for the next.
    ///
    /// # Errors
    /// The last attempt's error.
    pub(super) async fn open(endpoint: &Endpoint, by: Deadline, budget: ReplyBudget) -> io::Result<Stream> {
        let socket = match endpoint {
            Endpoint::Tcp(host, port) => Socket::Tcp(open_tcp(host, *port, by).await?),
            // It does not wait: if the server no longer accepts and its backlog is full, this is an error.
            Endpoint::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
        };
        Ok(Stream { socket, budget })
    }

    /// Performs the handshake with the server of this name or address. The caller has received nothing
    /// beyond the agreement to do so: such bytes may be an attacker's.
    ///
    /// # Errors
    /// The handshake failed, or the server is not the one that the URL demands.
    pub(in crate::directory) async fn encrypt(
        self,
        connector: &BlockingConnector,
        host: &str,
    ) -> io::Result<TlsStream<Stream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the server's name is invalid"))?;
        let encrypted = TlsConnector::from(connector.config()).connect(name, self).await;
        let encrypted = encrypted.map_err(BlockingConnector::readable)?;
        connector.note(encrypted.get_ref().1);
        Ok(encrypted)
    }
}

async fn open_tcp(host: &str, port: u16, by: Deadline) -> io::Result<TcpStream> {
    // An IP address is not looked up.
    let addresses = tokio::net::lookup_host((host, port)).await?.collect::<Vec<_>>();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for (address, left) in addresses.iter().zip((0..=addresses.len()).rev()) {
        let share = by.share_of(u32::try_from(left).unwrap_or(u32::MAX)).instant().into();
        match tokio::time::timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error,
            Err(_) => failed = Late.into(),
        }
    }
    Err(failed)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match &mut self.socket {
            Socket::Tcp(stream) => ready!(Pin::new(stream).poll_read(cx, into))?,
            Socket::Unix(stream) => ready!(Pin::new(stream).poll_read(cx, into))?,
        }
        Poll::Ready(self.budget.spend(into.filled().len() - before))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has no buffer of its own.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    use super::*;
    use crate::directory::database::guest::Guest;

    fn open(endpoint: &Endpoint) -> io::Result<Stream> {
        Guest::new(&Arc::default(), Deadline::after(Duration::from_secs(3))).unwrap().connect(endpoint)
    }

    #[test]
    fn a_name_leads_to_the_address_that_accepts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // In /etc/hosts, where the name may have the address ::1 as well.
        open(&Endpoint::Tcp("localhost".to_owned(), port)).unwrap();
        let refused = open(&Endpoint::Tcp("127.0.0.1".to_owned(), 1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_unix_socket_whose_backlog_is_full_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let server = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&server, 0).unwrap();
        let endpoint = Endpoint::Unix(path);
        let mut waiting = Vec::new();
        let error = loop {
            match open(&endpoint) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
