//! A server's check of the shared secret, and the limits on wrong ones.
//!
//! Requests from a network that has presented the secret within a day are always checked: others'
//! failures do not separate a client from its server. Any other network is refused after a few wrong
//! secrets. If wrong secrets of all networks together are too many, its requests are also delayed.
//! Invariant: secrets are compared in constant time, and a refused request learns nothing about the
//! secret.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_io::{Io, Peer};

use crate::failures::FailureCounts;
use crate::limits::{
    SECRET_DELAY, SECRET_KNOWN_TIME, SECRETS_DELAYED_MAX, WRONG_SECRETS, WRONG_SECRETS_PER_NETWORK,
};
use crate::network::Source;
use crate::secret::Secret;
use crate::table::{Key, Table};
use crate::time::{self, Millis, millis};

/// The count of wrong secrets from all networks together.
const ALL_NETWORKS: Key = [0; 32];

/// A server's secret, with the counts of wrong ones.
pub struct SecretCheck {
    secret: Secret,
    /// Hashes networks, so that no client can choose the entry that it falls into.
    key: OnceLock<[u8; 32]>,
    wrong: FailureCounts,
    /// When a network last presented the secret. Written once in half of [`SECRET_KNOWN_TIME`].
    known: Table<Millis>,
    delayed: AtomicUsize,
    /// Whether the response to each wrong secret is delayed.
    delays_each: bool,
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

impl SecretCheck {
    /// Creates a check against `secret`.
    #[must_use]
    pub fn new(secret: Secret) -> SecretCheck {
        SecretCheck {
            secret,
            key: OnceLock::new(),
            wrong: FailureCounts::new(),
            known: Table::new(),
            delayed: AtomicUsize::new(0),
            delays_each: false,
        }
    }

    /// The same for a process that serves one connection: its counts end with it. Each wrong secret is
    /// delayed.
    #[must_use]
    pub fn of_one_connection(secret: Secret) -> SecretCheck {
        SecretCheck { delays_each: true, ..SecretCheck::new(secret) }
    }

    /// Checks the secret that a request presents.
    ///
    /// # Errors
    /// [`SecretRefused`].
    pub async fn check(&self, io: &Io, presented: Option<&[u8]>, peer: &Peer) -> Result<(), SecretRefused> {
        let Some(presented) = presented.map(Secret::from) else { return Err(SecretRefused::Wrong) };
        let network = self.network(io, Source::from(peer));
        if !self.is_known(io, &network) {
            self.admit(io, &network).await?;
        }
        if presented == self.secret {
            self.remember(io, network);
            return Ok(());
        }
        self.wrong.fail(io, network, WRONG_SECRETS_PER_NETWORK);
        self.wrong.fail(io, ALL_NETWORKS, WRONG_SECRETS);
        if self.delays_each {
            io.sleep(SECRET_DELAY).await;
        }
        Err(SecretRefused::Wrong)
    }

    /// Refuses a network with too many wrong secrets. Delays the request if there are too many of all
    /// networks.
    async fn admit(&self, io: &Io, network: &Key) -> Result<(), SecretRefused> {
        let refused = |retry_after| Err(SecretRefused::TooMany { retry_after });
        if let Some(retry_after) = self.wrong.retry_after(io, network, WRONG_SECRETS_PER_NETWORK) {
            return refused(retry_after);
        }
        if self.wrong.retry_after(io, &ALL_NETWORKS, WRONG_SECRETS).is_none() {
            return Ok(());
        }
        let delayed = Delayed::count_in(&self.delayed);
        if delayed.others >= SECRETS_DELAYED_MAX {
            return refused(SECRET_DELAY);
        }
        io.sleep(SECRET_DELAY).await;
        // Other requests of the network may have failed meanwhile.
        match self.wrong.retry_after(io, network, WRONG_SECRETS_PER_NETWORK) {
            Some(retry_after) => refused(retry_after),
            None => Ok(()),
        }
    }

    fn network(&self, io: &Io, from: Source) -> Key {
        let key = self.key.get_or_init(|| {
            let mut key = [0; 32];
            io.entropy(&mut key);
            key
        });
        *blake3::keyed_hash(key, &from.network()).as_bytes()
    }

    fn is_known(&self, io: &Io, network: &Key) -> bool {
        let since = self.known.get(network, |at| time::now(io).saturating_sub(*at));
        since.is_some_and(|since| since < millis(SECRET_KNOWN_TIME))
    }

    fn remember(&self, io: &Io, network: Key) {
        let (now, half) = (time::now(io), millis(SECRET_KNOWN_TIME) / 2);
        let is_recent = self.known.get(&network, |at| now.saturating_sub(*at) < half);
        if is_recent != Some(true) {
            self.known.put(network, now, |at| *at);
        }
    }
}

/// A delayed request, counted until it is dropped.
struct Delayed<'a> {
    count: &'a AtomicUsize,
    others: usize,
}

impl Delayed<'_> {
    fn count_in(count: &AtomicUsize) -> Delayed<'_> {
        Delayed { count, others: count.fetch_add(1, Ordering::SeqCst) }
    }
}

impl Drop for Delayed<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}
