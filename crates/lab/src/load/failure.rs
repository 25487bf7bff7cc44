//! What can go wrong with a request, by kind.
//!
//! Not here: what a person should do about it; that depends on who owns the server. What must hold: each
//! kind has one name, which stays, since programs read it.

use std::io;

use plimsoll_wire::http::response::BadResponse;

/// Why a request has no whole and right answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No connection was made.
    #[error("no connection: {0}")]
    Connect(io::Error),
    /// The connection broke before the answer's body began.
    #[error("the connection broke before the answer: {0}")]
    Broken(io::Error),
    /// The body ended early.
    #[error("the body ended early: {0}")]
    Short(io::Error),
    /// It took too long.
    #[error("it took too long")]
    Timeout,
    /// The server said no.
    #[error("the status was {0}")]
    Status(u16),
    /// The server said no, in a protocol whose answers have no numbers.
    #[error("it was refused")]
    Refused,
    /// What came is no answer.
    #[error("what came is no answer: {0}")]
    Malformed(&'static str),
    /// The body is not what it should be.
    #[error("the body was not what it should be")]
    WrongBody,
    /// A body that was to be kept could not be.
    #[error("a body cannot be kept: {0}")]
    Keeping(io::Error),
}

impl Failure {
    /// The kind's name.
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
