//! Polls of the directory, for changes that other processes made.
//!
//! Invariant: no request is answered from a cache, or passed to the directory, longer than `POLL_TRUST_TIME`
//! after the last successful poll began. It may wait there for its turn, or for a password's hash.

use std::sync::atomic::Ordering;

use plimsoll_io::Io;
use plimsoll_rpc::Key;
use plimsoll_rpc::time::{self, Millis, millis};

use super::{Auth, Tier};
use crate::error::Error;
use crate::limits::{CLOCK_SKEW_MAX, LOOK_TIME, POLL_TRUST_TIME};
use crate::service::AccountService;

/// The key of a poll of the directory. Those of password checks are hashes.
const POLL: Key = [0; 32];

/// Whether to poll for other processes' changes before a cached identity is trusted.
enum PollNeed {
    /// Not now: the last poll is recent.
    No,
    /// Poll in the background; cached identities stay valid meanwhile.
    Ahead,
    /// Poll first: no cached identity is trusted before.
    Now,
}

impl Auth {
    /// Polls for changes that other processes made to the directory, if that is due.
    pub(crate) async fn poll_directory(&self, io: &Io) -> Result<(), Error> {
        match &self.shared.tier {
            Tier::Local(service) if !self.poll_ahead(io) => Box::pin(self.poll_once(io, service)).await,
            _ => Ok(()),
        }
    }

    /// Polls, or waits for the poll of another request: one for each would fill the queue of the directory.
    async fn poll_once(&self, io: &Io, service: &AccountService) -> Result<(), Error> {
        let flight = self.shared.flights.begin_or_wait(POLL).await;
        if flight.is_none() && self.poll_ahead(io) {
            return Ok(());
        }
        service.poll(io).await
    }

    /// Starts a poll for other processes' changes in the background if one is due soon. Returns whether the
    /// last poll is recent enough.
    pub(super) fn poll_ahead(&self, io: &Io) -> bool {
        // A remote auth server polls by itself.
        let Tier::Local(service) = &self.shared.tier else { return true };
        match self.poll(service, time::now(io)) {
            PollNeed::No => {}
            PollNeed::Ahead => service.poll_in_background(io),
            PollNeed::Now => return false,
        }
        true
    }

    /// Decides whether to poll now. Of concurrent requests, one starts the poll early, so that none
    /// waits.
    fn poll(&self, service: &AccountService, now: Millis) -> PollNeed {
        let age = |then: Millis| {
            if then > now + millis(CLOCK_SKEW_MAX) { Millis::MAX } else { now.saturating_sub(then) }
        };
        let last_poll = age(service.last_poll());
        if last_poll >= millis(POLL_TRUST_TIME) {
            return PollNeed::Now;
        }
        let early_poll = self.shared.early_poll.load(Ordering::SeqCst);
        if last_poll < millis(LOOK_TIME) || age(early_poll) < millis(LOOK_TIME) {
            return PollNeed::No;
        }
        let sent =
            self.shared.early_poll.compare_exchange(early_poll, now, Ordering::SeqCst, Ordering::SeqCst);
        if sent.is_ok() { PollNeed::Ahead } else { PollNeed::No }
    }
}
