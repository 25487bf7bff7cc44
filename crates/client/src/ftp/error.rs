//! Errors of an FTP operation, with advice.
//!
//! Invariants: each text says what was wrong and what to do next. It repeats no text of the server, only the
//! code of its answer.

use std::fmt;
use std::io;

use plimsoll_tls::HandshakeError;
use plimsoll_wire::ftp::command::Verb;
use plimsoll_wire::ftp::reply_parser::BadReply;

/// The reason why an operation failed, or why its result is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command cannot be sent as it is: a bug in the program.
    #[error("The command cannot be sent: {0}.")]
    Request(&'static str),
    /// The connection could not be established.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// The address: the server's, or that of a data connection.
        to: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A connection could not be encrypted.
    #[error(
        "The connection could not be encrypted: {0}. Check that the server has TLS, and a certificate for \
         its name from a trusted authority."
    )]
    Encryption(#[source] HandshakeError),
    /// A connection broke.
    #[error("The connection broke {when}: {source}. Try again.")]
    Broken {
        /// The stage of the operation.
        when: When,
        /// The kernel's error.
        source: io::Error,
    },
    /// A wait took too long.
    #[error("The server took too long {0}. Try again later, or look at its load.")]
    Late(When),
    /// The server refused.
    #[error("The server refused {command} ({code}). Check names and rights; 4xx may pass, 5xx stays.")]
    Refused {
        /// The command.
        command: Command,
        /// The code of its answer.
        code: u16,
        /// The last line of its answer, as received.
        text: Vec<u8>,
    },
    /// The received bytes are no FTP answer.
    #[error("The answer to {command} cannot be understood: {source}. Check that it is an FTP server.")]
    Malformed {
        /// The command.
        command: Command,
        /// The syntax error.
        source: BadReply,
    },
    /// The answer neither confirms nor refuses the command.
    #[error("The answer to {0} does not fit it. Check that the address is that of an FTP server.")]
    Unexpected(Command),
    /// An earlier command was abandoned, and its answer may still come.
    #[error("The session was left in the middle of something. Connect again.")]
    OutOfStep,
    /// The source of an upload failed.
    #[error("The data to send could not be read: {0}. Check it and send it again.")]
    Source(io::Error),
}

/// The subject of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The connection itself.
    Greeting,
    /// A command.
    Verb(Verb),
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Command::Greeting => "the connection",
            Command::Verb(verb) => verb.name(),
        })
    }
}

/// The stage of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The answer had not been received in full.
    Waiting(Command),
    /// A file had not been sent in full.
    Sending,
    /// A file or a listing had not been received in full.
    Receiving,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Waiting(command) => write!(f, "before the answer to {command} came"),
            When::Sending => f.write_str("while the file was sent"),
            When::Receiving => f.write_str("in the middle of what it sent"),
        }
    }
}
