//! The client's end of data connections.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Address, Deadline, Io, Lease, Listener, Segment, Stream, Transport, Want};
use plimsoll_tls::Connector;

use crate::tls::SERVER_NAME;

/// Longer than any time that a behaviour gives the server.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The data connection mode: the side that connects, and the command for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// PASV.
    Passive,
    /// EPSV.
    Extended,
    /// PORT.
    Active,
    /// EPRT.
    ExtendedActive,
}

impl DataMode {
    pub const ALL: [DataMode; 4] =
        [DataMode::Passive, DataMode::Extended, DataMode::Active, DataMode::ExtendedActive];
}

/// The client's end of a data connection.
pub struct Data {
    io: Io,
    end: End,
    deadline: Deadline,
    /// The means to encrypt the connection, before its first byte.
    tls: Option<Connector>,
    /// The connection under the encryption.
    below: Option<Rc<dyn Transport>>,
}

/// An open connection, or the listener to which the server will connect.
enum End {
    Open(Stream),
    Waiting(Listener),
}

impl Data {
    /// Connects to the address on which the server listens.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub async fn to(io: &Io, at: SocketAddr) -> io::Result<Data> {
        let end = End::Open(io.connect(&Address::Ip(at)).await?);
        Ok(Data::at(io, end))
    }

    /// Prepares to accept the server's connection at `listener`.
    pub fn waiting(io: &Io, listener: Listener) -> Data {
        Data::at(io, End::Waiting(listener))
    }

    fn at(io: &Io, end: End) -> Data {
        Data { io: io.clone(), end, deadline: io.deadline(), tls: None, below: None }
    }

    /// Has the connection encrypted before its first byte.
    #[must_use]
    pub fn over(self, tls: Option<&Connector>) -> Data {
        Data { tls: tls.cloned(), ..self }
    }

    /// Encrypts the connection now.
    ///
    /// # Errors
    /// Returns the error of the handshake.
    pub async fn encrypt(&mut self) -> io::Result<()> {
        self.stream().await.map(drop)
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.below.is_some()
    }

    /// Ends the connection under the encryption, as a machine between the peers can.
    pub fn cut(&self) {
        self.below.as_ref().expect("it is encrypted").finish();
    }

    /// Returns the connection, encrypted if it is to be. In active mode, waits for the server's.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub async fn stream(&mut self) -> io::Result<&mut Stream> {
        if let End::Waiting(listener) = &mut self.end {
            self.deadline.after(PATIENCE);
            let accepted = self.deadline.within(listener.accept()).await;
            self.end = End::Open(accepted.expect("the server connects in time")?);
        }
        match &mut self.end {
            End::Open(stream) => {
                if let Some(connector) = self.tls.take() {
                    self.below = Some(stream.transport());
                    let connected = connector.connect(&self.io, stream, SERVER_NAME).await;
                    connected.map_err(io::Error::other)?;
                }
                Ok(stream)
            }
            End::Waiting(_) => unreachable!("it was accepted"),
        }
    }

    /// Sends bytes, and waits until they have left.
    ///
    /// # Errors
    /// Returns the error that broke the connection.
    pub async fn send(&mut self, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        self.stream().await?.tx.push(Segment::Owned(bytes.into()));
        self.deadline.after(PATIENCE);
        let End::Open(stream) = &mut self.end else { return Ok(()) };
        self.deadline.within(stream.tx.drain(0)).await.expect("the server takes what is sent")
    }

    /// Receives once; `None` at the end.
    ///
    /// # Errors
    /// Returns the error that broke the connection.
    pub async fn receive(&mut self) -> io::Result<Option<Lease>> {
        self.stream().await?;
        self.deadline.after(PATIENCE);
        let End::Open(stream) = &mut self.end else { return Ok(None) };
        self.deadline.within(stream.rx.recv(Want::Body)).await.expect("the server sends something in time")
    }

    /// Receives all bytes until a clean end.
    ///
    /// # Errors
    /// Returns the error that broke the connection before its end.
    pub async fn all(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(lease) = self.receive().await? {
            all.extend_from_slice(&lease);
        }
        Ok(all)
    }

    /// Ends the connection cleanly, and waits until the server has ended it too.
    ///
    /// # Errors
    /// Returns the error that broke the connection before its end.
    pub async fn finish(mut self) -> io::Result<()> {
        self.stream().await?;
        self.deadline.after(PATIENCE);
        let End::Open(stream) = &mut self.end else { return Ok(()) };
        self.deadline.within(stream.finish()).await.expect("the server ends it in time")
    }

    /// Ends the sending side, without waiting.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub async fn end(&mut self) -> io::Result<()> {
        self.stream().await?.tx.finish();
        Ok(())
    }

    /// Aborts the connection: the server receives an error, not an end of file.
    pub fn abort(self) {}
}
