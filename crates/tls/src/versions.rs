//! The versions of TLS that a server or a client accepts.
//!
//! It negotiates nothing. Invariant: no version before 1.2 is ever accepted.

use rustls::{SupportedProtocolVersion, version};

/// The oldest version of TLS that is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

impl MinVersion {
    pub(crate) fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            MinVersion::Tls12 => &ALL,
            MinVersion::Tls13 => &ALL[..1],
        }
    }
}
