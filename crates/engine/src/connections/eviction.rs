//! Which connections are closed when slots run short.
//!
//! The classes, in the order of eviction; within a class, those that have waited longest go first:
//!
//! 1. clients that have not completed a request, and that the server waits for;
//! 2. clients that have, and that now are idle or send a request slowly;
//! 3. clients that have not authenticated, and that have received a response too slowly for a while;
//! 4. other transfers of clients that have not authenticated, from addresses with more connections than the
//!    mean, those with the most first;
//! 5. idle connections of clients that have authenticated;
//! 6. requests and transfers of authenticated clients, from addresses with more connections than the mean,
//!    those with the most first.
//!
//! The mean includes a client that waits to be accepted, as one more address with one connection. Any other
//! transfer that makes progress is never evicted. Invariant: a protocol is not pushed below its reserve by
//! another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_io::{Instant, Phase};

use super::policy::SlotPolicy;
use super::registry::{Open, Registry};
use super::slot::Entry;
use crate::limits::STALLED_TIME;

/// How soon a connection is evicted, lowest first: its class, and since when, in milliseconds.
type Rank = (u8, u64);

/// The connections that others are evicted for.
#[derive(Clone, Copy)]
pub(super) struct Newcomers {
    pub(super) service: usize,
    /// Those that are not accepted yet, so that no address is known and no slot is taken.
    pub(super) waiting: usize,
}

/// How many connections an address has, and whether these are more than the mean of all addresses.
#[derive(Clone, Copy, Default)]
struct AddressLoad {
    connections: u64,
    is_above_mean: bool,
}

impl AddressLoad {
    /// Returns the rank in a class from which only addresses above the mean are evicted, those with the most
    /// first.
    fn rank(self, class: u8) -> Option<Rank> {
        self.is_above_mean.then(|| (class, u64::MAX - self.connections))
    }
}

const AUTHENTICATED_IDLE: u8 = 5;

fn rank(entry: &Entry, address: impl FnOnce() -> AddressLoad, now: Instant) -> Option<Rank> {
    if entry.is_evicted() {
        return None;
    }
    let report = entry.report();
    let stalled_before = now.since_start().saturating_sub(STALLED_TIME).as_millis();
    match (report.is_authenticated, report.phase?) {
        // Ordered by the time of accept, so that a byte now and then gains a client nothing.
        (false, Phase::Waiting) if !report.has_completed => Some((1, entry.opened)),
        (false, Phase::Waiting | Phase::Idle | Phase::Ending) => Some((2, report.since)),
        (false, Phase::Working) if u128::from(report.since) < stalled_before => Some((3, report.since)),
        (false, Phase::Working) => address().rank(4),
        (true, Phase::Idle | Phase::Ending) => Some((AUTHENTICATED_IDLE, report.since)),
        (true, Phase::Waiting | Phase::Working) => address().rank(6),
    }
}

/// As [`rank`], among the connections that keep a connection to another server waiting: those without
/// progress for a while, then those of addresses with more connections than the mean.
fn upstream_rank(entry: &Entry, address: impl FnOnce() -> AddressLoad, now: Instant) -> Option<Rank> {
    let report = entry.report();
    if entry.is_evicted() || !report.keeps_upstream {
        return None;
    }
    let stalled_before = now.since_start().saturating_sub(STALLED_TIME).as_millis();
    if u128::from(report.since) < stalled_before { Some((1, report.since)) } else { address().rank(2) }
}

impl Registry {
    /// Marks connections to be closed in favour of `newcomers`, if slots run short.
    pub(super) fn evict_for(
        &mut self,
        newcomers: Newcomers,
        authenticated: usize,
        policy: &SlotPolicy,
        now: Instant,
    ) -> Vec<Arc<Entry>> {
        let staying = |used: usize| used.saturating_sub(self.leaving());
        let over = staying(self.used_for(newcomers.service)).saturating_sub(policy.max - policy.spare());
        let unauthenticated = staying(self.open()).saturating_sub(authenticated);
        let over_unauthenticated = unauthenticated.saturating_sub(policy.unauthenticated_max());
        if over == 0 && over_unauthenticated == 0 {
            return Vec::new();
        }
        // Some more than needed, because each choice visits all connections.
        let wanted = over.max(over_unauthenticated) + policy.spare() / 2;
        let is_unauthenticated = |rank: Rank| rank.0 < AUTHENTICATED_IDLE;
        let mut evicted = self.evict(wanted, Some(newcomers), is_unauthenticated, now);
        if evicted.len() < over {
            evicted.extend(self.evict(over - evicted.len(), Some(newcomers), |_| true, now));
        }
        evicted
    }

    /// Marks connections that hold a worker to be closed.
    pub(super) fn evict_from_workers(&mut self, count: usize, now: Instant) -> Vec<Arc<Entry>> {
        self.evict(count, None, |_| true, now)
    }

    /// Marks the connection of lowest rank that keeps a connection to another server waiting.
    pub(super) fn evict_from_upstream(&mut self, now: Instant) -> Option<Arc<Entry>> {
        let ranked = self.entries.iter().flatten().filter_map(|open| {
            Some((upstream_rank(&open.entry, || self.load_of(open, 0), now)?, &open.entry))
        });
        let (_, entry) = ranked.min_by_key(|(rank, _)| *rank)?;
        let entry = Arc::clone(entry);
        self.services[entry.service].leaving += 1;
        entry.evict();
        Some(entry)
    }

    /// Returns the load of the address of `open`. The mean includes `waiting` clients, as addresses with
    /// one connection each. Without them, two addresses with half of the slots each would both have just the
    /// mean, and no other client would get in.
    fn load_of(&self, open: &Open, waiting: usize) -> AddressLoad {
        let connections = open.network.and_then(|network| self.by_network.get(&network)).copied();
        let connections = connections.unwrap_or_default();
        let is_above_mean = connections.saturating_mul(self.networks() + waiting) > self.counted() + waiting;
        AddressLoad { connections: connections as u64, is_above_mean }
    }

    /// Marks the `count` connections of lowest rank: for `newcomers`, or else for a worker.
    fn evict(
        &mut self,
        count: usize,
        newcomers: Option<Newcomers>,
        may: impl Fn(Rank) -> bool,
        now: Instant,
    ) -> Vec<Arc<Entry>> {
        // A connection that ends has released its worker, and so has one that is parked.
        let holds_worker = |entry: &Entry| {
            let report = entry.report();
            report.phase != Some(Phase::Ending) && !report.is_parked
        };
        let holds = |entry: &Entry| newcomers.is_some() || holds_worker(entry);
        let waiting = newcomers.map_or(0, |newcomers| newcomers.waiting);
        let ranked = self.entries.iter().enumerate().filter_map(|(index, open)| {
            let open = open.as_ref().filter(|open| holds(&open.entry))?;
            let rank = rank(&open.entry, || self.load_of(open, waiting), now);
            Some(Reverse((rank.filter(|rank| may(*rank))?, index)))
        });
        let mut ranked: BinaryHeap<_> = ranked.collect();
        let mut evicted = Vec::new();
        while evicted.len() < count
            && let Some(Reverse((_, index))) = ranked.pop()
        {
            let Some(Open { entry, .. }) = &self.entries[index] else { continue };
            let slots = &mut self.services[entry.service];
            let is_over_reserve = slots.open - slots.leaving > slots.reserved;
            if is_over_reserve || newcomers.is_none_or(|newcomers| entry.service == newcomers.service) {
                slots.leaving += 1;
                entry.evict();
                evicted.push(Arc::clone(entry));
            }
        }
        evicted
    }
}
