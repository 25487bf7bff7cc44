//! The settings of a server's sessions.
//!
//! It accepts no connection. Invariants: data that a client sends before the handshake is complete is not
//! accepted (it could be replayed). No session is stored.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Io, Stream};
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};

use crate::certificates::Certificates;
use crate::challenges::{ACME_PROTOCOL, ChallengeCertificates, WithChallenges};
use crate::client::Roots;
use crate::clock::Clock;
use crate::handshake::{HandshakeError, perform};
use crate::provider::provider;
use crate::session::Session;
use crate::tickets::Tickets;
use crate::transport::Tls;
use crate::versions::MinVersion;

/// The settings of a server's sessions.
#[derive(Debug)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) signing_weight: u32,
}

impl ServerTls {
    /// Creates the settings of sessions of TLS `min` or newer, for the protocols with these names (ALPN); a
    /// client that names none may speak what it likes.
    ///
    /// # Errors
    /// The provider has no cipher suite for a version: a bug.
    pub fn new(
        certificates: Certificates,
        protocols: &[&str],
        min: MinVersion,
        tickets: Tickets,
        clock: Arc<Clock>,
    ) -> Result<ServerTls, rustls::Error> {
        let (clients, signing_weight) =
            (WebPkiClientVerifier::no_client_auth(), certificates.signing_weight());
        let mut config = config(clients, certificates, (protocols, min), &clock)?;
        config.ticketer = tickets.0;
        Ok(ServerTls { config: Arc::new(config), clock, signing_weight })
    }

    /// As [`ServerTls::new`], for clients with a certificate that one of `roots` has signed. They get no
    /// tickets: the certificate of a resumed session is not verified again, also if it has expired.
    ///
    /// # Errors
    /// As [`ServerTls::new`].
    pub fn for_clients_of(
        roots: &Roots,
        certificates: Certificates,
        protocols: &[&str],
        min: MinVersion,
        clock: Arc<Clock>,
    ) -> Result<ServerTls, rustls::Error> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots.store), provider());
        let verifier = verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        let signing_weight = certificates.signing_weight();
        let mut config = config(verifier, certificates, (protocols, min), &clock)?;
        config.send_tls13_tickets = 0;
        Ok(ServerTls { config: Arc::new(config), clock, signing_weight })
    }

    /// Also answers the challenges of an ACME server, by these certificates.
    #[must_use]
    pub fn with_challenges(self, challenges: Arc<ChallengeCertificates>) -> ServerTls {
        let mut config = Arc::unwrap_or_clone(self.config);
        let usual = Arc::clone(&config.cert_resolver);
        config.cert_resolver = Arc::new(WithChallenges { usual, challenges });
        config.alpn_protocols.push(ACME_PROTOCOL.to_vec());
        ServerTls { config: Arc::new(config), ..self }
    }

    /// Performs the handshake with a client, and encrypts the stream.
    ///
    /// # Errors
    /// The handshake failed. The client has the reason, and the connection has ended.
    pub async fn accept(&self, io: &Io, stream: &mut Stream) -> Result<(), HandshakeError> {
        self.perform(io, stream).await.map(drop)
    }

    pub(crate) async fn perform(&self, io: &Io, stream: &mut Stream) -> Result<Rc<Tls>, HandshakeError> {
        self.clock.set(io.wall());
        perform(io, stream, Session::server(Arc::clone(&self.config), self.signing_weight)?).await
    }
}

/// Returns the settings of sessions that cannot be resumed.
fn config(
    clients: Arc<dyn ClientCertVerifier>,
    certificates: Certificates,
    (protocols, min): (&[&str], MinVersion),
    clock: &Arc<Clock>,
) -> Result<ServerConfig, rustls::Error> {
    let time: Arc<Clock> = Arc::clone(clock);
    let mut config = ServerConfig::builder_with_details(provider(), time)
        .with_protocol_versions(min.versions())?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    // The order of the provider: AES-128 first, also for clients of OpenSSL, which list AES-256 first.
    config.ignore_client_order = true;
    Ok(config)
}
