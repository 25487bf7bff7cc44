//! Why a question got no, in the words for whoever asked.
//!
//! It is not what the log says: a directory that cannot be reached is logged where it happens, with its
//! cause, and is `Unavailable` here. What must hold: no text tells whether an account exists, except to
//! somebody who signs up with its name.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::BUSY_RETRY_TIME;

/// Why there is no answer. Its text is a sentence for the peer: what was wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// Another account has the name.
    #[error("This name is taken. Choose another one.")]
    NameTaken,
    /// The name is none that an account can have.
    #[error("{0}")]
    BadName(Cow<'static, str>),
    /// The password is none that an account may have.
    #[error("{0}")]
    BadPassword(Cow<'static, str>),
    /// The share cannot be given.
    #[error("{0}")]
    BadShare(Cow<'static, str>),
    /// What was to be imported is no account.
    #[error("{0}")]
    BadImport(Cow<'static, str>),
    /// Unknown name, wrong password or disabled account: nobody is told which.
    #[error("The name or the password is wrong. Check both and try again.")]
    WrongCredentials,
    /// As [`Error::WrongCredentials`]; the client gets the answer after `wait`. Between tiers only: the wait
    /// must not occupy a front's connection to the authentication server.
    #[error("The name or the password is wrong. Check both and try again.")]
    WrongCredentialsAfter {
        /// How long the answer is withheld.
        wait: Duration,
    },
    /// The token is of no session, or of one that has ended.
    #[error("The session has ended or never was. Log in again.")]
    NoSession,
    /// The account may not do this.
    #[error("This account may not do that. Ask whoever runs the server for the permission.")]
    NotAllowed,
    /// Accounts are made by the operator only.
    #[error("Nobody can sign up here. Ask whoever runs the server for an account.")]
    SignUpClosed,
    /// It is not there, or whoever asks may not know that it is.
    #[error("There is no such thing. Check the name, and that it is shared with this account.")]
    NotFound,
    /// Too many failures for this name or from this address.
    #[error("Too many attempts. Try again in {} s.", seconds(*retry_after))]
    TooManyAttempts {
        /// When the next attempt is let in.
        retry_after: Duration,
    },
    /// Too much is waiting to be done.
    #[error("The server is busy. Try again in {} s.", seconds(*retry_after))]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// There is no room for what was to be stored.
    #[error("The disk that has the accounts is full. Nothing was changed; its operator can make room.")]
    Full,
    /// The directory does not answer; the log says why.
    #[error("Accounts cannot be looked up at the moment. Try again later.")]
    Unavailable,
}

/// Whole seconds, rounded up: who comes back then is let in.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Error {
    /// A sentence for the peer: what was wrong, and what to do.
    pub fn detail(&self) -> String {
        self.to_string()
    }

    /// How long to wait before asking again, where that would help.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::TooManyAttempts { retry_after } | Error::Busy { retry_after } => Some(*retry_after),
            Error::Unavailable => Some(BUSY_RETRY_TIME),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds_that_suffice() {
        let told = |millis| Error::Busy { retry_after: Duration::from_millis(millis) }.detail();
        assert_eq!(told(1000), "The server is busy. Try again in 1 s.");
        assert_eq!(told(1001), "The server is busy. Try again in 2 s.");
    }
}
