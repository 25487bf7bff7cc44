//! Why something that was asked was not done, and what to do then.
//!
//! What must hold: each text says what was wrong and what to do next, and repeats no text that the server
//! sent; only the number of its answer.

use std::fmt;
use std::io;

use plimsoll_wire::ftp::answers::BadAnswer;
use plimsoll_wire::ftp::command::Verb;

/// Why it was not done, or nobody knows whether it was.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command cannot be sent as it is: the program's mistake.
    #[error("The command cannot be sent: {0}.")]
    Request(&'static str),
    /// No connection was made.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// Where it was to go: the server, or the place that it named for a transfer.
        to: String,
        /// What the system says.
        source: io::Error,
    },
    /// A connection broke.
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
    /// The server said no.
    #[error("The server refused {asked} ({code}). Check names and rights; 4xx may pass, 5xx stays.")]
    Refused {
        /// What was asked.
        asked: Asked,
        /// The number of its answer.
        code: u16,
        /// The last line of its answer, as it came.
        text: Vec<u8>,
    },
    /// What came is no answer.
    #[error("The answer to {asked} cannot be understood: {source}. Check that it is an FTP server.")]
    Malformed {
        /// What was asked.
        asked: Asked,
        /// What is wrong with it.
        source: BadAnswer,
    },
    /// An answer came that says neither yes nor no to what was asked.
    #[error("The answer to {0} does not fit it. Check that the address is that of an FTP server.")]
    Unasked(Asked),
    /// An earlier command was given up, and its answer may still come.
    #[error("The session was left in the middle of something. Connect again.")]
    OutOfStep,
    /// What was to be sent could not be read.
    #[error("What was to be sent could not be read: {0}. Check it and send it again.")]
    Source(io::Error),
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The connection itself.
    Greeting,
    /// A command.
    Verb(Verb),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Asked::Greeting => "the connection",
            Asked::Verb(verb) => verb.name(),
        })
    }
}

/// How far things had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// An answer had not come to its end.
    Waiting(Asked),
    /// A file had not been sent as a whole.
    Sending,
    /// A file or a listing had not come as a whole.
    Receiving,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Waiting(asked) => write!(f, "before the answer to {asked} came"),
            When::Sending => f.write_str("while the file was sent"),
            When::Receiving => f.write_str("in the middle of what it sent"),
        }
    }
}
