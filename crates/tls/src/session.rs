//! One TLS session, without its connection: encrypted bytes in, plaintext out, and back.
//!
//! It waits for nothing and sends nothing. The kernel could encrypt instead (kTLS), after the handshake and
//! by the secrets of this session. Invariants: memory for received bytes is that of a few records. After an
//! error there is no more plaintext.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use plimsoll_io::Lease;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, Error, HandshakeKind, ProtocolVersion, ServerConfig,
    ServerConnection,
};

use crate::challenges::ACME_PROTOCOL;
use crate::limits::{RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES};

/// A TLS session.
pub(crate) struct Session {
    connection: Connection,
    /// Bytes of plaintext to be taken.
    plain: usize,
    /// Whether the peer has ended the session.
    has_ended: bool,
    /// The weight of the signature of its handshake; 0 for a client, which computes none.
    signing_weight: u32,
}

/// The decisions of a session's handshake so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// `None` until it is decided.
    pub(crate) kind: Option<HandshakeKind>,
    pub(crate) is_tls13: bool,
}

impl Facts {
    /// Whether the session was resumed.
    pub(crate) fn is_resumed(self) -> bool {
        self.kind == Some(HandshakeKind::Resumed)
    }
}

impl Session {
    /// Begins a session as the server. `signing_weight` is the weight of its signature.
    pub(crate) fn server(config: Arc<ServerConfig>, signing_weight: u32) -> Result<Session, Error> {
        Ok(Session { signing_weight, ..Session::new(ServerConnection::new(config)?.into()) })
    }

    /// Begins a session as a client of the server with this name.
    pub(crate) fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Session, Error> {
        Ok(Session::new(ClientConnection::new(config, name)?.into()))
    }

    fn new(mut connection: Connection) -> Session {
        // What is written is taken at once, so the limit of rustls would only lose bytes.
        connection.set_buffer_limit(None);
        Session { connection, plain: 0, has_ended: false, signing_weight: 0 }
    }

    /// Returns the decisions of the handshake so far.
    pub(crate) fn facts(&self) -> Facts {
        let is_tls13 = self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        Facts { kind: self.connection.handshake_kind(), is_tls13 }
    }

    /// Returns the weight of the signature that the next messages of the peer may need; 0 for none.
    pub(crate) fn signing_weight(&self) -> u32 {
        self.signing_weight
    }

    /// Whether the messages that were received last have an answer within the handshake, which a server
    /// signs.
    pub(crate) fn has_answered(&self) -> bool {
        self.connection.is_handshaking() && self.connection.wants_write()
    }

    /// Whether the handshake is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether the peer is an ACME server that validates a name.
    pub(crate) fn is_challenge(&self) -> bool {
        self.connection.alpn_protocol() == Some(ACME_PROTOCOL)
    }

    /// Whether the peer has ended the session, and all plaintext was taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended && self.plain == 0
    }

    /// Whether plaintext can be taken.
    pub(crate) fn has_plain(&self) -> bool {
        self.plain > 0
    }

    /// Consumes received bytes, until there is plaintext to take. The caller [flushes](Session::flush) then,
    /// also after an error: the peer learns the reason by an alert.
    pub(crate) fn receive(&mut self, received: &mut Lease) -> Result<(), Error> {
        while !received.is_empty() && self.plain == 0 {
            let mut bytes: &[u8] = received;
            // There is room, because all plaintext was taken. An error must not look like the end of the
            // peer, behind which bytes are dropped.
            let read = self.connection.read_tls(&mut bytes);
            let read = read.map_err(|error| Error::General(error.to_string()))?;
            // Nothing is read behind the peer's end of the session.
            received.consume(if read == 0 { received.len() } else { read });
            let state = self.connection.process_new_packets()?;
            self.plain = state.plaintext_bytes_to_read();
            self.has_ended |= state.peer_has_closed();
        }
        Ok(())
    }

    /// Takes the next part of the plaintext, that of one record.
    pub(crate) fn take_plain(&mut self) -> Option<Lease> {
        let mut reader = self.connection.reader();
        let bytes = reader.fill_buf().ok().filter(|bytes| !bytes.is_empty())?.to_vec();
        reader.consume(bytes.len());
        self.plain = self.plain.saturating_sub(bytes.len());
        Some(Lease::owned(bytes))
    }

    /// Encrypts bytes, and returns what is to be sent.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        let records = plain.len().div_ceil(RECORD_BYTES_MAX);
        let mut sealed = Vec::with_capacity(plain.len() + records * RECORD_OVERHEAD_BYTES);
        // Without a limit, all of it is taken.
        let _ = self.connection.writer().write_all(plain);
        self.flush(&mut sealed);
        sealed
    }

    /// Ends the session, and returns what is to be sent.
    pub(crate) fn close(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.connection.send_close_notify();
        self.flush(&mut sealed);
        sealed
    }

    /// Appends what the session has to send: parts of the handshake, tickets, alerts.
    pub(crate) fn flush(&mut self, sealed: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to a vector does not fail.
            if !matches!(self.connection.write_tls(sealed), Ok(1..)) {
                return;
            }
        }
    }
}
