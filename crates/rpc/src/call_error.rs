//! Why a call has no response.
//!
//! The error that a server reports is part of a response, not one of these. Invariant: no text repeats
//! the secret or anything that the server sent.

use plimsoll_client::http;

/// The reason why there is no response. Its text is for the log and the operator.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed, or the response did not arrive in time.
    #[error("{0}")]
    Transport(http::Error),
    /// The server requires a certificate of this client, or does not trust it.
    #[error(
        "it does not trust this server: give --tier-certificate and --tier-key, signed by the authority that \
         its --client-ca names"
    )]
    Identity,
    /// The certificate of the server is not trusted.
    #[error("{0} Give --tier-ca FILE with the certificate of its authority, or with its own")]
    Untrusted(http::Error),
    /// The method's deadline has passed.
    #[error("it did not answer in time")]
    Deadline,
    /// Too many calls wait for a connection. The call was not sent.
    #[error("too many requests wait for it")]
    Busy,
    /// The server does not accept the secret.
    #[error("it does not take the secret; give the same --secret-file to both")]
    Secret,
    /// The server does not know the request, and responds with this status.
    #[error("it does not know the request, and says {0}; the two may be of different versions")]
    Unknown(u16),
    /// The server responds with an unexpected status.
    #[error("it says {0}")]
    Status(u16),
    /// The response is not of the expected type.
    #[error("its answer is not what was asked for; the two may be of different versions")]
    Malformed,
}

impl From<http::Error> for CallError {
    fn from(error: http::Error) -> CallError {
        match error {
            http::Error::Broken { source, .. } if http::refuses_identity(&source) => CallError::Identity,
            error if error.is_untrusted() => CallError::Untrusted(error),
            error => CallError::Transport(error),
        }
    }
}
