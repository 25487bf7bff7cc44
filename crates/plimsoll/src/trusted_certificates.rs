//! The certificates that this server trusts as a client of others: of the origins of a proxy, and of tiers.
//!
//! It connects to nothing. Invariant: the error of a file names the flag and the file.

use std::path::Path;

use anyhow::Context as _;
use plimsoll_tls::{Clock, Connector, Identity, MinVersion, Roots};

use crate::config::CertificateFile;
use crate::encryption::read_key;

/// The protocol of origins and tiers over TLS, as clients name it (ALPN).
const HTTP: &str = "http/1.1";

/// Returns the means to encrypt connections over HTTP to servers that certificates of `file` vouch for.
/// `flag` names it.
pub(crate) fn connector(file: &CertificateFile, flag: &str) -> anyhow::Result<Connector> {
    connector_for(HTTP, file, flag)
}

/// As [`connector`], for another protocol (ALPN).
pub(crate) fn connector_for(protocol: &str, file: &CertificateFile, flag: &str) -> anyhow::Result<Connector> {
    connect_by((protocol, MinVersion::default()), file, flag)
}

/// As [`connector`], for servers with TLS `min` or newer.
pub(crate) fn connector_since(
    min: MinVersion,
    file: &CertificateFile,
    flag: &str,
) -> anyhow::Result<Connector> {
    connect_by((HTTP, min), file, flag)
}

fn connect_by(
    (protocol, min): (&str, MinVersion),
    file: &CertificateFile,
    flag: &str,
) -> anyhow::Result<Connector> {
    let roots = match &file.0 {
        Some(path) => read(path, flag)?,
        None => Roots::of_system().with_context(|| format!("give {flag} FILE"))?,
    };
    Connector::since(min, &roots, &[protocol], Clock::new()).context("cannot set up TLS")
}

/// Reads trusted certificates. `flag` names their file.
pub(crate) fn read(path: &Path, flag: &str) -> anyhow::Result<Roots> {
    let read = std::fs::read(path).map_err(anyhow::Error::from);
    let roots = read.and_then(|pem| Ok(Roots::read(&pem)?));
    roots.with_context(|| format!("cannot use the certificates in {}, of {flag}", path.display()))
}

/// Reads the certificate by which this server proves itself to others, and its key.
pub(crate) fn identity(certificate: &Path, key: &Path) -> anyhow::Result<Identity> {
    let chain = std::fs::read(certificate);
    let chain = chain.with_context(|| format!("cannot read {}", certificate.display()))?;
    let secret = read_key(key, "--tier-key names a PEM file")?;
    Identity::read(&chain, &secret).with_context(|| {
        format!("cannot use the certificate {} with the key {}", certificate.display(), key.display())
    })
}
