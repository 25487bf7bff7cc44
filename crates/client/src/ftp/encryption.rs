//! The client's side of TLS in a session (RFC 4217).
//!
//! The handshakes are in `plimsoll_tls`. Invariant: each data connection resumes the session of its control
//! connection, by which the server knows that both come from one client, unless the connector resumes none.

use plimsoll_io::{Either, Io, Stream, select};
use plimsoll_tls::{Connector, Handshake, HandshakeError};
use plimsoll_wire::ftp::command::Verb;

use super::error::Error;
use super::limits::HANDSHAKES_NOTED_MAX;
use super::session::Session;

/// How sessions are encrypted.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The trusted certificates.
    pub connector: Connector,
    /// The server's name, which its certificate must have.
    pub name: String,
    /// The start of TLS.
    pub start: TlsStart,
}

/// The start of TLS in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsStart {
    /// By AUTH TLS, behind the greeting (port 21).
    Explicit,
    /// Before the greeting (port 990).
    Implicit,
}

impl Encryption {
    /// Returns the encryption of one session.
    pub(super) fn of_session(&self) -> Encryption {
        // The tickets of other sessions prove nothing in this one.
        Encryption { connector: self.connector.clone().with_own_sessions(), ..self.clone() }
    }

    /// Performs the handshake.
    pub(super) async fn connect(&self, io: &Io, stream: &mut Stream) -> Result<Handshake, HandshakeError> {
        self.connector.handshake(io, stream, &self.name).await
    }
}

impl Session {
    /// Returns the handshakes of the control connection and of data connections since the last call, the
    /// first of them if they are many.
    pub fn take_handshakes(&mut self) -> Vec<Handshake> {
        std::mem::take(&mut self.handshakes)
    }

    /// Records a handshake.
    fn note(&mut self, handshake: Handshake) {
        if self.handshakes.len() < HANDSHAKES_NOTED_MAX {
            self.handshakes.push(handshake);
        }
    }

    /// Starts TLS by AUTH.
    pub(super) async fn start_tls(&mut self, encryption: &Encryption) -> Result<(), Error> {
        self.ask(Verb::Auth, b"TLS").await?;
        let handshake = self.control.encrypt(&self.io, encryption).await?;
        self.note(handshake);
        Ok(())
    }

    /// Has data connections encrypted.
    pub(super) async fn protect_data(&mut self) -> Result<(), Error> {
        if self.encryption.is_some() {
            self.ask(Verb::Pbsz, b"0").await?;
            self.ask(Verb::Prot, b"P").await?;
        }
        Ok(())
    }

    /// Performs the handshake on a data connection whose transfer has started. Returns whether the server
    /// has confirmed completion meanwhile.
    pub(super) async fn encrypt_data(&mut self, data: &mut Stream) -> Result<bool, Error> {
        let Session { io, control, deadline, encryption, .. } = self;
        let Some(encryption) = encryption else { return Ok(false) };
        let mut is_done = false;
        let refusal = control.transfer_refusal(Some(&mut is_done));
        // Boxed: the memory is freed with the handshake.
        let encrypting = Box::pin(encryption.connect(io, data));
        match select(encrypting, refusal).await {
            Either::Left(Ok(handshake)) => {
                self.note(handshake);
                Ok(is_done)
            }
            Either::Left(Err(error)) => Err(control.late_refusal(deadline, Error::Encryption(error)).await),
            Either::Right(refusal) => Err(refusal),
        }
    }
}
