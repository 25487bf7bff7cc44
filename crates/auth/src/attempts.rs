//! Wrong passwords and sign-ups, counted by name and by address: first slowed, then refused for a while.
//!
//! It is not asked about what is remembered or about tokens: who has a session is never locked out by
//! others. What must hold: the table has a bounded size; an attempt whose end nobody waited for has failed;
//! attempts side by side do not get past the count, once one has failed.

use core::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use plimsoll_io::{Io, Peer};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::remembered::draw_key;
use crate::settings::{Attempts, Budget};
use crate::table::{Key, Table};
use crate::time::{self, Millis, millis};

/// Where a question comes from, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address.
    Ip(IpAddr),
    /// A process of this machine.
    Unix,
}

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

    /// The bytes that count as one place: whoever has an IPv6 address has all of its /64.
    pub(crate) fn place(self) -> Vec<u8> {
        match self {
            Source::Ip(IpAddr::V4(ip)) => ip.octets().to_vec(),
            Source::Ip(IpAddr::V6(ip)) => ip.octets()[..8].to_vec(),
            Source::Unix => Vec::new(),
        }
    }
}

/// What speaks for whoever shows a password. What others do to a name counts only against strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Stranger,
    /// A session, or the password a moment ago: who wants to change it.
    Shown,
    /// This very password was right before, from the same place.
    Known,
}

impl Standing {
    pub(crate) fn of(is_known: bool) -> Standing {
        if is_known { Standing::Known } else { Standing::Stranger }
    }
}

/// How much of a budget is used: one time for all of it. It is zero when the clock has come there.
#[derive(Clone, Copy, Default)]
struct Used {
    forgiven_at: Millis,
    /// Attempts that are being weighed at this moment.
    under_way: u32,
}

impl Used {
    /// Failures that are not forgiven, rounded up.
    fn failures(self, now: Millis, budget: Budget) -> u64 {
        self.left(now, budget).div_ceil(one(budget))
    }

    /// Time until all is forgiven. A clock that was set back forgives, too: it must lock nobody out.
    fn left(self, now: Millis, budget: Budget) -> Millis {
        self.forgiven_at.saturating_sub(now).min(one(budget) * u64::from(budget.count.max(1)) * 2)
    }

    fn fail(&mut self, now: Millis, budget: Budget) -> u64 {
        self.forgiven_at = now + self.left(now, budget) + one(budget);
        self.failures(now, budget)
    }

    /// Lets an attempt in, or says how long none is. Attempts beside it count as failed as soon as one has.
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

/// What one attempt costs, in the time after which it is forgiven.
fn one(budget: Budget) -> Millis {
    millis(budget.forgiven_after).max(1)
}

/// The count of failures, for all threads.
pub(crate) struct Counts {
    key: OnceLock<[u8; 32]>,
    table: Table<Used>,
}

/// What is counted, and the bytes that tell two of its kind apart.
enum Counted<'a> {
    Name(&'a str),
    Address(Source),
    NameFromAddress(&'a str, Source),
    SignUps(Source),
}

/// An attempt that is being weighed. Dropped without a verdict, it has failed.
pub(crate) struct Attempt<'a> {
    counts: &'a Counts,
    limits: Attempts,
    now: Millis,
    /// What it counts for; nothing once the verdict is known.
    charged: Vec<(Key, Budget)>,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts { key: OnceLock::new(), table: Table::new() }
    }

    /// Lets a password be weighed, or says when to come back.
    pub(crate) fn begin(
        &self,
        io: &Io,
        limits: Attempts,
        (name, from, standing): (&str, Source, Standing),
    ) -> Result<Attempt<'_>, Error> {
        let (key, is_exempt) = (|counted| self.key(io, &counted), limits.exempt_local && from.is_local());
        let from_here = (key(Counted::NameFromAddress(name, from)), limits.per_name_from_address);
        let from_anywhere = (key(Counted::Name(name)), limits.per_name);
        let address = (key(Counted::Address(from)), limits.per_address);
        let charged = [
            (standing != Standing::Known).then_some(from_here),
            (standing == Standing::Stranger).then_some(from_anywhere),
            (!is_exempt).then_some(address),
        ];
        self.charge(io, limits, charged.into_iter().flatten())
    }

    /// Counts a sign-up, or says when to come back.
    pub(crate) fn sign_up(&self, io: &Io, limits: Attempts, from: Source) -> Result<(), Error> {
        if limits.exempt_local && from.is_local() {
            return Ok(());
        }
        let charged = [(self.key(io, &Counted::SignUps(from)), limits.sign_ups)];
        self.charge(io, limits, charged.into_iter())?.failed();
        Ok(())
    }

    /// Counts a failure of an address by itself.
    pub(crate) fn note(&self, io: &Io, limits: Attempts, from: Source) {
        let (now, key) = (time::now(io), self.key(io, &Counted::Address(from)));
        self.change(key, |used| used.fail(now, limits.per_address));
    }

    /// Whether an address has as many failures as it may.
    pub(crate) fn is_spent(&self, io: &Io, limits: Attempts, from: Source) -> bool {
        let (now, key) = (time::now(io), self.key(io, &Counted::Address(from)));
        let budget = limits.per_address;
        let failures = self.table.get(&key, |used| used.failures(now, budget));
        failures.is_some_and(|failures| failures >= u64::from(budget.count.max(1)))
    }

    fn charge(
        &self,
        io: &Io,
        limits: Attempts,
        budgets: impl Iterator<Item = (Key, Budget)>,
    ) -> Result<Attempt<'_>, Error> {
        let mut attempt = Attempt { counts: self, limits, now: time::now(io), charged: Vec::new() };
        for (key, budget) in budgets {
            if let Some(retry_after) = self.change(key, |used| used.enter(attempt.now, budget)) {
                attempt.not_failed();
                return Err(Error::TooManyAttempts { retry_after });
            }
            attempt.charged.push((key, budget));
        }
        Ok(attempt)
    }

    fn change<T>(&self, key: Key, change: impl FnOnce(&mut Used) -> T) -> T {
        self.table.change(key, change, |used| used.forgiven_at.saturating_add(u64::from(used.under_way)))
    }

    fn key(&self, io: &Io, counted: &Counted<'_>) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(self.key.get_or_init(|| draw_key(io)));
        let (tag, name, place) = match counted {
            Counted::Name(name) => (0, *name, Vec::new()),
            Counted::Address(from) => (1, "", from.place()),
            Counted::NameFromAddress(name, from) => (2, *name, from.place()),
            Counted::SignUps(from) => (3, "", from.place()),
        };
        // A name has no zero byte, so no other pair gives the same bytes.
        *hasher.update(&[tag]).update(name.as_bytes()).update(&[0]).update(&place).finalize().as_bytes()
    }
}

impl Attempt<'_> {
    /// The password was right, or nobody had the time to weigh it. What failed before is forgiven by time
    /// alone: an owner who comes and goes gives a guesser no more guesses.
    pub(crate) fn not_failed(mut self) {
        for (key, _) in std::mem::take(&mut self.charged) {
            self.counts.change(key, Used::leave);
        }
    }

    /// The password was wrong; says how long the answer must wait.
    pub(crate) fn failed(mut self) -> Duration {
        let failures = self.fail();
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let slow = self.limits.slow_first.saturating_mul(2_u32.saturating_pow(doublings));
        slow.min(self.limits.slow_max)
    }

    /// The failures of whatever has most.
    fn fail(&mut self) -> u64 {
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
