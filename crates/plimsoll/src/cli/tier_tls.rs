//! The flags by which the servers of tiers encrypt and verify their connections.
//!
//! It reads no file. Invariant: the authentication and the storage server have the same flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::config::TlsVersion;

#[derive(Args)]
pub(super) struct TierTls {
    /// A file with this server's certificate and those that vouch for it, in PEM: fronts connect by https://,
    /// except to a Unix socket
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// The file with the private key of the certificate, in PEM and without a password
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// The certificate of the authority that signs those of the fronts, in PEM; a front without one is
    /// refused
    #[arg(long, value_name = "FILE", requires = "certificate")]
    client_ca: Option<PathBuf>,

    /// The oldest version of TLS that is accepted: 1.2, or 1.3 alone
    #[arg(long, value_name = "1.2|1.3", hide_possible_values = true)]
    tls_min_version: Option<TlsVersion>,
}

impl TierTls {
    /// Returns the flags of `plimsoll serve` with the same effect.
    pub(super) fn flags(&self) -> [(&'static str, Option<OsString>); 4] {
        [
            ("--certificate=", self.certificate.clone().map(OsString::from)),
            ("--key=", self.key.clone().map(OsString::from)),
            ("--client-ca=", self.client_ca.clone().map(OsString::from)),
            ("--tls-min-version=", self.tls_min_version.map(|version| version.to_string().into())),
        ]
    }
}
