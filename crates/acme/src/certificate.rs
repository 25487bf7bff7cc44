//! A certificate chain with its private key, in PEM.
//!
//! It verifies no signature: the server that will present the chain does not need that. Invariants: the key
//! is that of the first certificate, and a chain without a known end is never used.

use std::time::{Duration, SystemTime};

use plimsoll_tls::Certificates;
use x509_parser::pem::Pem;
use zeroize::Zeroizing;

use crate::names::Names;
use crate::schedule::Validity;

/// The type of a certificate in PEM.
const LABEL: &str = "CERTIFICATE";

/// A chain and its key.
pub struct Certificate {
    pem: Zeroizing<Vec<u8>>,
    validity: Validity,
    names: Vec<String>,
    leaf: Vec<u8>,
    /// The URL of the directory that issued it, if the text before the PEM has it.
    directory: Option<String>,
}

/// The text before the URL of the directory, in the first line of the PEM. Readers of PEM ignore it.
const ISSUED_BY: &str = "Issued by ";

/// The reason why a chain and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadChain {
    /// They are no pair.
    #[error(transparent)]
    Pair(#[from] plimsoll_tls::BadCertificate),
    /// The first certificate cannot be parsed.
    #[error("the certificate cannot be parsed")]
    Leaf,
}

impl Certificate {
    /// Reads a chain and its key.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn read(pem: Zeroizing<Vec<u8>>) -> Result<Certificate, BadChain> {
        let pair = Certificates::read([(pem.as_slice(), pem.as_slice())]).map_err(|(_, bad)| bad)?;
        let names = pair.names().map(str::to_owned).collect();
        let mut sections = Pem::iter_from_buffer(&pem).filter_map(Result::ok);
        let leaf = sections.find(|section| section.label == LABEL).ok_or(BadChain::Leaf)?;
        let validity = leaf.parse_x509().map_err(|_| BadChain::Leaf)?.validity().clone();
        let (begins, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let validity = Validity { begins: time(begins)?, ends: time(ends)? };
        let first_line = pem.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let directory = std::str::from_utf8(first_line).ok().and_then(|line| line.strip_prefix(ISSUED_BY));
        let directory = directory.map(|url| url.trim_end().to_owned());
        Ok(Certificate { validity, names, leaf: leaf.contents, directory, pem })
    }

    /// Returns the PEM of a chain and its key that were issued by a directory.
    pub(crate) fn issued_by(directory: &str, chain: &str, key: &str) -> Zeroizing<Vec<u8>> {
        let first_line = format!("{ISSUED_BY}{directory}\n");
        Zeroizing::new([first_line.as_bytes(), chain.as_bytes(), key.as_bytes()].concat())
    }

    /// Whether this directory issued the chain, or an unknown one.
    pub fn may_be_from(&self, directory: &str) -> bool {
        self.directory.as_ref().is_none_or(|issuer| issuer == directory)
    }

    /// The chain and key, in one PEM.
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// The time in which the first certificate is valid.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether the first certificate has all of these names.
    pub fn covers(&self, names: &Names) -> bool {
        names.iter().all(|name| self.names.iter().any(|covered| covered == name.as_str()))
    }

    /// The first certificate.
    pub(crate) fn leaf(&self) -> &[u8] {
        &self.leaf
    }
}

fn time(since_1970: i64) -> Result<SystemTime, BadChain> {
    let seconds = u64::try_from(since_1970).map_err(|_| BadChain::Leaf)?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::DomainName;

    const CHAIN: &[u8] = include_bytes!("../../../tests/data/tls/server.pem");
    const KEY: &[u8] = include_bytes!("../../../tests/data/tls/server.key");
    const OTHER: &[u8] = include_bytes!("../../../tests/data/tls/other.key");

    fn read(parts: &[&[u8]]) -> Result<Certificate, BadChain> {
        Certificate::read(Zeroizing::new(parts.concat()))
    }

    #[test]
    fn a_chain_and_key_in_one_file_are_read() {
        let certificate = read(&[CHAIN, KEY]).unwrap();
        let names =
            |texts: &[&str]| Names::new(texts.iter().map(|text| DomainName::parse(text).unwrap())).unwrap();
        assert!(certificate.covers(&names(&["localhost"])));
        assert!(!certificate.covers(&names(&["localhost", "www.example.org"])));
        assert!(certificate.validity().lifetime() > Duration::from_secs(86400));
    }

    #[test]
    fn the_directory_that_issued_a_chain_is_in_its_file() {
        let [chain, key] = [CHAIN, KEY].map(|part| std::str::from_utf8(part).unwrap());
        let staging = Certificate::read(Certificate::issued_by("https://staging.test", chain, key)).unwrap();
        assert!(staging.may_be_from("https://staging.test") && !staging.may_be_from("https://acme.test"));
        assert!(read(&[CHAIN, KEY]).unwrap().may_be_from("https://acme.test"), "nobody knows");
    }

    #[test]
    fn halves_and_other_keys_are_refused() {
        for parts in [&[CHAIN][..], &[KEY], &[CHAIN, OTHER], &[], &[&CHAIN[..CHAIN.len() / 2], KEY]] {
            assert!(read(parts).is_err());
        }
    }
}
