//! Whether a right that was verified some time ago still holds: for transfers, which last longer than a
//! request.
//!
//! It asks no directory, but for changes that other processes made to it. What must hold: a change that this
//! process has noted is seen by the next call, at the cost of a few atomic loads.

use plimsoll_io::Io;

use super::Auth;
use crate::ask::Question;
use crate::changes::{Stamp, Topic};
use crate::error::Error;
use crate::limits::CLOCK_SKEW_MAX;
use crate::sessions::Identity;
use crate::shares::Grant;
use crate::time::{self, Millis, millis};

/// When a grant was read, and what ends it.
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
    /// As [`Auth::granted`], with what tells later whether the grant can have changed.
    ///
    /// # Errors
    /// As [`Auth::granted`].
    pub async fn granted_with_basis(
        &self,
        io: &Io,
        who: &Identity,
        owner: &str,
        path: &[u8],
    ) -> Result<(Grant, GrantBasis), Error> {
        let (stamp, since) = (self.changes().stamp(), time::now(io));
        let (owner, path) = (owner.to_owned(), path.to_vec());
        let grant: Grant = self.ask(io, Question::Granted { account: who.account.id, owner, path }).await?;
        let expiries = grant.shares.iter().filter_map(|share| share.expires).map(time::since_1970);
        let until = expiries.min().unwrap_or(Millis::MAX);
        let basis = GrantBasis { owner: grant.owner.id, stamp, since, until };
        Ok((grant, basis))
    }

    /// Whether a grant is known to be as it was when it was read, so that there is no need to read it again.
    /// Looks for changes by other processes when that is due, without waiting.
    pub fn grant_holds(&self, io: &Io, basis: &GrantBasis) -> bool {
        let (is_seen, is_trusted, now) = (self.is_seen(io), self.is_trusted(io), time::now(io));
        // A clock that was set back makes what was read come from the future: then it is read again.
        let is_in_time = basis.since <= now + millis(CLOCK_SKEW_MAX) && now < basis.until;
        is_seen && is_trusted && is_in_time && self.is_grant_current(basis)
    }

    /// Whether nothing was noted that could have ended these rights since they were last verified. Neither
    /// looks at a clock nor at the directory: to be called from any thread, where nothing may be waited for.
    pub fn is_unchanged(&self, who: &Identity, grant: Option<&GrantBasis>) -> bool {
        who.is_current(self.changes()) && grant.is_none_or(|basis| self.is_grant_current(basis))
    }

    fn is_grant_current(&self, basis: &GrantBasis) -> bool {
        let topics = [Topic::Shares(basis.owner), Topic::Account(basis.owner)];
        topics.into_iter().all(|topic| self.changes().is_current(topic, basis.stamp))
    }
}
