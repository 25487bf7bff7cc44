//! Why a request has no answer, and what to do then.
//!
//! Not here: answers that say no; they are answers. What must hold: each text says what was wrong and what
//! to do next, and repeats nothing that the server sent.

use std::fmt;
use std::io;

use plimsoll_wire::http::response::BadResponse;

/// Why there is no answer, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be sent as it is: the program's mistake.
    #[error("The request cannot be sent: {0}.")]
    Request(&'static str),
    /// The name of the server has no address.
    #[error("The name {host} cannot be looked up: {source}. Check its spelling, or write an IP address.")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// No connection was made.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// The server, as the person wrote it.
        to: String,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke.
    #[error("The connection broke {when}: {source}. Try again.")]
    Broken {
        /// How far it had got.
        when: When,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing happened for too long.
    #[error("The server took too long {0}. Try again later, or look at its load.")]
    Late(When),
    /// What came is no answer.
    #[error("The answer cannot be understood: {0}. Check that the address is that of an HTTP server.")]
    Malformed(#[from] BadResponse),
    /// Interim answers came without end, or a protocol that nobody asked for.
    #[error("The server did not answer what was asked. Check that the address is that of an HTTP server.")]
    Unasked,
    /// The answer's body is not what it should be.
    #[error("The answer is not {0}. Check that the address is that of a plimsoll server.")]
    Unreadable(&'static str),
    /// The answer's body is longer than the caller takes.
    #[error("The answer is longer than {bytes_max} bytes, which is more than is taken. Ask for less.")]
    TooLong {
        /// What the caller takes.
        bytes_max: usize,
    },
    /// What was to be sent could not be read.
    #[error("What was to be sent could not be read: {0}. Check it and send it again.")]
    Source(io::Error),
}

/// How far a request had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The request was not sent as a whole.
    Sending,
    /// The request was sent, its answer had not begun, or not to its head's end.
    Waiting,
    /// The answer's body was not whole.
    Receiving,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Sending => "while the request was sent",
            When::Waiting => "before the answer came",
            When::Receiving => "in the middle of the answer",
        })
    }
}
