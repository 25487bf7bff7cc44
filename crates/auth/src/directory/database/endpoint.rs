//! The network address of a database.
//!
//! It resolves no name.

use std::fmt;
use std::path::PathBuf;

/// The network address of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::directory) enum Endpoint {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(host, port) => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
