//! Sessions: what a log-in gives, and how a token is known again.
//!
//! It is not where they are stored. What must hold: only the hash of a token leaves the answer that gave it
//! out; 128 bits of chance need no slow hash.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_io::Io;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::account::Account;
use crate::hex;
use crate::remembered::Verified;

/// What every token begins with: a scanner for leaked secrets can look for it.
const MARK: &str = "pls_";
const TOKEN_BYTES: usize = 16;

/// A session's number: the BLAKE3 hash of its token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) [u8; 32]);

impl SessionId {
    /// The session whose token has this hash.
    pub fn from_hash(hash: [u8; 32]) -> SessionId {
        SessionId(hash)
    }

    /// The number of the session that `token` opens; `None` if it has not the form of a token.
    pub(crate) fn of_token(token: &[u8]) -> Option<SessionId> {
        let drawn = hex::bytes(token.strip_prefix(MARK.as_bytes())?)?;
        let drawn: [u8; TOKEN_BYTES] = drawn.try_into().ok()?;
        Some(SessionId::of(&drawn))
    }

    fn of(drawn: &[u8; TOKEN_BYTES]) -> SessionId {
        SessionId(*blake3::hash(drawn).as_bytes())
    }
}

/// As hexadecimal digits.
impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::text(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionId, D::Error> {
        let bytes = hex::bytes(String::deserialize(deserializer)?.as_bytes());
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(SessionId).ok_or_else(|| serde::de::Error::custom("a session is 64 hexadecimal digits"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::text(&self.0[..4]))
    }
}

/// A new token's text and its session's number.
pub(crate) fn draw_token(io: &Io) -> (String, SessionId) {
    let mut drawn = [0; TOKEN_BYTES];
    io.entropy(&mut drawn);
    (format!("{MARK}{}", hex::text(&drawn)), SessionId::of(&drawn))
}

/// What a log-in gives.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogIn {
    /// The token: whoever has it is the account.
    pub token: String,
    /// When the session ends if nobody logs out.
    pub expires: SystemTime,
    /// Whose session it is.
    pub account: Account,
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogIn { expires, account, .. } = self;
        f.debug_struct("LogIn").field("expires", expires).field("account", account).finish_non_exhaustive()
    }
}

/// Who asks, as was shown by a token or a password.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The account, as it was when this was shown.
    pub account: Arc<Account>,
    pub(crate) credential: Credential,
    pub(crate) verified: Verified,
}

/// What showed an identity. No secret can be got from it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential {
    /// A session's token.
    Session(SessionId),
    /// The account's password of this version.
    Password(i64),
}

impl Identity {
    /// The session, if a token showed it.
    pub fn session(&self) -> Option<SessionId> {
        match self.credential {
            Credential::Session(session) => Some(session),
            Credential::Password(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_the_form_of_a_token_opens_nothing() {
        let good = format!("pls_{}", "0a".repeat(16));
        assert!(SessionId::of_token(good.as_bytes()).is_some());
        for bad in ["", "pls_", &good[4..], &good[..35], &format!("{good}00"), &good.to_uppercase()] {
            assert_eq!(SessionId::of_token(bad.as_bytes()), None, "{bad}");
        }
    }
}
