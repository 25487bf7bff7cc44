//! The reasons why a request has no whole response, and the proxy's own answer to each.
//!
//! It does not decide whether a request is repeated. Invariant: a failure of the client and one of an origin
//! are never taken for each other.

use std::io;

use plimsoll_client::http::Error;
use plimsoll_tls::{Distrust, HandshakeError};
use plimsoll_wire::http::response::BadResponse;
use plimsoll_wire::http::status::Status;

use crate::body::BodyError;
use crate::own_answers::{OwnAnswer, try_again};

/// Returns the reason of a failed connection to an origin for the operator's log.
pub(crate) fn reason_of_connecting(error: &Error) -> String {
    const ADVICE: &str = "name the certificate of its authority by --origin-ca";
    match error {
        Error::Tls { source: HandshakeError::Untrusted(untrusted), .. }
            if untrusted.reason == Distrust::UnknownAuthority =>
        {
            format!("{untrusted}; {ADVICE}")
        }
        error => error.to_string(),
    }
}

/// The reason why a request has no whole response.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The client has left.
    ClientGone,
    /// The client's body cannot be received.
    ClientBody(Status, &'static str),
    /// Too many requests wait for a connection to the origin.
    Busy,
    /// No origin accepts a connection.
    Unreachable,
    /// No origin accepts an encrypted connection with a certificate that is trusted.
    Untrusted,
    /// No origin accepts a connection in time.
    ConnectLate,
    /// The connection to the origin broke, or the origin closed it, before the end of the response.
    Broken,
    /// The origin took too long.
    Late,
    /// The origin's bytes are not a response to the request.
    Malformed(BadResponse),
    /// The origin changed to a protocol that was not requested, or sent too many interim responses.
    Unexpected,
}

impl Failure {
    pub(crate) fn of_connecting(error: &Error) -> Failure {
        match error {
            Error::Connect { source, .. } | Error::Resolve { source, .. }
                if source.kind() == io::ErrorKind::TimedOut =>
            {
                Failure::ConnectLate
            }
            error if error.is_untrusted() => Failure::Untrusted,
            _ => Failure::Unreachable,
        }
    }

    /// The failure of a body that a client sends.
    pub(crate) fn of_client_body(error: BodyError) -> Failure {
        const CUT_SHORT: &str = "The connection ended before the body was complete. Send it again.";
        match error {
            BodyError::Malformed(refusal) => Failure::ClientBody(refusal.status(), refusal.detail()),
            BodyError::Broken(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Failure::ClientBody(Status::BAD_REQUEST, CUT_SHORT)
            }
            BodyError::Broken(_) => Failure::ClientGone,
        }
    }

    /// The failure of a body that an origin sends.
    pub(crate) fn of_origin_body(error: &BodyError) -> Failure {
        match error {
            BodyError::Malformed(refusal) => Failure::Malformed((*refusal).into()),
            BodyError::Broken(_) => Failure::Broken,
        }
    }

    /// Returns the reason for the operator's log.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Failure::Malformed(bad) => bad.detail(),
            Failure::Broken => "the origin ended the connection before the end of its response",
            Failure::Late => "the origin did not answer in time",
            Failure::Busy => {
                "no connection to the origin became free in time; proxy.origin_connections is their bound"
            }
            Failure::Unexpected => "the origin sent what was not requested",
            Failure::Unreachable => "the origin accepts no connection",
            Failure::Untrusted => "the origin is not trusted",
            Failure::ConnectLate => "the origin accepts no connection in time",
            Failure::ClientGone | Failure::ClientBody(..) => "the client's request failed",
        }
    }

    /// Whether the client is at fault.
    pub(crate) fn is_of_client(&self) -> bool {
        matches!(self, Failure::ClientGone | Failure::ClientBody(..))
    }

    /// Returns the response to the client; `None` if it has left.
    pub(crate) fn own_answer(&self) -> Option<OwnAnswer> {
        let (status, detail) = match self {
            Failure::ClientGone => return None,
            Failure::ClientBody(status, detail) => (*status, *detail),
            Failure::Busy => {
                return Some(try_again("The server behind this proxy is busy. Try again shortly."));
            }
            Failure::Unreachable => {
                (Status::BAD_GATEWAY, "The server behind this proxy cannot be reached. Try again later.")
            }
            Failure::Untrusted => (
                Status::BAD_GATEWAY,
                "The server behind this proxy is not trusted. Ask the operator of the proxy.",
            ),
            Failure::ConnectLate => (
                Status::GATEWAY_TIMEOUT,
                "The server behind this proxy accepts no connection in time. Try again later.",
            ),
            Failure::Broken => {
                (Status::BAD_GATEWAY, "The server behind this proxy ended the connection without a response.")
            }
            Failure::Late => (
                Status::GATEWAY_TIMEOUT,
                "The server behind this proxy did not answer in time. Try again later.",
            ),
            Failure::Malformed(_) | Failure::Unexpected => (
                Status::BAD_GATEWAY,
                "The server behind this proxy sent a response that cannot be understood.",
            ),
        };
        Some(OwnAnswer::new(status, detail))
    }
}
