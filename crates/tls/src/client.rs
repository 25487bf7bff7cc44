//! Sessions as a client: the trusted certificates, and the connector.
//!
//! It resolves no names. Invariants: a server's certificate is verified, for the name that the caller passes,
//! before anything is sent. Nothing turns that off.

use std::sync::Arc;

use plimsoll_io::{Io, Stream};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, version};

use crate::clock::Clock;
use crate::handshake::{HandshakeError, perform};
use crate::provider::provider;
use crate::session::Session;

/// The certificates that a client trusts to vouch for servers.
#[derive(Clone, Debug)]
pub struct Roots(Arc<RootCertStore>);

/// The reason why there are no trusted certificates.
#[derive(Debug, thiserror::Error)]
pub enum BadRoots {
    /// The file has none.
    #[error("there is no certificate in it that can be trusted; it must be a PEM file")]
    None,
    /// The operating system has none.
    #[error("this system has no trusted certificates; install ca-certificates, or name a file")]
    NoneOfSystem,
}

/// The means to encrypt connections to servers.
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
    clock: Arc<Clock>,
}

impl Roots {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// There is none.
    pub fn read(pem: &[u8]) -> Result<Roots, BadRoots> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        Roots::of(certificates.unwrap_or_default()).ok_or(BadRoots::None)
    }

    /// Reads the certificates that this system trusts. It reads files.
    ///
    /// # Errors
    /// There is none.
    pub fn of_system() -> Result<Roots, BadRoots> {
        Roots::of(rustls_native_certs::load_native_certs().certs).ok_or(BadRoots::NoneOfSystem)
    }

    fn of(certificates: Vec<CertificateDer<'static>>) -> Option<Roots> {
        let mut roots = RootCertStore::empty();
        // A system may have some that are of no use here.
        let (added, _) = roots.add_parsable_certificates(certificates);
        (added > 0).then(|| Roots(Arc::new(roots)))
    }
}

impl Connector {
    /// Creates a connector for the protocols with these names (ALPN).
    ///
    /// # Errors
    /// The provider has no cipher suite for a version: a bug.
    pub fn new(roots: &Roots, protocols: &[&str], clock: Arc<Clock>) -> Result<Connector, rustls::Error> {
        let time: Arc<Clock> = Arc::clone(&clock);
        let mut config = ClientConfig::builder_with_details(provider(), time)
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
            .with_root_certificates(Arc::clone(&roots.0))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Connector { config: Arc::new(config), clock })
    }

    /// Encrypts a connection to the server with this name or address.
    ///
    /// # Errors
    /// The handshake failed. The connection has ended.
    pub async fn connect(&self, io: &Io, stream: &mut Stream, name: &str) -> Result<(), HandshakeError> {
        let bad_name = |_| rustls::Error::General("the server's name is invalid".to_owned());
        let name = ServerName::try_from(name.to_owned()).map_err(bad_name)?;
        self.clock.set(io.wall());
        let session = Session::client(Arc::clone(&self.config), name)?;
        perform(io, stream, session).await.map(drop)
    }
}
