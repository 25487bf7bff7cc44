//! The kinds of a store's errors, which metrics count.
//!
//! A kind is taken from a code or a type, never from a text.

#[cfg(feature = "database")]
use std::io::{self, ErrorKind};

use super::DirectoryError;

/// Why a store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not respond before the deadline.
    Timeout,
    /// No server accepts at its address, or the host has none.
    Unreachable,
    /// The TLS handshake failed, or the server is not trusted.
    Tls,
    /// It refuses the user, or demands a method that is not supported.
    Authentication,
    /// It closed the connection.
    Closed,
    /// The server is no longer the one that may write. It has executed nothing.
    Moved,
    /// The tables are of another version, or closed to servers.
    Schema,
}

impl Fault {
    /// Returns the kind of an error of a socket.
    #[cfg(feature = "database")]
    pub(super) fn of_io(error: &io::Error) -> Option<Fault> {
        Some(match error.kind() {
            ErrorKind::TimedOut => Fault::Timeout,
            ErrorKind::ConnectionRefused
            | ErrorKind::NotFound
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            // The backlog of a Unix socket is full.
            | ErrorKind::WouldBlock => Fault::Unreachable,
            // The error of the TLS library, and of names that do not resolve.
            ErrorKind::InvalidData => Fault::Tls,
            ErrorKind::PermissionDenied => Fault::Authentication,
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Fault::Closed,
            _ => return None,
        })
    }
}

impl DirectoryError {
    /// The kinds of errors, as metrics name them.
    pub(super) const KINDS: [&str; 10] = [
        "timeout",
        "unreachable",
        "tls",
        "authentication",
        "closed",
        "moved",
        "schema",
        "full",
        "rolled_back",
        "other",
    ];

    /// Returns the index of the error's kind in [`DirectoryError::KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            DirectoryError::Unavailable(fault, _) => *fault as usize,
            DirectoryError::Full(_) => 7,
            DirectoryError::RolledBack(_) => 8,
            DirectoryError::Failed(_) => 9,
        }
    }

    /// Creates the error of a store. Without a kind, it is [`DirectoryError::Failed`].
    #[cfg(feature = "database")]
    pub(super) fn of(store: &str, fault: Option<Fault>, why: &dyn std::fmt::Display) -> DirectoryError {
        let text = format!("{store}: {why}");
        match fault {
            Some(fault) => DirectoryError::Unavailable(fault, text),
            None => DirectoryError::Failed(text),
        }
    }
}
