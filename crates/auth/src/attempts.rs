//! Wrong passwords and sign-ups, counted by name and by address: first delayed, then refused for a while.
//!
//! It is not consulted for tokens: other clients' failures never lock a session out. Networks where the
//! account logged in before are refused for their own failures only. For other networks there are two
//! budgets for each name. One is for all of them. When it is used up, the other is for networks that have
//! not failed at the name for a day. A few networks that guess all the time can use up the first only.
//!
//! Invariants: the tables have a bounded size. An attempt that is dropped before its result is known
//! counts as failed. Once one attempt has failed, concurrent attempts cannot exceed the budget.

use core::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_io::{Io, Peer};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::NETWORK_TRIED_TIME;
use crate::remembered::draw_key;
use crate::settings::{Attempts, Budget};
use crate::table::{Key, Table};
use crate::time::{self, Millis, millis};

/// The origin of a request, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address.
    Ip(IpAddr),
    /// A process on this machine.
    Unix,
}

/// The bytes that identify a network ([`Source::place`]).
pub(crate) type Network = Vec<u8>;

impl From<&Peer> for Source {
    fn from(peer: &Peer) -> Source {
        match peer {
            Peer::Ip(ip, _) => Source::Ip(ip.to_canonical()),
            Peer::Unix => Source::Unix,
        }
    }
}

impl Source {
    pub(crate) fn is_local(self) -> bool {
        match self {
            Source::Ip(ip) => ip.is_loopback(),
            Source::Unix => true,
        }
    }

    /// Returns the bytes that identify the network. An IPv6 address counts as its /64, which one client
    /// usually has whole.
    pub(crate) fn place(self) -> Network {
        match self {
            Source::Ip(IpAddr::V4(ip)) => ip.octets().to_vec(),
            Source::Ip(IpAddr::V6(ip)) => ip.octets()[..8].to_vec(),
            Source::Unix => Vec::new(),
        }
    }
}

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

/// The used part of a budget, as the one time at which all of it is forgiven. Nothing is used after that
/// time.
#[derive(Clone, Copy, Default)]
struct Used {
    forgiven_at: Millis,
    /// Attempts in progress.
    under_way: u32,
}

impl Used {
    /// Returns the failures that are not yet forgiven, rounded up.
    fn failures(self, now: Millis, budget: Budget) -> u64 {
        self.left(now, budget).div_ceil(one(budget))
    }

    /// Returns the time until all is forgiven. It is bounded, because the clock may be set back: that
    /// must lock no account out.
    fn left(self, now: Millis, budget: Budget) -> Millis {
        self.forgiven_at.saturating_sub(now).min(one(budget) * u64::from(budget.count.max(1)) * 2)
    }

    fn fail(&mut self, now: Millis, budget: Budget) -> u64 {
        self.forgiven_at = now + self.left(now, budget) + one(budget);
        self.failures(now, budget)
    }

    /// Admits an attempt, or returns how long none is admitted. Concurrent attempts count as failed once
    /// one has failed.
    fn enter(&mut self, now: Millis, budget: Budget) -> Option<Duration> {
        let left = self.left(now, budget);
        let beside = if left == 0 { 0 } else { u64::from(self.under_way) };
        let taken = left.div_ceil(one(budget)) + beside;
        let room = one(budget) * u64::from(budget.count).saturating_sub(beside + 1);
        let is_full = taken >= u64::from(budget.count.max(1));
        self.under_way += u32::from(!is_full);
        is_full.then(|| Duration::from_millis(left.saturating_sub(room).max(1)))
    }

    fn leave(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

/// The cost of one attempt: the time after which it is forgiven.
fn one(budget: Budget) -> Millis {
    millis(budget.forgiven_after).max(1)
}

/// The failure counts, shared by all threads.
pub(crate) struct Counts {
    key: OnceLock<[u8; 32]>,
    table: Table<Used>,
    /// When a network last failed at a name, by [`Counted::NameFromAddress`].
    tried: Table<Millis>,
}

/// The kinds of counters, with the data that distinguishes counters of a kind.
pub(crate) enum Counted<'a> {
    Name(&'a str),
    Address(Source),
    NameFromAddress(&'a str, Source),
    NameFromFresh(&'a str),
    /// Wrong secrets of a tier from one network, or from all.
    Secrets(Option<Source>),
    SignUps(Source),
}

/// An attempt in progress. If it is dropped without a result, it counts as failed.
pub(crate) struct Attempt<'a> {
    counts: &'a Counts,
    limits: Attempts,
    now: Millis,
    /// Budgets with a slot for this attempt; empty once the result is known.
    charged: Vec<(Key, Budget)>,
    /// A budget that a failure counts for, but that does not refuse the attempt.
    noted: Option<(Key, Budget)>,
    /// The name and the network, which does not count as fresh after a failure.
    tried: Option<Key>,
    /// Whether the budget of all networks was used up.
    is_slowest: bool,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts { key: OnceLock::new(), table: Table::new(), tried: Table::new() }
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
        let address = Some((key(Counted::Address(from)), limits.per_address)).filter(|_| !is_exempt);
        if standing != Standing::Known {
            attempt.charge((from_here, limits.per_name_from_address))?;
            attempt.tried = Some(from_here);
        }
        if standing != Standing::Stranger {
            attempt.noted = address;
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
        self.fail(io, self.key(io, &Counted::Address(from)), limits.per_address);
    }

    /// Returns whether an address has used up its budget.
    pub(crate) fn is_spent(&self, io: &Io, limits: Attempts, from: Source) -> bool {
        self.wait_of(io, &self.key(io, &Counted::Address(from)), limits.per_address).is_some()
    }

    fn attempt(&self, io: &Io, limits: Attempts) -> Attempt<'_> {
        let (charged, now) = (Vec::new(), time::now(io));
        Attempt { counts: self, limits, now, charged, noted: None, tried: None, is_slowest: false }
    }

    fn change<T>(&self, key: Key, change: impl FnOnce(&mut Used) -> T) -> T {
        self.table.change(key, change, |used| used.forgiven_at.saturating_add(u64::from(used.under_way)))
    }

    /// Returns how long until a budget admits another attempt; `None` if it does now.
    pub(crate) fn wait_of(&self, io: &Io, key: &Key, budget: Budget) -> Option<Duration> {
        let now = time::now(io);
        let left = self.table.get(key, |used| used.left(now, budget)).unwrap_or(0);
        let room = one(budget) * u64::from(budget.count.max(1) - 1);
        (left > room).then(|| Duration::from_millis(left - room))
    }

    /// Counts a failure by itself.
    pub(crate) fn fail(&self, io: &Io, key: Key, budget: Budget) {
        let now = time::now(io);
        self.change(key, |used| used.fail(now, budget));
    }

    pub(crate) fn key(&self, io: &Io, counted: &Counted<'_>) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(self.key.get_or_init(|| draw_key(io)));
        let (tag, name, place) = match counted {
            Counted::Name(name) => (0, *name, Vec::new()),
            Counted::Address(from) => (1, "", from.place()),
            Counted::NameFromAddress(name, from) => (2, *name, from.place()),
            Counted::SignUps(from) => (3, "", from.place()),
            Counted::NameFromFresh(name) => (4, *name, Vec::new()),
            Counted::Secrets(None) => (5, "", Vec::new()),
            Counted::Secrets(Some(from)) => (6, "", from.place()),
        };
        // A name has no zero byte, so no other pair gives the same bytes.
        *hasher.update(&[tag]).update(name.as_bytes()).update(&[0]).update(&place).finalize().as_bytes()
    }
}

impl Attempt<'_> {
    /// Takes a slot in a budget.
    fn charge(&mut self, (key, budget): (Key, Budget)) -> Result<(), Error> {
        if let Some(retry_after) = self.counts.change(key, |used| used.enter(self.now, budget)) {
            return Err(Error::TooManyAttempts { retry_after });
        }
        self.charged.push((key, budget));
        Ok(())
    }

    /// Ends an attempt with the right password, or one that was not checked for lack of time. Earlier
    /// failures are forgiven by time alone: the owner's log-ins give an attacker no more guesses.
    pub(crate) fn not_failed(mut self) {
        (self.noted, self.tried) = (None, None);
        for (key, _) in std::mem::take(&mut self.charged) {
            self.counts.change(key, Used::leave);
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
        if let Some((key, budget)) = self.noted.take() {
            self.counts.change(key, |used| used.fail(self.now, budget));
        }
        let charged = std::mem::take(&mut self.charged).into_iter();
        let failures = charged.map(|(key, budget)| {
            self.counts.change(key, |used| {
                used.leave();
                used.fail(self.now, budget)
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

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { count: 3, forgiven_after: Duration::from_secs(10) };
    const NOW: Millis = 1_000_000;

    #[test]
    fn each_failure_is_forgiven_in_its_time() {
        let mut used = Used::default();
        let counted = [0, 1, 2].map(|_| used.fail(NOW, BUDGET));
        assert_eq!(counted, [1, 2, 3]);
        let left = [0, 1, 10_000, 10_001, 29_999, 30_000].map(|later| used.failures(NOW + later, BUDGET));
        assert_eq!(left, [3, 3, 2, 2, 1, 0]);
    }

    #[test]
    fn an_attempt_is_let_in_when_its_refusal_said() {
        let mut used = Used::default();
        for _ in 0..3 {
            used.fail(NOW, BUDGET);
        }
        let wait = used.enter(NOW + 4_000, BUDGET).unwrap();
        assert_eq!(wait, Duration::from_secs(6));
        assert!(used.enter(NOW + 9_999, BUDGET).is_some());
        assert_eq!(used.enter(NOW + 10_000, BUDGET), None);
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out_for_longer_than_twice_the_budget() {
        let mut used = Used::default();
        for _ in 0..3 {
            used.fail(NOW * 1000, BUDGET);
        }
        assert!(used.enter(NOW, BUDGET).unwrap() <= Duration::from_secs(60));
        used.fail(NOW, BUDGET);
        assert_eq!(used.enter(NOW + 70_000, BUDGET), None);
    }

    #[test]
    fn an_ipv6_net_is_one_place_and_an_address_of_ipv4_is_one() {
        let place = |ip: &str| Source::from(&Peer::Ip(ip.parse().unwrap(), 1)).place();
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:1"));
        assert_ne!(place("2001:db8::1"), place("2001:db8:0:1::1"));
        assert_ne!(place("192.0.2.1"), place("192.0.2.2"));
        assert_eq!(place("::ffff:192.0.2.1"), place("192.0.2.1"));
    }
}
