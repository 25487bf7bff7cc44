//! Errors of the auth tier, with texts for the client.
//!
//! They are not what the log says: a directory that cannot be reached is logged where it happens, with
//! its cause, and is `Unavailable` here. Invariant: no text reveals to a stranger whether an account
//! exists, except at a sign-up with its name.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::BUSY_RETRY_TIME;

/// Why a request failed. Its text is a sentence for the client, with the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// Another account has the name.
    #[error("This name is taken. Choose another one.")]
    NameTaken,
    /// The name is not valid for an account.
    #[error("{0}")]
    BadName(Cow<'static, str>),
    /// The password is too short or too long.
    #[error("{0}")]
    BadPassword(Cow<'static, str>),
    /// The share cannot be created.
    #[error("{0}")]
    BadShare(Cow<'static, str>),
    /// The data to be imported is not a valid account.
    #[error("{0}")]
    BadImport(Cow<'static, str>),
    /// Unknown name, wrong password or disabled account; the client cannot tell which.
    #[error("The name or the password is wrong. Check both and try again.")]
    WrongCredentials,
    /// Like [`Error::WrongCredentials`], to be sent to the client after `wait`. Between tiers only: the
    /// wait must not occupy a front's connection to the authentication server.
    #[error("The name or the password is wrong. Check both and try again.")]
    WrongCredentialsAfter {
        /// How long the response is delayed.
        wait: Duration,
    },
    /// The token belongs to no session, or to one that has ended.
    #[error("The session has ended or never existed. Log in again.")]
    NoSession,
    /// The account may not do this.
    #[error("This account may not do that. Ask the server's operator for the permission.")]
    NotAllowed,
    /// An administrator would take its right from itself.
    #[error(
        "You cannot disable your own account or take the right administer from it. Another administrator can."
    )]
    OwnRight,
    /// There are no public links here: the operator has turned them off, or accounts are of another system.
    #[error(
        "This server has no public links. Share with an account, or ask the operator to turn public links on."
    )]
    NoLinks,
    /// The link has permitted as many downloads or uploads as it may.
    #[error("This link is used up. Ask the person who sent it for another one.")]
    LinkUsedUp,
    /// There are no locks here: accounts are of another system.
    #[error("This server has no locks.")]
    NoLocks,
    /// A lock excludes the change, or the other lock.
    #[error("{holder} has locked this. Try again when the lock has ended, or ask {holder} to unlock it.")]
    Locked {
        /// The path of the lock, in its home.
        path: Vec<u8>,
        /// The name of the account that holds it.
        holder: String,
    },
    /// The lock is held by another account, and the account is not that of the home.
    #[error("Another account holds this lock. Only it and the owner of the files may end the lock.")]
    LockOfAnother,
    /// The account holds as many locks as it may in this home, or others do, or too many shared ones meet.
    #[error("There are too many locks already. Unlock something that is no longer needed.")]
    TooManyLocks,
    /// Only the operator creates accounts.
    #[error("Sign-up is closed here. Ask the server's operator for an account.")]
    SignUpClosed,
    /// It does not exist, or the caller may not know that it does.
    #[error("There is no such thing. Check the name, and that it is shared with this account.")]
    NotFound,
    /// Too many failures for this name or from this address.
    #[error("Too many attempts. Try again in {} s.", seconds(*retry_after))]
    TooManyAttempts {
        /// When the next attempt is admitted.
        retry_after: Duration,
    },
    /// A queue is full.
    #[error("The server is busy. Try again in {} s.", seconds(*retry_after))]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk is full.
    #[error("The disk that has the accounts is full. Nothing was changed; its operator can make room.")]
    Full,
    /// The directory does not answer; the log says why.
    #[error("Accounts cannot be looked up at the moment. Try again later.")]
    Unavailable,
}

/// Rounds up to whole seconds: a client that retries then is admitted.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Error {
    /// Returns a sentence for the client, with the problem and the remedy.
    pub fn detail(&self) -> String {
        self.to_string()
    }

    /// Returns how long to wait before a retry, where one may help.
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
    fn a_wait_is_stated_in_whole_seconds_rounded_up() {
        let detail_of = |millis| Error::Busy { retry_after: Duration::from_millis(millis) }.detail();
        assert_eq!(detail_of(1000), "The server is busy. Try again in 1 s.");
        assert_eq!(detail_of(1001), "The server is busy. Try again in 2 s.");
    }
}
