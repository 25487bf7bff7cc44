//! Errors of a classic request, with advice.
//!
//! Invariants: each text says what was wrong and what to do next. It repeats no text of the server.

use std::fmt;
use std::io;

use plimsoll_wire::classic::Unwritable;

/// The reason why a request failed, or why its result is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name, the password or the file cannot be sent.
    #[error("The request cannot be sent: {0}.")]
    Request(#[from] Unwritable),
    /// The connection could not be established.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// The server's address.
        to: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The connection broke.
    #[error("The connection broke {when}: {source}. Try again.")]
    Broken {
        /// The stage of the request.
        when: When,
        /// The kernel's error.
        source: io::Error,
    },
    /// A wait took too long.
    #[error("The server took too long {0}. Try again later, or look at its load.")]
    Late(When),
    /// The server refused, with this reason.
    #[error("The server refused. Check the name, the password and the file.")]
    Refused(Vec<u8>),
    /// The received bytes do not answer the request.
    #[error("The received bytes are no response. Check that the address is that of a server of classic.")]
    Malformed,
}

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The answer had not been received in full.
    Waiting,
    /// A file had not been received in full.
    Receiving,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Waiting => "before the answer came",
            When::Receiving => "in the middle of the file",
        })
    }
}
