//! Sessions: which accounts of which servers a person is logged in to.
//!
//! It asks no server. What must hold: a token is in a file that only the person can read, and nowhere else;
//! the session that is meant when nothing else is said is that of the last login.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::state::{State, key};

/// A session, as it is remembered.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The server's URL.
    pub(crate) server: String,
    /// The account's name.
    pub(crate) account: String,
    /// The token.
    pub(crate) token: String,
    /// When it ends, as the server told it.
    pub(crate) expires: String,
    /// When it was begun, in nanoseconds since 1970.
    since: u128,
}

impl Session {
    /// A session that begins now.
    pub(crate) fn begun(server: String, account: String, token: String, expires: String) -> Session {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Session { server, account, token, expires, since }
    }

    /// The session of the last login, among those with this server and this account.
    pub(crate) fn last(server: Option<&str>, account: Option<&str>) -> anyhow::Result<Option<Session>> {
        let all = State::of("sessions")?.all::<Session>()?;
        Ok(all
            .into_iter()
            .filter(|session| session.is_of(server, account))
            .max_by_key(|session| session.since))
    }

    fn is_of(&self, server: Option<&str>, account: Option<&str>) -> bool {
        server.is_none_or(|server| server == self.server)
            && account.is_none_or(|account| account == self.account)
    }

    /// Remembers it, in place of an earlier one of the same account.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        State::of("sessions")?.save(&self.key(), self)
    }

    /// Forgets it.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        State::of("sessions")?.forget(&self.key())
    }

    fn key(&self) -> String {
        key(&[self.server.as_bytes(), self.account.as_bytes()])
    }
}
