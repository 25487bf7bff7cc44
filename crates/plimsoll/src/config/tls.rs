//! Settings of TLS: the certificates of the listeners.
//!
//! The listeners are in [`super::fixed`]. Invariant: a reload replaces all of these.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::values::{PlainPasswords, TimeOrOff};

/// The reloadable settings of TLS.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct TlsSettings {
    /// A file with a certificate and those that vouch for it, in PEM; several may be given, each for its
    /// names, and the first for all others. A changed file is read again
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CERTIFICATE", value_delimiter = ',')]
    pub(crate) certificate: Vec<PathBuf>,

    /// The file with the private key of a certificate, in PEM and without a password; one for each
    /// certificate, in the same order
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_KEY", value_delimiter = ',')]
    pub(crate) key: Vec<PathBuf>,

    /// For plimsoll auth and plimsoll store: the certificate of the authority that signs those of the
    /// fronts, in PEM; clients without one are refused
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CLIENT_CA", value_delimiter = ',', hide = true)]
    pub(crate) client_ca: Vec<PathBuf>,

    /// Make a certificate for localhost and this machine's addresses, which clients do not trust unless they
    /// know its fingerprint: for development
    #[arg(long, value_name = "true|false", env = "PLIMSOLL_SELF_SIGNED", default_value = "false")]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) self_signed: bool,

    /// Where clients may log in with a password without encryption: loopback (from this machine, and over
    /// Unix sockets unless a proxy reports http), or allow (from everywhere, where others can read it)
    #[arg(
        long,
        value_name = "loopback|allow",
        hide_possible_values = true,
        env = "PLIMSOLL_PLAIN_PASSWORDS",
        default_value = "loopback"
    )]
    pub(crate) plain_passwords: PlainPasswords,

    /// Redirect clients that use HTTP without encryption to HTTPS, under the names of the certificates; not
    /// those of this machine's Unix sockets, and not /healthz and /readyz
    #[arg(long, value_name = "true|false", env = "PLIMSOLL_HTTP_REDIRECT", default_value = "false")]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) http_redirect: bool,

    /// How long browsers shall use nothing but HTTPS for the server's names (HSTS), such as 180d, or off
    #[arg(long, value_name = "TIME|off", env = "PLIMSOLL_HSTS", default_value = "off")]
    pub(crate) hsts: TimeOrOff,
}
