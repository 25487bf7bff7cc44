//! The secret that a server of a tier shares with its fronts, and how wrong ones are limited.
//!
//! Requests from a network that has presented the secret within a day are always checked: others'
//! failures do not separate a front from its tier. Any other network is refused after a few wrong
//! secrets. If wrong secrets of all networks together are too many, its requests are also delayed.
//! Invariant: secrets are compared in constant time, and a refused request learns nothing about the
//! secret.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_io::{Io, Peer};

use crate::attempts::{Counted, Counts, Source};
use crate::limits::{
    SECRET_KNOWN_TIME, SECRET_SLOW_TIME, SECRETS_SLOWED_MAX, WRONG_SECRETS, WRONG_SECRETS_PER_NETWORK,
};
use crate::secret::Secret;
use crate::table::{Key, Table};
use crate::time::{self, Millis, millis};

/// A secret of a tier, with the counts of wrong ones.
pub struct TierSecret {
    secret: Secret,
    counts: Counts,
    /// When a network last presented the secret. Written once in half of [`SECRET_KNOWN_TIME`].
    shown: Table<Millis>,
    slowed: AtomicUsize,
    /// Whether the response to each wrong secret is delayed.
    slows_all: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRefused {
    /// It has no secret, or a wrong one.
    Wrong,
    /// It was not checked, because too many wrong ones were presented.
    TooMany {
        /// When to retry.
        retry_after: Duration,
    },
}

impl TierSecret {
    /// Creates a check against `secret`.
    #[must_use]
    pub fn new(secret: Secret) -> TierSecret {
        let (counts, shown, slowed) = (Counts::new(), Table::new(), AtomicUsize::new(0));
        TierSecret { secret, counts, shown, slowed, slows_all: false }
    }

    /// The same for a process that serves one connection: its counts end with it. Each wrong secret is
    /// delayed.
    #[must_use]
    pub fn of_one_connection(secret: Secret) -> TierSecret {
        TierSecret { slows_all: true, ..TierSecret::new(secret) }
    }

    /// Checks the secret of a request.
    ///
    /// # Errors
    /// [`SecretRefused`].
    pub async fn check(&self, io: &Io, shown: Option<&[u8]>, peer: &Peer) -> Result<(), SecretRefused> {
        let Some(shown) = shown.map(Secret::from) else { return Err(SecretRefused::Wrong) };
        let from = Source::from(peer);
        let network = self.counts.key(io, &Counted::Secrets(Some(from)));
        if !self.is_known(io, &network) {
            self.wait(io, &network).await?;
        }
        if shown == self.secret {
            self.know(io, network);
            return Ok(());
        }
        self.counts.fail(io, network, WRONG_SECRETS_PER_NETWORK);
        self.counts.fail(io, self.counts.key(io, &Counted::Secrets(None)), WRONG_SECRETS);
        if self.slows_all {
            io.sleep(SECRET_SLOW_TIME).await;
        }
        Err(SecretRefused::Wrong)
    }

    /// Refuses a network with too many wrong secrets. Delays the request if there are too many of all
    /// networks.
    async fn wait(&self, io: &Io, network: &Key) -> Result<(), SecretRefused> {
        let refused = |retry_after| Err(SecretRefused::TooMany { retry_after });
        if let Some(retry_after) = self.counts.wait_of(io, network, WRONG_SECRETS_PER_NETWORK) {
            return refused(retry_after);
        }
        let all = self.counts.key(io, &Counted::Secrets(None));
        if self.counts.wait_of(io, &all, WRONG_SECRETS).is_none() {
            return Ok(());
        }
        let slowed = Slowed::one_of(&self.slowed);
        if slowed.others >= SECRETS_SLOWED_MAX {
            return refused(SECRET_SLOW_TIME);
        }
        io.sleep(SECRET_SLOW_TIME).await;
        // Other requests of the network may have failed meanwhile.
        match self.counts.wait_of(io, network, WRONG_SECRETS_PER_NETWORK) {
            Some(retry_after) => refused(retry_after),
            None => Ok(()),
        }
    }

    fn is_known(&self, io: &Io, network: &Key) -> bool {
        let since = self.shown.get(network, |at| time::now(io).saturating_sub(*at));
        since.is_some_and(|since| since < millis(SECRET_KNOWN_TIME))
    }

    fn know(&self, io: &Io, network: Key) {
        let (now, half) = (time::now(io), millis(SECRET_KNOWN_TIME) / 2);
        let is_recent = self.shown.get(&network, |at| now.saturating_sub(*at) < half);
        if is_recent != Some(true) {
            self.shown.put(network, now, |at| *at);
        }
    }
}

/// A delayed request, counted until it is dropped.
struct Slowed<'a> {
    count: &'a AtomicUsize,
    others: usize,
}

impl Slowed<'_> {
    fn one_of(count: &AtomicUsize) -> Slowed<'_> {
        Slowed { count, others: count.fetch_add(1, Ordering::SeqCst) }
    }
}

impl Drop for Slowed<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}
