//! The certificates that prove to an ACME server by TLS that a name leads here (TLS-ALPN-01, RFC 8737).
//!
//! It makes none. Invariants: only a client that offers [`ACME_PROTOCOL`] and no other protocol gets one, and
//! only for the name that it requests. Such a connection carries no request.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificates::{BadCertificate, certified_unchecked};

/// The protocol of an ACME server that validates a name.
pub(crate) const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// The certificates of open challenges, by their names.
#[derive(Debug, Default)]
pub struct ChallengeCertificates(RwLock<HashMap<String, Arc<CertifiedKey>>>);

impl ChallengeCertificates {
    /// Publishes the certificate of a challenge for a name in lower case, with its own key, each in PEM.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn publish(&self, name: &str, chain: &[u8], key: &[u8]) -> Result<(), BadCertificate> {
        let certified = Arc::new(certified_unchecked(chain, key)?);
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), certified);
        Ok(())
    }

    /// Removes all of them.
    pub fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&name).cloned()
    }
}

/// Chooses the certificate of a challenge for an ACME server, and the usual one for all others.
#[derive(Debug)]
pub(crate) struct WithChallenges {
    pub(crate) usual: Arc<dyn ResolvesServerCert>,
    pub(crate) challenges: Arc<ChallengeCertificates>,
}

impl ResolvesServerCert for WithChallenges {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if !hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == ACME_PROTOCOL)) {
            return self.usual.resolve(hello);
        }
        let is_alone = hello.alpn().is_some_and(|protocols| protocols.count() == 1);
        self.challenges.find(hello.server_name().filter(|_| is_alone)?)
    }
}
