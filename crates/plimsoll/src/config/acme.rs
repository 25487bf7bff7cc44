//! Settings of certificates that are ordered by ACME.
//!
//! They are fixed until the server ends. Invariant: without a name, the others have no effect.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_acme::DomainName;

use super::proxy::CertificateFile;
use super::values::AcmeChallenge;

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The state folder; DATA is the placeholder for the data folder.
const STATE: &str = "DATA/acme";

/// The settings of ACME.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct AcmeSettings {
    /// Order a certificate for this name, which must lead to this server's port 80, and renew it; several may
    /// be given, for one certificate. By this you accept the terms of the ACME server's operator
    #[arg(long, value_name = "DOMAIN", env = "PLIMSOLL_ACME", value_delimiter = ',')]
    pub(crate) acme: Vec<DomainName>,

    /// The directory of the ACME server
    #[arg(long, value_name = "URL", env = "PLIMSOLL_ACME_DIRECTORY", default_value = LETS_ENCRYPT)]
    #[arg(value_parser = directory)]
    pub(crate) acme_directory: String,

    /// The certificate of the authority that signs the ACME server's, in PEM, for a private one; or system:
    /// the authorities that this system trusts
    #[arg(long, value_name = "FILE|system", env = "PLIMSOLL_ACME_CA", default_value = "system")]
    pub(crate) acme_ca: CertificateFile,

    /// The folder of the account, the certificate and open challenges, which several fronts may share
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_ACME_STATE", default_value = STATE)]
    pub(crate) acme_state: PathBuf,

    /// How the names are proved to lead here: http-01 (by a file, at port 80), or tls-alpn-01 (by a
    /// certificate, at port 443; for a single front)
    #[arg(
        long,
        value_name = "http-01|tls-alpn-01",
        hide_possible_values = true,
        env = "PLIMSOLL_ACME_CHALLENGE",
        default_value = "http-01"
    )]
    pub(crate) acme_challenge: AcmeChallenge,

    /// The mail address at which the operator of the ACME server may reach you; several may be given
    #[arg(long, value_name = "MAIL", env = "PLIMSOLL_ACME_CONTACT", value_delimiter = ',')]
    pub(crate) acme_contact: Vec<String>,

    /// The id of your account at the ACME server's operator, if it requires one (external account binding)
    #[arg(long, value_name = "ID", env = "PLIMSOLL_ACME_EAB_ID")]
    pub(crate) acme_eab_id: Option<String>,

    /// The file with the key of that account, in base64url; no other user may read it
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_ACME_EAB_KEY_FILE")]
    pub(crate) acme_eab_key_file: Option<PathBuf>,
}

impl AcmeSettings {
    /// Returns the names of the certificate, for an operator.
    pub(crate) fn domains(&self) -> String {
        self.acme.iter().map(DomainName::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Replaces the placeholder in the default by the data folder.
    pub(super) fn settle(&mut self, data: &Path) {
        if self.acme_state == Path::new(STATE) {
            self.acme_state = data.join("acme");
        }
    }
}

fn directory(text: &str) -> Result<String, String> {
    match text.strip_prefix("https://") {
        Some(rest) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err("write the https:// URL of the ACME server's directory".to_owned()),
    }
}
