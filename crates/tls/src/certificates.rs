//! The certificates of a server, with their private keys, and the choice among them by name.
//!
//! It reads no file. Invariants: a certificate is used only with its own key. A client that requests no name,
//! or a name that no certificate has, gets the first one.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::limits::{CERTIFICATES_MAX, CHAIN_CERTIFICATES_MAX, SIGNING_WEIGHT_MAX, SIGNING_WEIGHT_MIN};
use crate::provider::provider;

/// Certificates with their keys.
#[derive(Clone, Debug)]
pub struct Certificates {
    first: Arc<CertifiedKey>,
    /// In the order of the pairs.
    all: Vec<Arc<CertifiedKey>>,
    /// By the name in the certificate, in lower case; `*.example.org` for a wildcard.
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

/// The certificate by which a client proves who it is, with its private key.
#[derive(Clone, Debug)]
pub struct Identity(pub(crate) Arc<CertifiedKey>);

impl Identity {
    /// Reads a certificate chain and its private key, each in PEM.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn read(chain: &[u8], key: &[u8]) -> Result<Identity, BadCertificate> {
        Ok(Identity(Arc::new(certified(chain, key)?)))
    }
}

/// The reason why a certificate cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum BadCertificate {
    /// No certificate was given.
    #[error("there is no certificate")]
    None,
    /// There are too many of them.
    #[error("there are more than {CERTIFICATES_MAX} certificates")]
    TooMany,
    /// The chain cannot be read.
    #[error("the certificate is no PEM file with a certificate chain of at most {CHAIN_CERTIFICATES_MAX}")]
    Chain,
    /// The key cannot be read.
    #[error("the key is no PEM file with an unencrypted private key (openssl pkey removes a password)")]
    Key,
    /// The key is of another certificate.
    #[error("the key is not that of the certificate; give both of the same pair")]
    NotItsKey,
    /// The certificate or the key is of a kind that cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Unusable(rustls::Error),
}

impl Certificates {
    /// Reads pairs of a certificate chain and its private key, each in PEM. The first pair is for clients
    /// that request no known name.
    ///
    /// # Errors
    /// The number of the pair that cannot be used, and why.
    pub fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Certificates, (usize, BadCertificate)> {
        let (mut all, mut by_name) = (Vec::new(), HashMap::new());
        for (number, (chain, key)) in pairs.into_iter().enumerate() {
            if number == CERTIFICATES_MAX {
                return Err((number, BadCertificate::TooMany));
            }
            let certified = Arc::new(certified(chain, key).map_err(|bad| (number, bad))?);
            for name in names(&certified) {
                by_name.entry(name).or_insert_with(|| Arc::clone(&certified));
            }
            all.push(certified);
        }
        let first = Arc::clone(all.first().ok_or((0, BadCertificate::None))?);
        Ok(Certificates { first, all, by_name })
    }

    /// Returns the names in the certificates, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns each certificate itself, in DER, without those that vouch for it, in the order of the pairs.
    pub fn leaves(&self) -> impl Iterator<Item = &[u8]> {
        self.all.iter().filter_map(|certified| Some(&**certified.cert.first()?))
    }

    /// Returns the weight of a signature with the slowest of the keys, among those of one turn.
    pub(crate) fn signing_weight(&self) -> u32 {
        let is_slow = |certified: &Arc<CertifiedKey>| certified.key.algorithm() == SignatureAlgorithm::RSA;
        if self.all.iter().any(is_slow) { SIGNING_WEIGHT_MAX } else { SIGNING_WEIGHT_MIN }
    }

    /// Returns the certificate for a name that a client requests. A dot at its end is ignored: RFC 6066
    /// (section 3) forbids it, but clients send the host of a URL as it was typed.
    fn find(&self, name: Option<&str>) -> &Arc<CertifiedKey> {
        let named = name.and_then(|name| {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            let wildcard = || Some(format!("*.{}", name.split_once('.')?.1));
            self.by_name.get(&name).or_else(|| self.by_name.get(&wildcard()?))
        });
        named.unwrap_or(&self.first)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.find(hello.server_name())))
    }
}

fn certified(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, BadCertificate> {
    let (chain, key) = parse(chain, key)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => BadCertificate::NotItsKey,
        error => BadCertificate::Unusable(error),
    })
}

/// As `certified`, but does not check that the key is that of the certificate. rustls refuses to parse one
/// with the critical extension of a challenge.
pub(crate) fn certified_unchecked(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, BadCertificate> {
    let (chain, key) = parse(chain, key)?;
    let key = provider().key_provider.load_private_key(key).map_err(BadCertificate::Unusable)?;
    Ok(CertifiedKey::new(chain, key))
}

type ChainAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn parse(chain: &[u8], key: &[u8]) -> Result<ChainAndKey, BadCertificate> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .take(CHAIN_CERTIFICATES_MAX + 1)
        .collect::<Result<_, _>>()
        .map_err(|_| BadCertificate::Chain)?;
    if chain.is_empty() || chain.len() > CHAIN_CERTIFICATES_MAX {
        return Err(BadCertificate::Chain);
    }
    Ok((chain, PrivateKeyDer::from_pem_slice(key).map_err(|_| BadCertificate::Key)?))
}

fn names(certified: &CertifiedKey) -> Vec<String> {
    let leaf = certified.cert.first().map(webpki::EndEntityCert::try_from);
    let Some(Ok(leaf)) = leaf else { return Vec::new() };
    leaf.valid_dns_names().map(str::to_ascii_lowercase).collect()
}
