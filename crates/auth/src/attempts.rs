//! Wrong passwords and sign-ups, counted by name and by address: first slowed, then refused for a while.
//!
//! It is not asked about what is remembered or about tokens: a session is never locked out by others.
//! Networks where the account logged in before are refused for their own failures only. For other networks
//! there are two budgets for each name: one for all of them, and, when that is used up, one for networks that
//! have not failed at the name for a day. A few networks that guess all the time can use up the first only.
//!
//! What must hold: the tables have a bounded size; an attempt whose end nobody waited for has failed;
//! attempts side by side do not get past the count, once one has failed.

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

/// Where a question comes from, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address.
    Ip(IpAddr),
    /// A process of this machine.
    Unix,
}

/// The bytes that stand for a network ([`Source::place`]).
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

    /// The bytes that count as one place: whoever has an IPv6 address has all of its /64.
    pub(crate) fn place(self) -> Network {
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
    /// The account logged in from the same network before, or the request shows a session of it.
    Familiar,
    /// This very password was right before, from the same place.
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
    /// When a network last failed at a name, by [`Counted::NameFromAddress`].
    tried: Table<Millis>,
}

/// What is counted, and the bytes that tell two of its kind apart.
pub(crate) enum Counted<'a> {
    Name(&'a str),
    Address(Source),
    NameFromAddress(&'a str, Source),
    NameFromFresh(&'a str),
    /// Wrong secrets of a tier from one network, or from all.
    Secrets(Option<Source>),
    SignUps(Source),
}

/// An attempt that is being weighed. Dropped without a verdict, it has failed.
pub(crate) struct Attempt<'a> {
    counts: &'a Counts,
    limits: Attempts,
    now: Millis,
    /// Budgets with a place for this attempt; empty once the verdict is known.
    charged: Vec<(Key, Budget)>,
    /// A budget that a failure counts for, but that does not refuse the attempt.
    noted: Option<(Key, Budget)>,
    /// The name and the network, which is not a fresh one after a failure.
    tried: Option<Key>,
    /// Whether the budget of all networks was used up.
    is_slowest: bool,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts { key: OnceLock::new(), table: Table::new(), tried: Table::new() }
    }

    /// Refuses a password that [`Counts::begin`] would refuse now; counts nothing.
    pub(crate) fn check(
        &self,
        io: &Io,
        limits: Attempts,
        attempt: (&str, Source, Standing),
    ) -> Result<(), Error> {
        self.begin(io, limits, attempt).map(Attempt::not_failed)
    }

    /// Lets a password be weighed, or says when to come back.
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

    /// Whether a network has not failed at a name for [`NETWORK_TRIED_TIME`].
    fn is_fresh(&self, from_here: &Key, now: Millis) -> bool {
        let tried = self.tried.get(from_here, |at| *at);
        tried.is_none_or(|at| now.saturating_sub(at) >= millis(NETWORK_TRIED_TIME))
    }

    /// Counts a sign-up, or says when to come back.
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

    /// Whether an address has as many failures as it may.
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

    /// How long until a budget has room again; `None` if it has.
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
    /// Takes a place in a budget.
    fn charge(&mut self, (key, budget): (Key, Budget)) -> Result<(), Error> {
        if let Some(retry_after) = self.counts.change(key, |used| used.enter(self.now, budget)) {
            return Err(Error::TooManyAttempts { retry_after });
        }
        self.charged.push((key, budget));
        Ok(())
    }

    /// The password was right, or nobody had the time to weigh it. What failed before is forgiven by time
    /// alone: an owner who comes and goes gives a guesser no more guesses.
    pub(crate) fn not_failed(mut self) {
        (self.noted, self.tried) = (None, None);
        for (key, _) in std::mem::take(&mut self.charged) {
            self.counts.change(key, Used::leave);
        }
    }

    /// The password was wrong; says how long the answer must wait.
    pub(crate) fn failed(mut self) -> Duration {
        let failures = self.fail();
        if self.is_slowest {
            return self.limits.slow_max;
        }
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let slow = self.limits.slow_first.saturating_mul(2_u32.saturating_pow(doublings));
        slow.min(self.limits.slow_max)
    }

    /// The failures of whatever has most.
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
