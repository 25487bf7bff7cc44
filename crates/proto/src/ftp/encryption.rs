//! The TLS of a session (RFC 4217): that of the control connection, and that of its data connections.
//!
//! The handshakes are in `plimsoll_tls`. Invariants: nothing that was received in clear is executed after
//! the start of TLS, and nothing is sent in clear again. A data connection of an encrypted session proves
//! that it comes from the session's client, as far as the settings require.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Current, Elapsed, Io, Stream, pacing};
use plimsoll_tls::{BoundSession, Direction, HandshakeError, Proof, ServerTls};

use super::control::Control;
use super::conversation::{Conversation, Ending};
use super::limits::Limits;
use super::reply::Reply;
use super::serve::Shared;
use super::state::DataMode;
use super::transfer::TransferError;
use crate::body_sender::drain;

/// The settings of TLS.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The certificates, of which each session gets those that are current at its handshake.
    pub server: Arc<Current<ServerTls>>,
    /// Whether a login and data connections in clear are refused.
    pub is_required: bool,
    /// The treatment of data connections that do not resume the session of their control connection.
    pub reuse: TlsReuse,
}

/// The data connections that must resume the TLS session of their control connection. All must come from
/// the client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsReuse {
    /// Those of clients that have resumed it before.
    #[default]
    Auto,
    /// All.
    Require,
    /// None.
    Off,
}

/// The TLS of a session whose control connection is encrypted.
pub(super) struct SecureSession {
    tls: BoundSession,
    /// Whether the client has sent PBSZ, which must precede PROT.
    pub(super) has_buffer_size: bool,
    /// Whether data connections are encrypted.
    pub(super) is_data_private: bool,
}

/// The reply to a client that must encrypt before it logs in.
pub(super) const AUTH_FIRST: Reply = Reply::new(
    530,
    "Logging in needs TLS here: say AUTH TLS first, or set \"explicit TLS\" in your program.",
);

/// The reply to a data connection that does not resume the session.
const NOT_RESUMED: Reply = Reply::new(
    522,
    "The data connection did not resume the TLS session of the control connection, so it may be another \
     client's. Use a program that resumes TLS sessions, or ask the operator to change ftp_tls_reuse.",
);

impl Conversation<'_> {
    /// Performs the server's handshake on the control connection, in the time for a command at most.
    async fn encrypt(&mut self) -> Result<(), Ending> {
        let time = self.command_time();
        let Some(tls) = &self.shared.settings.tls else { return Err(Ending::Abort) };
        let Control { stream, deadline, .. } = &mut self.control;
        deadline.after(time);
        let (server, io) = (tls.server.get(), &self.shared.io);
        let handshake = async |stream: &mut Stream| server.accept_first(io, stream).await;
        let accepted = deadline.within(self.shared.admission.perform(io, stream, handshake)).await;
        match accepted.unwrap_or(Err(HandshakeError::Late)) {
            Ok(tls) => {
                let (has_buffer_size, is_data_private) = (false, false);
                self.secure = Some(Box::new(SecureSession { tls, has_buffer_size, is_data_private }));
                Ok(())
            }
            Err(error) => {
                tracing::debug!(peer = %self.peer, %error, "a TLS handshake failed");
                if matches!(error, HandshakeError::OverShare) {
                    plimsoll_tls::refuse(io, stream).await;
                }
                Err(Ending::Abort)
            }
        }
    }

    /// Encrypts a session from its first byte on, in which data connections are encrypted, too.
    pub(super) async fn begin_encrypted(&mut self) -> Result<(), Ending> {
        self.encrypt().await?;
        if let Some(secure) = &mut self.secure {
            (secure.has_buffer_size, secure.is_data_private) = (true, true);
        }
        Ok(())
    }

    /// Encrypts a session behind the reply to AUTH. Ends a session that has sent more than AUTH in clear: an
    /// attacker could have inserted commands, which would be executed as the client's.
    pub(super) async fn start_tls(&mut self) -> Result<(), Ending> {
        if !self.control.is_empty() {
            let peer = &self.peer;
            tracing::warn!(%peer, "ended an FTP session that had sent plaintext behind AUTH TLS");
            return Err(self.end_session().await);
        }
        self.encrypt().await?;
        // The login in clear does not count.
        self.state.reset();
        Ok(())
    }

    /// Takes the mode of the next data connection, if the protection of data permits one.
    pub(super) fn take_data_mode(&mut self) -> Result<DataMode, Reply> {
        let data_mode = self.state.take_data_mode()?;
        let is_required = self.shared.settings.tls.as_ref().is_some_and(|tls| tls.is_required);
        match is_required && !self.secure.as_ref().is_some_and(|secure| secure.is_data_private) {
            true => Err(Reply::new(521, "Data connections must be encrypted here: say PBSZ 0 and PROT P.")),
            false => Ok(data_mode),
        }
    }
}

impl SecureSession {
    /// Performs the server's handshake on a data connection, in active mode, too. Returns false for a
    /// connection to be refused: it does not resume the session, and the settings require that.
    pub(super) async fn encrypt(
        &mut self,
        shared: &Shared,
        data: &mut Stream,
        direction: Direction,
    ) -> Result<bool, TransferError> {
        let io = &shared.io;
        let handshake = async |data: &mut Stream| self.tls.accept(io, data, direction).await;
        let proof = shared.admission.perform(io, data, handshake).await;
        let reuse = shared.settings.tls.as_ref().map(|tls| tls.reuse).unwrap_or_default();
        match (reuse, proof.map_err(TransferError::NotEncrypted)?) {
            (_, Proof::Given) | (TlsReuse::Off, _) | (TlsReuse::Auto, Proof::Missing) => Ok(true),
            (TlsReuse::Auto, Proof::Withheld) | (TlsReuse::Require, _) => {
                let peer = data.peer();
                tracing::warn!(%peer, "a data connection did not resume its TLS session; see ftp_tls_reuse");
                Ok(false)
            }
        }
    }
}

/// Ends a refused connection in a way in which the client reads the reply, and no error of the connection.
pub(super) async fn end_refused(io: &Io, limits: &Limits, data: &mut Stream, direction: Direction) {
    match direction {
        Direction::Download => {
            data.tx.finish();
            let _: io::Result<()> = drain(&mut data.tx, 0, &io.deadline(), limits.send_time).await;
        }
        // The client is sending.
        Direction::Upload => {
            let _: Result<io::Result<()>, Elapsed> =
                pacing::finish(data, &io.deadline(), limits.linger_time).await;
        }
    }
}

/// Returns the reply to a data connection that was not encrypted as it should be.
pub(super) fn reply_to(error: &TransferError) -> Reply {
    match error {
        TransferError::NotResumed => NOT_RESUMED,
        TransferError::NotEncrypted(HandshakeError::Late) => {
            Reply::new(425, "The TLS handshake of the data connection took too long.")
        }
        TransferError::NotEncrypted(HandshakeError::OverShare) => {
            Reply::new(425, "Your network has too many TLS handshakes at a time; try again.")
        }
        _ => {
            Reply::new(425, "The TLS handshake of the data connection failed; PROT P needs TLS 1.2 or later.")
        }
    }
}
