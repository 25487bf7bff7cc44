//! Whether a right that was verified earlier is still valid: for transfers, which outlast a request.
//!
//! It reads nothing from the directory except whether other processes have changed it. Invariant: the
//! next call sees a change that this process has noted, at the cost of a few atomic loads.

use plimsoll_io::Io;

use super::Auth;
use crate::changes::{Stamp, Topic};
use crate::error::Error;
use crate::limits::CLOCK_SKEW_MAX;
use crate::request::AuthRequest;
use crate::sessions::Identity;
use crate::shares::Grant;
use plimsoll_rpc::time::{self, Millis, millis};

/// When a grant was read, and the account whose changes end it.
#[derive(Clone, Debug)]
pub struct GrantBasis {
    owner: i64,
    /// Taken before the grant was read.
    stamp: Stamp,
    since: Millis,
    /// When the first of its shares expires.
    until: Millis,
}

impl Auth {
    /// Like [`Auth::granted`]. Also returns the data by which later calls check whether the grant can
    /// have changed.
    ///
    /// # Errors
    /// Those of [`Auth::granted`].
    pub async fn granted_with_basis(
        &self,
        io: &Io,
        caller: &Identity,
        owner: &str,
        path: &[u8],
    ) -> Result<(Grant, GrantBasis), Error> {
        let (stamp, since) = (self.changes().stamp(), time::now(io));
        let (owner, path) = (owner.to_owned(), path.to_vec());
        let grant: Grant =
            self.ask(io, AuthRequest::Granted { account: caller.account.id, owner, path }).await?;
        let expiries = grant.shares.iter().filter_map(|share| share.expires).map(time::since_1970);
        let until = expiries.min().unwrap_or(Millis::MAX);
        let basis = GrantBasis { owner: grant.owner.id, stamp, since, until };
        Ok((grant, basis))
    }

    /// Returns whether a grant is known to be unchanged since it was read, so that it need not be read
    /// again. Starts a poll for other processes' changes if that is due. Never waits.
    pub fn grant_holds(&self, io: &Io, basis: &GrantBasis) -> bool {
        let (poll_ahead, is_trusted, now) = (self.poll_ahead(io), self.is_trusted(io), time::now(io));
        // If the clock was set back, the grant seems to come from the future: then it is read again.
        let is_in_time = basis.since <= now + millis(CLOCK_SKEW_MAX) && now < basis.until;
        poll_ahead && is_trusted && is_in_time && self.is_grant_current(basis)
    }

    /// Returns whether no change was noted that could have ended these rights since they were last
    /// verified. Uses neither clock nor directory, so it can be called from any thread that must not
    /// block.
    pub fn is_unchanged(&self, caller: &Identity, grant: Option<&GrantBasis>) -> bool {
        caller.is_current(self.changes()) && grant.is_none_or(|basis| self.is_grant_current(basis))
    }

    fn is_grant_current(&self, basis: &GrantBasis) -> bool {
        let topics = [Topic::Shares(basis.owner), Topic::Account(basis.owner)];
        topics.into_iter().all(|topic| self.changes().is_current(topic, basis.stamp))
    }
}
