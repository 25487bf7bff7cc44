//! Which connections are closed when slots run short.
//!
//! In this order, those that have waited longest first:
//!
//! 1. clients that have not completed a request, and that the server waits for;
//! 2. clients that have, and that ask for nothing now, or send a request slowly;
//! 3. clients that have not authenticated, and that have taken nothing of a response for a while;
//! 4. idle connections of clients that have authenticated.
//!
//! Never: a transfer that makes progress, and what an authenticated client is doing. Invariant: a protocol is
//! not pushed below its reserve by another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_io::{Instant, Phase};

use super::policy::SlotPolicy;
use super::registry::Registry;
use super::slot::Entry;
use crate::limits::STALLED_TIME;

/// How soon a connection is evicted, lowest first: its class, and since when, in milliseconds.
type Rank = (u8, u64);

const AUTHENTICATED_IDLE: u8 = 4;

fn rank(entry: &Entry, now: Instant) -> Option<Rank> {
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
        (true, Phase::Idle | Phase::Ending) => Some((AUTHENTICATED_IDLE, report.since)),
        (false, Phase::Working) | (true, Phase::Waiting | Phase::Working) => None,
    }
}

impl Registry {
    /// Marks connections to be closed in favour of new ones of `service`, if slots run short.
    pub(super) fn evict_for(
        &mut self,
        service: usize,
        authenticated: usize,
        policy: &SlotPolicy,
        now: Instant,
    ) -> Vec<Arc<Entry>> {
        let staying = |used: usize| used.saturating_sub(self.leaving());
        let over = staying(self.used_for(service)).saturating_sub(policy.max - policy.spare());
        let unauthenticated = staying(self.open()).saturating_sub(authenticated);
        let over_unauthenticated = unauthenticated.saturating_sub(policy.unauthenticated_max());
        if over == 0 && over_unauthenticated == 0 {
            return Vec::new();
        }
        // Some more, because each choice looks at all connections.
        let wanted = over.max(over_unauthenticated) + policy.spare() / 2;
        let is_unauthenticated = |rank: Rank| rank.0 < AUTHENTICATED_IDLE;
        let mut evicted = self.evict(wanted, Some(service), is_unauthenticated, now);
        if evicted.len() < over {
            evicted.extend(self.evict(over - evicted.len(), Some(service), |_| true, now));
        }
        evicted
    }

    /// Marks connections to be closed that keep a worker waiting.
    pub(super) fn evict_from_workers(&mut self, count: usize, now: Instant) -> Vec<Arc<Entry>> {
        self.evict(count, None, |_| true, now)
    }

    /// Marks `count` connections of the lowest rank: for new ones of `service`, or else for a worker.
    fn evict(
        &mut self,
        count: usize,
        service: Option<usize>,
        may: impl Fn(Rank) -> bool,
        now: Instant,
    ) -> Vec<Arc<Entry>> {
        // A connection that ends has given its worker back.
        let holds = |entry: &Entry| service.is_some() || entry.report().phase != Some(Phase::Ending);
        let ranked = self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let entry = entry.as_ref().filter(|entry| holds(entry))?;
            Some(Reverse((rank(entry, now).filter(|rank| may(*rank))?, index)))
        });
        let mut ranked: BinaryHeap<_> = ranked.collect();
        let mut evicted = Vec::new();
        while evicted.len() < count
            && let Some(Reverse((_, index))) = ranked.pop()
        {
            let Some(entry) = &self.entries[index] else { continue };
            let slots = &mut self.services[entry.service];
            let is_over_reserve = slots.open - slots.leaving > slots.reserved;
            if is_over_reserve || service.is_none_or(|service| entry.service == service) {
                slots.leaving += 1;
                entry.evict();
                evicted.push(Arc::clone(entry));
            }
        }
        evicted
    }
}
