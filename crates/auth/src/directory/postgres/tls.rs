//! TLS for the driver: the handshake, and the value that binds a log-in to it.
//!
//! Invariant: the value is the hash of the certificate whose key the server has proved to have. A server
//! between the client and the database has another certificate, so the database refuses a log-in that it
//! passes on.

use std::future::Future;
use std::io;
use std::pin::Pin;

use plimsoll_tls::BlockingConnector;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect};
use tokio_rustls::client::TlsStream;
use x509_parser::parse_x509_certificate;

use super::guarded::Guarded;
use crate::directory::Fault;
use crate::directory::database::stream::Stream;
use crate::directory::database::tls::Encryption;

/// Performs the handshake of one connection.
pub(super) struct Handshake {
    /// `None` if the connection stays plain.
    connector: Option<BlockingConnector>,
    host: String,
}

/// The error of a handshake.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct HandshakeError(io::Error);

/// An encrypted stream.
pub(super) type Encrypted = Guarded<TlsStream<Stream>>;

impl Handshake {
    pub(super) fn new(encryption: &Encryption, host: &str) -> Handshake {
        let connector = match encryption {
            Encryption::Never => None,
            Encryption::IfOffered(connector) | Encryption::Always(connector) => Some(connector.clone()),
        };
        Handshake { connector, host: host.to_owned() }
    }
}

/// Returns the driver's word for whether a connection is encrypted.
pub(super) fn mode(encryption: &Encryption) -> SslMode {
    match encryption {
        Encryption::Never => SslMode::Disable,
        Encryption::IfOffered(_) => SslMode::Prefer,
        Encryption::Always(_) => SslMode::Require,
    }
}

/// Returns whether an error of the driver is that of a handshake.
pub(super) fn is_handshake_error(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<HandshakeError>())
}

/// Returns the kind of the cause of a driver's error.
pub(super) fn fault(cause: &(dyn std::error::Error + 'static)) -> Option<Fault> {
    if cause.is::<HandshakeError>() {
        return Some(Fault::Tls);
    }
    Fault::of_io(cause.downcast_ref()?)
}

impl TlsConnect<Guarded<Stream>> for Handshake {
    type Stream = Encrypted;
    type Error = HandshakeError;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, HandshakeError>> + Send>>;

    fn connect(self, stream: Guarded<Stream>) -> Self::Future {
        Box::pin(async move {
            let (stream, guarded) = stream.open();
            let invalid =
                |problem: &str| HandshakeError(io::Error::new(io::ErrorKind::InvalidInput, problem));
            let connector = self.connector.ok_or_else(|| invalid("the connection is to stay plain"))?;
            stream.encrypt(&connector, &self.host).await.map(guarded).map_err(HandshakeError)
        })
    }
}

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let chain = self.stream().get_ref().1.peer_certificates();
        let leaf = chain.and_then(<[_]>::first);
        let hash = leaf.and_then(|leaf| end_point_hash(leaf));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Computes `tls-server-end-point` (RFC 5929 section 4.1): the hash of a certificate, by the hash
/// function of its signature. MD5 and SHA-1 are replaced by SHA-256. Returns `None` for a signature that
/// names no hash function, or has more than one, as Ed25519 and RSASSA-PSS.
fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    // Each row: RSA (PKCS #1), then ECDSA.
    Some(match parsed.signature_algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.4" | "1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" => {
            Sha256::digest(certificate).to_vec()
        }
        "1.2.840.113549.1.1.14" | "1.2.840.10045.4.3.1" => Sha224::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.11" | "1.2.840.10045.4.3.2" => Sha256::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Has openssl make a certificate that signed itself with these arguments. Returns it in DER.
    fn certificate(arguments: &[&str]) -> Vec<u8> {
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-nodes",
            "-subj",
            "/CN=db",
            "-keyout",
            "/dev/null",
            "-outform",
            "der",
        ]);
        let made = openssl.args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        made.stdout
    }

    #[test]
    fn a_log_in_is_bound_to_the_certificate_by_the_hash_of_its_signature() {
        let ecdsa = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let rsa = ["-newkey", "rsa:1024"];
        for key in [&ecdsa[..], &rsa] {
            let hash = |digest: &str| {
                let made = certificate(&[key, &[digest]].concat());
                (end_point_hash(&made).unwrap(), made)
            };
            for weak in ["-sha1", "-sha256"] {
                let (hash, made) = hash(weak);
                assert_eq!(hash, Sha256::digest(made).to_vec(), "{weak} {key:?}");
            }
            let (short, made) = hash("-sha224");
            assert_eq!(short, Sha224::digest(made).to_vec());
            let (long, made) = hash("-sha384");
            assert_eq!(long, Sha384::digest(made).to_vec());
            let (longest, made) = hash("-sha512");
            assert_eq!(longest, Sha512::digest(made).to_vec());
        }
        assert_eq!(end_point_hash(&certificate(&["-newkey", "ed25519"])), None);
        let pss = certificate(&["-newkey", "rsa:1024", "-sigopt", "rsa_padding_mode:pss"]);
        assert_eq!(end_point_hash(&pss), None);
        assert_eq!(end_point_hash(b"no certificate"), None);
    }
}
