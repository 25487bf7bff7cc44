//! Errors of a request without a complete answer, with advice.
//!
//! Answers with an error status are not here: they are answers. Invariants: each text says what was wrong
//! and what to do next. It repeats nothing that the server sent.

use std::fmt;
use std::io;

use plimsoll_tls::HandshakeError;
use plimsoll_wire::http::response::BadResponse;

use super::url::Url;

/// The reason why there is no answer, or only a part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be sent as it is: a bug in the program.
    #[error("The request cannot be sent: {0}.")]
    Request(&'static str),
    /// The name of the server has no address.
    #[error("The name {host} cannot be looked up: {source}. Check its spelling, or write an IP address.")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The connection could not be established.
    #[error(
        "Cannot connect to {to}: {source}. Check that the server is running and that this is its address."
    )]
    Connect {
        /// The server, as the person wrote it.
        to: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The connection could not be encrypted, or the server is not trusted.
    #[error("{to} is not connected to: {source}.{}", advice(source))]
    Tls {
        /// The server, as the person wrote it.
        to: String,
        /// The reason.
        source: HandshakeError,
    },
    /// The connection broke.
    #[error("The connection broke {when}: {source}. {}", advice_on_broken(source))]
    Broken {
        /// The stage of the request.
        when: When,
        /// The kernel's error.
        source: io::Error,
    },
    /// A wait took too long.
    #[error("The server took too long {0}. Try again later, or look at its load.")]
    Late(When),
    /// The received bytes are no HTTP answer.
    #[error("The answer cannot be understood: {0}. Check that the address is that of an HTTP server.")]
    Malformed(#[from] BadResponse),
    /// Too many interim answers came, or a switch to a protocol that was not requested.
    #[error("The server did not answer what was asked. Check that the address is that of an HTTP server.")]
    Unexpected,
    /// The answer's body is not of the expected form.
    #[error("The answer is not {0}. Check that the address is that of a plimsoll server.")]
    Unreadable(&'static str),
    /// The answer's body is longer than the caller accepts.
    #[error("The answer is longer than {bytes_max} bytes, which is more than is taken. Ask for less.")]
    TooLong {
        /// The caller's bound.
        bytes_max: usize,
    },
    /// The source of the request's body failed.
    #[error("The data to send could not be read: {0}. Check it and send it again.")]
    Source(io::Error),
}

impl Error {
    /// Returns the error of a handshake with the server at `url`. A connection that broke meanwhile is not
    /// different from one that could not be established.
    pub(super) fn of_handshake(url: &Url, error: HandshakeError) -> Error {
        let to = url.to_string();
        let kind = match &error {
            HandshakeError::Connection(error) => error.kind(),
            HandshakeError::Late => io::ErrorKind::TimedOut,
            _ => return Error::Tls { to, source: error },
        };
        Error::Connect { to, source: io::Error::new(kind, error) }
    }

    /// Whether the server's certificate is not trusted.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        matches!(self, Error::Tls { source: HandshakeError::Untrusted(_), .. })
    }
}

fn advice_on_broken(error: &io::Error) -> &'static str {
    match plimsoll_tls::refuses_identity(error) {
        true => "The server requires a certificate of this client that it trusts.",
        false => "Try again.",
    }
}

fn advice(error: &HandshakeError) -> &'static str {
    match error {
        HandshakeError::Untrusted(_) => {
            " Check that this is the right server, and which certificates are trusted."
        }
        _ => " Check that the server speaks TLS at this address.",
    }
}

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The request was not sent in full.
    Sending,
    /// The request was sent; the head of its answer had not been received in full.
    Waiting,
    /// The answer's body had not been received in full.
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
