//! The errors of a request, by kind.
//!
//! Not here: advice on remedies, which depends on the owner of the server. Invariant: each kind has one
//! stable name, since programs read it.

use std::io;

use plimsoll_wire::http::response::BadResponse;

/// The reason why a request has no complete and correct response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No connection was established.
    #[error("no connection: {0}")]
    Connect(io::Error),
    /// The connection broke before the response's body.
    #[error("the connection broke before the answer: {0}")]
    Broken(io::Error),
    /// The body ended early.
    #[error("the body ended early: {0}")]
    Short(io::Error),
    /// The request exceeded its timeout.
    #[error("it took too long")]
    Timeout,
    /// The server refused the request with this status.
    #[error("the status was {0}")]
    Status(u16),
    /// The server refused the request, in a protocol without status codes.
    #[error("it was refused")]
    Refused,
    /// The received bytes are not a response.
    #[error("the received bytes are no response: {0}")]
    Malformed(&'static str),
    /// The body differs from its reference.
    #[error("the body was not what it should be")]
    WrongBody,
    /// A body could not be saved.
    #[error("a body cannot be kept: {0}")]
    Keeping(io::Error),
}

impl Failure {
    /// Returns the kind's name.
    pub(crate) fn kind(&self) -> String {
        match self {
            Failure::Connect(_) => "connect",
            Failure::Broken(_) => "broken",
            Failure::Short(_) => "short_body",
            Failure::Timeout => "timeout",
            Failure::Status(status) => return format!("status_{status}"),
            Failure::Refused => "refused",
            Failure::Malformed(_) => "malformed",
            Failure::WrongBody => "wrong_body",
            Failure::Keeping(_) => "not_kept",
        }
        .to_owned()
    }
}

impl From<BadResponse> for Failure {
    fn from(bad: BadResponse) -> Failure {
        Failure::Malformed(bad.detail())
    }
}
