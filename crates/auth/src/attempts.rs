//! Wrong passwords and sign-ups, counted by name and by address: first delayed, then refused for a while.
//!
//! It is not consulted for tokens: other clients' failures never lock a session out. Networks where the
//! account logged in before are refused for their own failures only. For other networks there are two
//! budgets for each name. One is for all of them. When it is used up, the other is for networks that have
//! not failed at the name for a day. A few networks that guess all the time can use up the first only.
//!
//! Invariants: the tables have a bounded size. An attempt that is dropped before its result is known
//! counts as failed. Once one attempt has failed, concurrent attempts cannot exceed the budget.

use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_io::Io;
use plimsoll_rpc::time::{self, Millis, millis};
use plimsoll_rpc::{Budget, FailureCounts, Failures, Key, Source, Table};

use crate::error::Error;
use crate::limits::{NETWORK_FAILED_TIME, NETWORK_TRIED_TIME};
use crate::remembered::draw_key;
use crate::settings::Attempts;

/// The evidence for a client that presents a password. Others' failures at a name count only against
/// strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// None.
    Stranger,
    /// The account logged in from the same network before, or the request has one of its sessions.
    Familiar,
    /// This very password was right before, from the same network.
    Known,
}

impl Standing {
    pub(crate) fn of(is_known: bool) -> Standing {
        if is_known { Standing::Known } else { Standing::Stranger }
    }

    /// The same for a client in a network where the account logged in before.
    pub(crate) fn in_known_network(self) -> Standing {
        if self == Standing::Stranger { Standing::Familiar } else { self }
    }
}

/// The failure counts, shared by all threads.
pub(crate) struct Counts {
    key: OnceLock<[u8; 32]>,
    table: FailureCounts,
    /// When a network last failed at a name, by [`Counted::NameFromAddress`].
    tried: Table<Millis>,
    /// When a network last failed, by [`Counted::Address`]. Unlike its budget, it refuses nothing.
    failed: Table<Millis>,
}

/// The kinds of counters, with the data that distinguishes counters of a kind.
pub(crate) enum Counted<'a> {
    Name(&'a str),
    Address(Source),
    NameFromAddress(&'a str, Source),
    NameFromFresh(&'a str),
    SignUps(Source),
}

/// An attempt in progress. If it is dropped without a result, it counts as failed.
pub(crate) struct Attempt<'a> {
    counts: &'a Counts,
    limits: Attempts,
    now: Millis,
    /// Budgets that this attempt is charged to; empty once the result is known.
    charged: Vec<(Key, Budget)>,
    /// A budget that a failure counts for, but that does not refuse the attempt.
    counted_as: Option<(Key, Budget)>,
    /// The name and the network, which does not count as fresh after a failure.
    tried: Option<Key>,
    /// The network.
    network: Option<Key>,
    /// Whether the budget of all networks was used up.
    is_slowest: bool,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts {
            key: OnceLock::new(),
            table: FailureCounts::new(),
            tried: Table::new(),
            failed: Table::new(),
        }
    }

    /// Refuses a password that [`Counts::begin`] would refuse now. Counts nothing.
    pub(crate) fn check(
        &self,
        io: &Io,
        limits: Attempts,
        attempt: (&str, Source, Standing),
    ) -> Result<(), Error> {
        self.begin(io, limits, attempt).map(Attempt::not_failed)
    }

    /// Admits a password check, or returns when to retry.
    pub(crate) fn begin(
        &self,
        io: &Io,
        limits: Attempts,
        of: (&str, Source, Standing),
    ) -> Result<Attempt<'_>, Error> {
        let mut attempt = self.attempt(io, limits);
        match self.charge_all(io, &mut attempt, of) {
            Ok(()) => Ok(attempt),
            Err(refused) => {
                attempt.not_failed();
                Err(refused)
            }
        }
    }

    fn charge_all(
        &self,
        io: &Io,
        attempt: &mut Attempt<'_>,
        (name, from, standing): (&str, Source, Standing),
    ) -> Result<(), Error> {
        let limits = attempt.limits;
        let (key, is_exempt) = (|counted| self.key(io, &counted), limits.exempt_local && from.is_local());
        let from_here = key(Counted::NameFromAddress(name, from));
        let network = key(Counted::Address(from));
        attempt.network = Some(network);
        let address = Some((network, limits.per_address)).filter(|_| !is_exempt);
        if standing != Standing::Known {
            attempt.charge((from_here, limits.per_name_from_address))?;
            attempt.tried = Some(from_here);
        }
        if standing != Standing::Stranger {
            attempt.counted_as = address;
            return Ok(());
        }
        if let Some(address) = address {
            attempt.charge(address)?;
        }
        if let Err(refused) = attempt.charge((key(Counted::Name(name)), limits.per_name)) {
            if !self.is_fresh(&from_here, attempt.now) {
                return Err(refused);
            }
            attempt.is_slowest = true;
            attempt.charge((key(Counted::NameFromFresh(name)), limits.per_name_from_fresh))?;
        }
        Ok(())
    }

    /// Returns whether a network has not failed at a name for [`NETWORK_TRIED_TIME`].
    fn is_fresh(&self, from_here: &Key, now: Millis) -> bool {
        let tried = self.tried.get(from_here, |at| *at);
        tried.is_none_or(|at| now.saturating_sub(at) >= millis(NETWORK_TRIED_TIME))
    }

    /// Returns whether a network has failed, at any name, within [`NETWORK_FAILED_TIME`].
    pub(crate) fn has_failed(&self, io: &Io, from: Source) -> bool {
        let failed = self.failed.get(&self.key(io, &Counted::Address(from)), |at| *at);
        failed.is_some_and(|at| time::now(io).saturating_sub(at) < millis(NETWORK_FAILED_TIME))
    }

    /// Counts a sign-up, or returns when to retry.
    pub(crate) fn sign_up(&self, io: &Io, limits: Attempts, from: Source) -> Result<(), Error> {
        if limits.exempt_local && from.is_local() {
            return Ok(());
        }
        let mut attempt = self.attempt(io, limits);
        let charged = attempt.charge((self.key(io, &Counted::SignUps(from)), limits.sign_ups));
        if charged.is_ok() {
            attempt.failed();
        }
        charged
    }

    /// Counts a failure of an address by itself.
    pub(crate) fn note(&self, io: &Io, limits: Attempts, from: Source) {
        self.table.fail(io, self.key(io, &Counted::Address(from)), limits.per_address);
    }

    /// Returns whether an address has used up its budget.
    pub(crate) fn is_spent(&self, io: &Io, limits: Attempts, from: Source) -> bool {
        self.table.retry_after(io, &self.key(io, &Counted::Address(from)), limits.per_address).is_some()
    }

    fn attempt(&self, io: &Io, limits: Attempts) -> Attempt<'_> {
        let (charged, now) = (Vec::new(), time::now(io));
        let (counted_as, tried, network, is_slowest) = (None, None, None, false);
        Attempt { counts: self, limits, now, charged, counted_as, tried, network, is_slowest }
    }

    pub(crate) fn key(&self, io: &Io, counted: &Counted<'_>) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(self.key.get_or_init(|| draw_key(io)));
        let (tag, name, place) = match counted {
            Counted::Name(name) => (0, *name, Vec::new()),
            Counted::Address(from) => (1, "", from.network()),
            Counted::NameFromAddress(name, from) => (2, *name, from.network()),
            Counted::SignUps(from) => (3, "", from.network()),
            Counted::NameFromFresh(name) => (4, *name, Vec::new()),
        };
        // A name has no zero byte, so no other pair gives the same bytes.
        *hasher.update(&[tag]).update(name.as_bytes()).update(&[0]).update(&place).finalize().as_bytes()
    }
}

impl Attempt<'_> {
    /// Charges an attempt to a budget.
    fn charge(&mut self, (key, budget): (Key, Budget)) -> Result<(), Error> {
        if let Some(retry_after) = self.counts.table.change(key, |failures| failures.enter(self.now, budget))
        {
            return Err(Error::TooManyAttempts { retry_after });
        }
        self.charged.push((key, budget));
        Ok(())
    }

    /// Ends an attempt with the right password, or one that was not checked for lack of time. Earlier
    /// failures are forgiven by time alone: the owner's log-ins give an attacker no more guesses.
    pub(crate) fn not_failed(mut self) {
        (self.counted_as, self.tried, self.network) = (None, None, None);
        for (key, _) in std::mem::take(&mut self.charged) {
            self.counts.table.change(key, Failures::leave);
        }
    }

    /// Ends an attempt with a wrong password. Returns how long to delay the response.
    pub(crate) fn failed(mut self) -> Duration {
        let failures = self.fail();
        if self.is_slowest {
            return self.limits.slow_max;
        }
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let slow = self.limits.slow_first.saturating_mul(2_u32.saturating_pow(doublings));
        slow.min(self.limits.slow_max)
    }

    /// Counts the failure in all budgets. Returns the largest number of failures in any of them.
    fn fail(&mut self) -> u64 {
        if let Some(tried) = self.tried.take() {
            self.counts.tried.put(tried, self.now, |at| *at);
        }
        if let Some(network) = self.network.take() {
            self.counts.failed.put(network, self.now, |at| *at);
        }
        if let Some((key, budget)) = self.counted_as.take() {
            self.counts.table.change(key, |failures| failures.fail(self.now, budget));
        }
        let charged = std::mem::take(&mut self.charged).into_iter();
        let failures = charged.map(|(key, budget)| {
            self.counts.table.change(key, |failures| {
                failures.leave();
                failures.fail(self.now, budget)
            })
        });
        failures.max().unwrap_or(0)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.fail();
    }
}
