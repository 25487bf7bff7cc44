//! The ways to prove that a name leads here, and the certificate of one of them (TLS-ALPN-01, RFC 8737).
//!
//! It publishes nothing. Invariant: the certificate of a challenge is valid for its name alone.

use std::sync::Arc;

use plimsoll_tls::ChallengeCertificates;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use zeroize::Zeroizing;

use crate::names::DomainName;

/// How an order proves that its names lead here.
#[derive(Clone, Debug, Default)]
pub enum Proof {
    /// By a file over HTTP (HTTP-01). All fronts that share the state folder have it.
    #[default]
    Http,
    /// By a certificate over TLS (TLS-ALPN-01), which this process alone has.
    Tls(Arc<ChallengeCertificates>),
}

/// A self-signed certificate and its key, in PEM.
pub(crate) struct ChallengeCertificate {
    pub(crate) chain: String,
    pub(crate) key: Zeroizing<String>,
}

impl ChallengeCertificate {
    /// Makes the certificate of the challenge with this digest of its answer.
    pub(crate) fn new(name: &DomainName, digest: &[u8]) -> Result<ChallengeCertificate, rcgen::Error> {
        let mut parameters = CertificateParams::new([name.to_string()])?;
        parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let chain = parameters.self_signed(&key)?.pem();
        Ok(ChallengeCertificate { chain, key: Zeroizing::new(key.serialize_pem()) })
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::pem::Pem;

    use super::*;

    #[test]
    fn the_certificate_has_the_name_and_the_digest_in_a_critical_extension() {
        let name = DomainName::parse("files.example.org").unwrap();
        let made = ChallengeCertificate::new(&name, &[7; 32]).unwrap();
        let pem = Pem::iter_from_buffer(made.chain.as_bytes()).next().unwrap().unwrap();
        let certificate = pem.parse_x509().unwrap();
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 1);
        // id-pe-acmeIdentifier, with an octet string (RFC 8737, section 3).
        let found =
            certificate.extensions().iter().find(|found| found.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
        let found = found.unwrap();
        assert!(found.critical);
        assert_eq!(found.value, [&[4, 32][..], &[7; 32]].concat());
        let usable = ChallengeCertificates::default();
        usable.publish(name.as_str(), made.chain.as_bytes(), made.key.as_bytes()).unwrap();
    }
}
