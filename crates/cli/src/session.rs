//! Login sessions stored on this machine, and the one that a command uses.
//!
//! It sends no request. Invariants: a token is only in a file that no other user can read. After a log-out,
//! no command acts as another account unless its name is given.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::state::{StateFolder, key};

/// The key of the one value that says which sessions are in use.
const IN_USE: &str = "in-use";

/// A session as it is stored on this machine.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The server's URL.
    pub(crate) server: String,
    /// The account's name.
    pub(crate) account: String,
    /// The token.
    pub(crate) token: String,
    /// The end of its validity, as the server wrote it.
    pub(crate) expires: String,
    /// The time of the login, in nanoseconds since 1970.
    since: u128,
}

/// Which account a command uses when no `--account` is given: one for each server, or none after a log-out.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct AccountsInUse {
    /// The server of the last login. It outlives a log-out, so that the next login goes there too.
    pub(crate) server: Option<String>,
    /// The account in use at each server.
    accounts: BTreeMap<String, String>,
}

impl Session {
    /// Returns a session that starts now.
    pub(crate) fn begun(server: String, account: String, token: String, expires: String) -> Session {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Session { server, account, token, expires, since }
    }

    /// Returns every stored session, the latest login last.
    pub(crate) fn all() -> anyhow::Result<Vec<Session>> {
        let mut all = StateFolder::of("sessions")?.all::<Session>()?;
        all.sort_by_key(|session| session.since);
        Ok(all)
    }

    /// Returns the session of `account` with `server`, or of the account in use there. Without a server,
    /// returns the session with the server of the last login. If `account` has none there, returns its
    /// latest session.
    pub(crate) fn find(server: Option<&str>, account: Option<&str>) -> anyhow::Result<Option<Session>> {
        let (mut all, in_use) = (Session::all()?, AccountsInUse::load()?);
        let default_server = server.or(in_use.server.as_deref());
        let account_in_use = default_server.and_then(|server| in_use.accounts.get(server));
        let Some(account) = account.or(account_in_use.map(String::as_str)) else { return Ok(None) };
        all.retain(|session| {
            session.account == account && server.is_none_or(|server| server == session.server)
        });
        let at_default = all.iter().position(|session| Some(session.server.as_str()) == default_server);
        Ok(match at_default {
            Some(index) => Some(all.swap_remove(index)),
            None => all.pop(),
        })
    }

    /// Stores the session in place of an earlier one of the same account, and puts it in use.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let mut in_use = AccountsInUse::load()?;
        StateFolder::of("sessions")?.save(&self.key(), self)?;
        in_use.server = Some(self.server.clone());
        in_use.accounts.insert(self.server.clone(), self.account.clone());
        in_use.save()
    }

    /// Removes the session from this machine. If it was in use, no session with its server is in use after.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        let mut in_use = AccountsInUse::load()?;
        if in_use.accounts.get(&self.server) == Some(&self.account) {
            in_use.accounts.remove(&self.server);
        }
        // First, so that a crash between the two never leaves another account in use.
        in_use.save()?;
        StateFolder::of("sessions")?.forget(&self.key())
    }

    fn key(&self) -> String {
        key(&[self.server.as_bytes(), self.account.as_bytes()])
    }
}

impl AccountsInUse {
    /// Reads the stored choice. Where none is stored, the last login at each server is in use.
    pub(crate) fn load() -> anyhow::Result<AccountsInUse> {
        if let Some(stored) = StateFolder::of(IN_USE)?.load(IN_USE)? {
            return Ok(stored);
        }
        let mut in_use = AccountsInUse::default();
        for session in Session::all()? {
            in_use.server = Some(session.server.clone());
            in_use.accounts.insert(session.server, session.account);
        }
        Ok(in_use)
    }

    fn save(&self) -> anyhow::Result<()> {
        StateFolder::of(IN_USE)?.save(IN_USE, self)
    }
}
