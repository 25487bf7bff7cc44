//! The verification of a server's certificate by a client.
//!
//! It performs no handshake. Invariants: the server must prove that it has the certificate's key, whatever
//! is trusted. An error has the certificate's fingerprint, so that a person can compare it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use crate::client::{Roots, Trust};
use crate::fingerprint::Fingerprint;
use crate::provider::provider;

/// A server's certificate that is not trusted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Untrusted {
    /// The fingerprint of the certificate.
    pub fingerprint: Fingerprint,
    /// The reason.
    pub reason: Distrust,
}

/// The reason why a certificate is not trusted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Distrust {
    /// No trusted certificate vouches for it.
    #[error("its certificate is signed by no authority that is trusted here")]
    UnknownAuthority,
    /// It is not the one that is expected.
    #[error("its certificate does not have the expected fingerprint")]
    OtherFingerprint,
    /// It is of a server with another name.
    #[error("its certificate is not valid for this name")]
    OtherName,
    /// It has expired, or is not valid yet.
    #[error("its certificate is not valid at this time; check its dates, and this machine's clock")]
    OtherTime,
    /// Anything else.
    #[error("its certificate is unusable: {0}")]
    Unusable(Error),
}

impl Untrusted {
    /// Finds it in an error of a session.
    pub(crate) fn in_error(error: &Error) -> Option<Untrusted> {
        match error {
            Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
                other.downcast_ref::<Untrusted>().cloned()
            }
            _ => None,
        }
    }
}

impl From<Error> for Distrust {
    fn from(error: Error) -> Distrust {
        use CertificateError as Bad;
        // A certificate that signed itself may say of itself that it is an authority's.
        let is_own_authority = |error: &OtherError| {
            error.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        };
        match error {
            Error::InvalidCertificate(Bad::UnknownIssuer) => Distrust::UnknownAuthority,
            Error::InvalidCertificate(Bad::Other(other)) if is_own_authority(&other) => {
                Distrust::UnknownAuthority
            }
            Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
                Distrust::OtherName
            }
            Error::InvalidCertificate(
                Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
            ) => Distrust::OtherTime,
            error => Distrust::Unusable(error),
        }
    }
}

/// Verifies by trusted certificates, or by a fingerprint.
#[derive(Debug)]
pub(crate) struct Verifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Check {
    Chain { chain: Arc<WebPkiServerVerifier>, named: Arc<[Fingerprint]> },
    Fingerprint(Fingerprint),
    Authority { store: Arc<RootCertStore>, named: Arc<[Fingerprint]> },
    Nothing,
}

impl Verifier {
    pub(crate) fn new(trust: &Trust) -> Result<Verifier, Error> {
        let check = match trust {
            Trust::Fingerprint(fingerprint) => Check::Fingerprint(*fingerprint),
            Trust::Roots(Roots { store, named }) => {
                let chain = WebPkiServerVerifier::builder_with_provider(Arc::clone(store), provider());
                let chain = chain.build().map_err(|error| Error::General(error.to_string()))?;
                Check::Chain { chain, named: Arc::clone(named) }
            }
        };
        Ok(Verifier::by(check))
    }

    /// Trusts certificates that `roots` vouch for, whatever their name.
    pub(crate) fn of_authority(roots: &Roots) -> Verifier {
        let Roots { store, named } = roots.clone();
        Verifier::by(Check::Authority { store, named })
    }

    /// Trusts every certificate.
    pub(crate) fn of_nothing() -> Verifier {
        Verifier::by(Check::Nothing)
    }

    fn by(check: Check) -> Verifier {
        Verifier { check, algorithms: provider().signature_verification_algorithms }
    }

    fn check_authority(
        &self,
        store: &RootCertStore,
        (leaf, chain): (&CertificateDer<'_>, &[CertificateDer<'_>]),
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, store, chain, now, self.algorithms.all)?;
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let fingerprint = Fingerprint::of(leaf);
        let checked = match &self.check {
            Check::Fingerprint(expected) if *expected == fingerprint => Ok(ServerCertVerified::assertion()),
            Check::Fingerprint(_) => Err(Distrust::OtherFingerprint),
            // The file has this very certificate.
            Check::Chain { named, .. } | Check::Authority { named, .. } if named.contains(&fingerprint) => {
                Ok(ServerCertVerified::assertion())
            }
            Check::Nothing => Ok(ServerCertVerified::assertion()),
            Check::Authority { store, .. } => {
                self.check_authority(store, (leaf, chain), now).map_err(Distrust::from)
            }
            Check::Chain { chain: roots, .. } => {
                roots.verify_server_cert(leaf, chain, name, ocsp, now).map_err(Distrust::from)
            }
        };
        checked.map_err(|reason| {
            let untrusted = Untrusted { fingerprint, reason };
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(untrusted))))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
