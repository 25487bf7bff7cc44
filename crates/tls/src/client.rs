//! Sessions as a client: the trusted certificates, and the connector.
//!
//! It resolves no names. Invariants: a server's certificate is verified before anything is sent: for the name
//! that the caller passes, or by its fingerprint. Nothing turns that off; only a database's client may demand
//! less (`blocking.rs`).

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Io, Stream};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use crate::certificates::Identity;
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::handshake::{HandshakeError, perform};
use crate::provider::provider;
use crate::session::Session;
use crate::verifier::Verifier;
use crate::versions::MinVersion;

/// The certificates that a client trusts to vouch for servers.
#[derive(Clone, Debug)]
pub struct Roots {
    pub(crate) store: Arc<RootCertStore>,
    /// The certificates themselves, if a person has named them: one of them may be the server's own.
    pub(crate) named: Arc<[Fingerprint]>,
}

/// The grounds on which a client trusts a server.
#[derive(Clone, Debug)]
pub enum Trust {
    /// By trusted certificates that vouch for the server's, or are the server's own.
    Roots(Roots),
    /// By the server's certificate alone, whatever its name, its dates, and its authority.
    Fingerprint(Fingerprint),
}

impl From<&Roots> for Trust {
    fn from(roots: &Roots) -> Trust {
        Trust::Roots(roots.clone())
    }
}

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
    resumes: bool,
}

/// How a connection was encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Whether it resumed an earlier session, which is shorter.
    pub is_resumed: bool,
    /// How long it took.
    pub time: Duration,
}

impl Roots {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// The text has no certificate that can be used.
    pub fn read(pem: &[u8]) -> Result<Roots, BadRoots> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.unwrap_or_default();
        let named = certificates.iter().map(|certificate| Fingerprint::of(certificate)).collect();
        Ok(Roots { named, ..Roots::of(certificates).ok_or(BadRoots::None)? })
    }

    /// Reads the certificates that this system trusts. It reads files.
    ///
    /// # Errors
    /// This machine has no certificate that can be used.
    pub fn of_system() -> Result<Roots, BadRoots> {
        Roots::of(rustls_native_certs::load_native_certs().certs).ok_or(BadRoots::NoneOfSystem)
    }

    fn of(certificates: Vec<CertificateDer<'static>>) -> Option<Roots> {
        let mut roots = RootCertStore::empty();
        // A system may have some that are of no use here.
        let (added, _) = roots.add_parsable_certificates(certificates);
        (added > 0).then(|| Roots { store: Arc::new(roots), named: Arc::default() })
    }
}

impl Connector {
    /// Creates a connector for the protocols with these names (ALPN).
    ///
    /// # Errors
    /// The provider has no cipher suite for a version: a bug.
    pub fn new(
        trust: impl Into<Trust>,
        protocols: &[&str],
        clock: Arc<Clock>,
    ) -> Result<Connector, rustls::Error> {
        Connector::since(MinVersion::default(), trust, protocols, clock)
    }

    /// As [`Connector::new`], for TLS `min` or newer.
    ///
    /// # Errors
    /// As [`Connector::new`].
    pub fn since(
        min: MinVersion,
        trust: impl Into<Trust>,
        protocols: &[&str],
        clock: Arc<Clock>,
    ) -> Result<Connector, rustls::Error> {
        Connector::of_versions(min.versions(), &trust.into(), protocols, clock)
    }

    /// As [`Connector::new`], for servers without TLS 1.3. Tests use it.
    ///
    /// # Errors
    /// As [`Connector::new`].
    #[doc(hidden)]
    pub fn tls12(
        trust: impl Into<Trust>,
        protocols: &[&str],
        clock: Arc<Clock>,
    ) -> Result<Connector, rustls::Error> {
        Connector::of_versions(&[&version::TLS12], &trust.into(), protocols, clock)
    }

    fn of_versions(
        versions: &[&'static SupportedProtocolVersion],
        trust: &Trust,
        protocols: &[&str],
        clock: Arc<Clock>,
    ) -> Result<Connector, rustls::Error> {
        let verifier = Arc::new(Verifier::new(trust)?);
        let time: Arc<Clock> = Arc::clone(&clock);
        let mut config = ClientConfig::builder_with_details(provider(), time)
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Connector { config: Arc::new(config), clock, resumes: true })
    }

    /// Presents a certificate to servers that request one.
    #[must_use]
    pub fn with_identity(mut self, identity: &Identity) -> Connector {
        let config = Arc::make_mut(&mut self.config);
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(Arc::clone(&identity.0)));
        self
    }

    /// Resumes no session: each handshake is a full one.
    #[must_use]
    pub fn without_resumption(mut self) -> Connector {
        Arc::make_mut(&mut self.config).resumption = Resumption::disabled();
        self.resumes = false;
        self
    }

    /// Remembers no session of other connectors, and shares none of its own: for connections that must resume
    /// each other's session. A connector that resumes none stays so.
    #[must_use]
    pub fn with_own_sessions(mut self) -> Connector {
        if self.resumes {
            Arc::make_mut(&mut self.config).resumption = Resumption::in_memory_sessions(1);
        }
        self
    }

    /// Encrypts a connection to the server with this name or address.
    ///
    /// # Errors
    /// The handshake failed. The connection has ended.
    pub async fn connect(&self, io: &Io, stream: &mut Stream, name: &str) -> Result<(), HandshakeError> {
        self.handshake(io, stream, name).await.map(drop)
    }

    /// As [`Connector::connect`]. Returns the kind of the handshake, and its time.
    ///
    /// # Errors
    /// As [`Connector::connect`].
    pub async fn handshake(
        &self,
        io: &Io,
        stream: &mut Stream,
        name: &str,
    ) -> Result<Handshake, HandshakeError> {
        let bad_name = |_| rustls::Error::General("the server's name is invalid".to_owned());
        let name = ServerName::try_from(name.to_owned()).map_err(bad_name)?;
        self.clock.set(io.wall());
        let session = Session::client(Arc::clone(&self.config), name)?;
        let start = io.now();
        let tls = perform(io, stream, session).await?;
        Ok(Handshake { is_resumed: tls.is_resumed(), time: io.now() - start })
    }
}

/// Whether the error of a stream is that the server requires a certificate of this client, or does not trust
/// it. With TLS 1.3, a server says so after the handshake.
#[must_use]
pub fn refuses_identity(error: &std::io::Error) -> bool {
    use rustls::AlertDescription as Alert;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(
        inner,
        Some(rustls::Error::AlertReceived(
            Alert::CertificateRequired
                | Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::UnsupportedCertificate
        ))
    )
}
