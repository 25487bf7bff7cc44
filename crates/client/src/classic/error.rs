//! Why something that was asked was not done, and what to do then.
//!
//! What must hold: each text says what was wrong and what to do next, and repeats no text that the server
//! sent.

use std::fmt;
use std::io;

use plimsoll_wire::classic::Unwritable;

/// Why it was not done, or nobody knows whether it was.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name, the password or the file cannot be sent.
    #[error("The request cannot be sent: {0}.")]
    Request(#[from] Unwritable),
    /// No connection was made.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// Where it was to go.
        to: String,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke.
    #[error("The connection broke {when}: {source}. Try again.")]
    Broken {
        /// How far things had got.
        when: When,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing happened for too long.
    #[error("The server took too long {0}. Try again later, or look at its load.")]
    Late(When),
    /// The server said no, and why.
    #[error("The server refused. Check the name, the password and the file.")]
    Refused(Vec<u8>),
    /// What came is no answer to what was asked.
    #[error("What came is no answer. Check that the address is that of a server of classic.")]
    Malformed,
}

/// How far things had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// An answer had not come to its end.
    Waiting,
    /// A file had not come as a whole.
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
