//! Sessions: the result of a log-in, and how a token identifies one.
//!
//! They are not stored here. Invariant: a token is in the response to its log-in only. Otherwise the
//! server uses its hash. 128 random bits need no slow hash.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_io::Io;
use plimsoll_wire::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::account::Account;
use crate::links::{Link, PresentedLink};
use crate::remembered::Verified;

/// The prefix of every token, for scanners that look for leaked secrets.
const MARK: &str = "pls_";
const TOKEN_BYTES: usize = 16;

/// A session's number: the BLAKE3 hash of its token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) [u8; 32]);

impl SessionId {
    /// Returns the session whose token has this hash.
    pub fn from_hash(hash: [u8; 32]) -> SessionId {
        SessionId(hash)
    }

    /// Returns the number of the session that `token` opens; `None` if it does not have the form of a
    /// token.
    pub(crate) fn of_token(token: &[u8]) -> Option<SessionId> {
        let drawn = hex::decode(token.strip_prefix(MARK.as_bytes())?)?;
        let drawn: [u8; TOKEN_BYTES] = drawn.try_into().ok()?;
        Some(SessionId::of(&drawn))
    }

    fn of(drawn: &[u8; TOKEN_BYTES]) -> SessionId {
        SessionId(*blake3::hash(drawn).as_bytes())
    }
}

/// Serialises as hexadecimal digits.
impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::encode(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionId, D::Error> {
        let bytes = hex::decode(String::deserialize(deserializer)?.as_bytes());
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(SessionId).ok_or_else(|| serde::de::Error::custom("a session is 64 hexadecimal digits"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}

/// Draws a new token. Returns its text and its session's number.
pub(crate) fn draw_token(io: &Io) -> (String, SessionId) {
    let mut drawn = [0; TOKEN_BYTES];
    io.entropy(&mut drawn);
    (format!("{MARK}{}", hex::encode(&drawn)), SessionId::of(&drawn))
}

/// The result of a log-in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogIn {
    /// The token, which gives access to the account.
    pub token: String,
    /// When the session ends without a log-out.
    pub expires: SystemTime,
    /// The session's account.
    pub account: Account,
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogIn { expires, account, .. } = self;
        f.debug_struct("LogIn").field("expires", expires).field("account", account).finish_non_exhaustive()
    }
}

/// The account of a client, as verified by a token or a password. A visitor of a public link has the account
/// of the link's owner, with the rights of the link.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The account, in its state when it was verified.
    pub account: Arc<Account>,
    pub(crate) credential: Credential,
    /// The public link, if that is the credential. It reaches no path beside its own.
    pub(crate) link: Option<Arc<PresentedLink>>,
    pub(crate) verified: Verified,
}

/// The kind of credential that verified an identity. No secret can be derived from it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential {
    /// A session's token.
    Session(SessionId),
    /// The account's password of this version.
    Password(i64),
    /// The token of a public link.
    Link,
}

impl Identity {
    /// Returns the session, if a token verified the identity.
    pub fn session(&self) -> Option<SessionId> {
        match self.credential {
            Credential::Session(session) => Some(session),
            Credential::Password(_) | Credential::Link => None,
        }
    }

    /// Returns the public link, if its token verified the identity.
    pub fn link(&self) -> Option<&Link> {
        self.link.as_deref().map(|presented| &presented.link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_the_form_of_a_token_opens_no_session() {
        let good = format!("pls_{}", "0a".repeat(16));
        assert!(SessionId::of_token(good.as_bytes()).is_some());
        for bad in ["", "pls_", &good[4..], &good[..35], &format!("{good}00"), &good.to_uppercase()] {
            assert_eq!(SessionId::of_token(bad.as_bytes()), None, "{bad}");
        }
    }
}
