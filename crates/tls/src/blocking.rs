//! Sessions as a client over a blocking stream: for databases, whose clients run outside of the engine.
//!
//! It opens no connection. The stream bounds the time of each read and write, and so that of the
//! handshake. Invariant: the server's certificate is verified as [`ServerCheck`] demands before anything
//! of the caller is sent.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion};

use crate::certificates::Identity;
use crate::client::{Roots, Trust};
use crate::provider::provider;
use crate::verifier::{Untrusted, Verifier};
use crate::versions::MinVersion;

/// The checks that a client demands of the certificate of a database server.
#[derive(Clone, Debug)]
pub enum ServerCheck {
    /// A trusted certificate vouches for it, and for the server's name.
    Name(Roots),
    /// A trusted certificate vouches for it, whatever its name.
    Authority(Roots),
    /// Nothing: the connection is safe from eavesdroppers, but not from an impostor.
    Nothing,
}

/// The means to encrypt blocking connections. Sessions of one connector resume each other.
#[derive(Clone, Debug)]
pub struct BlockingConnector {
    config: Arc<ClientConfig>,
    is_verified: bool,
    last: Arc<Mutex<Option<SessionTerms>>>,
}

/// The terms of a session, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// The version, such as TLS 1.3.
    pub version: &'static str,
    /// Whether a trusted certificate vouches for the server's.
    pub is_verified: bool,
    /// The server's certificate, in DER.
    pub certificate: Vec<u8>,
}

/// An encrypted stream.
pub struct BlockingTls<S: Read + Write> {
    session: ClientConnection,
    stream: S,
}

impl BlockingConnector {
    /// Creates a connector. It presents `identity` to servers that request a certificate.
    ///
    /// # Errors
    /// The provider has no cipher suite for a version: a bug.
    pub fn new(check: &ServerCheck, identity: Option<&Identity>) -> Result<BlockingConnector, rustls::Error> {
        let verifier = match check {
            ServerCheck::Name(roots) => Verifier::new(&Trust::Roots(roots.clone()))?,
            ServerCheck::Authority(roots) => Verifier::of_authority(roots),
            ServerCheck::Nothing => Verifier::of_nothing(),
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(MinVersion::default().versions())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match identity {
            Some(identity) => {
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&identity.0))))
            }
            None => config.with_no_client_auth(),
        };
        let is_verified = !matches!(check, ServerCheck::Nothing);
        Ok(BlockingConnector { config: Arc::new(config), is_verified, last: Arc::default() })
    }

    /// Notes the terms of a session whose handshake is complete.
    pub fn note(&self, session: &ClientConnection) {
        let version = match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS",
        };
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.map(|certificate| certificate.to_vec()).unwrap_or_default();
        let terms = SessionTerms { version, is_verified: self.is_verified, certificate };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(terms);
    }

    /// Returns the terms of the latest session; `None` before the first.
    pub fn latest_terms(&self) -> Option<SessionTerms> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the configuration, for a driver that performs the handshake itself.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Gives an error of a handshake, or of an encrypted stream, the sentence of [`Untrusted`], or names
    /// TLS.
    pub fn readable(error: io::Error) -> io::Error {
        readable(error)
    }

    /// Performs the handshake with the server of this name or address.
    ///
    /// # Errors
    /// The handshake or the stream failed.
    pub fn connect<S: Read + Write>(&self, stream: S, name: &str) -> io::Result<BlockingTls<S>> {
        let bad_name = |_| io::Error::new(io::ErrorKind::InvalidInput, "the server's name is invalid");
        let name = ServerName::try_from(name.to_owned()).map_err(bad_name)?;
        let session = ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        let mut tls = BlockingTls { session, stream };
        while tls.session.is_handshaking() {
            tls.session.complete_io(&mut tls.stream).map_err(readable)?;
        }
        // The last message of the handshake.
        tls.flush()?;
        self.note(&tls.session);
        Ok(tls)
    }
}

impl<S: Read + Write> BlockingTls<S> {
    /// Returns the stream below.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the stream below.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns whether no decrypted bytes are left to read. Call it after a read.
    pub fn is_drained(&mut self) -> bool {
        self.session.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() == 0)
    }
}

impl<S: Read + Write> Read for BlockingTls<S> {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.stream).read(block).map_err(readable)
    }
}

impl<S: Read + Write> Write for BlockingTls<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.stream).write(bytes).map_err(readable)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.session, &mut self.stream).flush().map_err(readable)
    }
}

/// Gives an error of a session the sentence of [`Untrusted`], or names TLS.
fn readable(error: io::Error) -> io::Error {
    let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return error;
    };
    match Untrusted::in_error(inner) {
        Some(untrusted) => io::Error::new(error.kind(), untrusted),
        None => io::Error::new(error.kind(), format!("TLS: {inner}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection};

    use super::*;

    const CA: &[u8] = include_bytes!("../../../tests/data/tls/ca.pem");
    const SERVER: &[u8] = include_bytes!("../../../tests/data/tls/server.pem");
    const SERVER_KEY: &[u8] = include_bytes!("../../../tests/data/tls/server.key");
    const OTHER: &[u8] = include_bytes!("../../../tests/data/tls/other.pem");

    /// Connects to a server that answers `ping` with `pong`. Returns the answer.
    fn ping(check: &ServerCheck, name: &str) -> io::Result<String> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            let certificate = CertificateDer::from_pem_slice(SERVER).unwrap();
            let config = ServerConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap());
            let mut session = ServerConnection::new(Arc::new(config.unwrap())).unwrap();
            let mut stream = rustls::Stream::new(&mut session, &mut theirs);
            // The client may refuse the handshake.
            let mut request = [0; 4];
            if stream.read_exact(&mut request).is_ok() {
                stream.write_all(&request.map(|byte| if byte == b'i' { b'o' } else { byte })).unwrap();
                stream.flush().unwrap();
            }
        });
        let answer = BlockingConnector::new(check, None).unwrap().connect(ours, name).and_then(|mut tls| {
            tls.write_all(b"ping")?;
            tls.flush()?;
            let mut answer = [0; 4];
            tls.read_exact(&mut answer)?;
            assert!(tls.is_drained());
            Ok(String::from_utf8_lossy(&answer).into_owned())
        });
        server.join().unwrap();
        answer
    }

    fn roots(pem: &[u8]) -> Roots {
        Roots::read(pem).unwrap()
    }

    #[test]
    fn a_server_is_checked_as_far_as_the_caller_demands() {
        let error = |check: &ServerCheck, name| ping(check, name).unwrap_err().to_string();
        assert_eq!(ping(&ServerCheck::Name(roots(CA)), "localhost").unwrap(), "pong");
        let other_name = error(&ServerCheck::Name(roots(CA)), "elsewhere.example");
        assert!(other_name.contains("not valid for this name"), "{other_name}");
        assert_eq!(ping(&ServerCheck::Authority(roots(CA)), "elsewhere.example").unwrap(), "pong");
        // A certificate that a person named is trusted itself.
        assert_eq!(ping(&ServerCheck::Authority(roots(SERVER)), "elsewhere.example").unwrap(), "pong");
        for check in [ServerCheck::Name(roots(OTHER)), ServerCheck::Authority(roots(OTHER))] {
            let other_authority = error(&check, "localhost");
            assert!(other_authority.contains("no authority that is trusted"), "{other_authority}");
        }
        assert_eq!(ping(&ServerCheck::Nothing, "elsewhere.example").unwrap(), "pong");
    }
}
