//! All open connections of the process that accepts them, by slot, address and protocol.
//!
//! It does not choose which of them to evict (`eviction` does). Invariant: the counts always agree with the
//! entries.

use std::collections::HashMap;
use std::collections::hash_map::Entry as InMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_io::ClientNetwork;

use super::policy::SlotPolicy;
use super::slot::Entry;
use crate::limits::SERVICES_MAX;

/// All open connections.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) entries: Vec<Option<Open>>,
    vacant: Vec<usize>,
    pub(super) by_network: HashMap<ClientNetwork, usize>,
    /// Connections that count for a network.
    counted: usize,
    /// How many reports of other processes have been followed.
    followed: u64,
    pub(super) services: [ServiceSlots; SERVICES_MAX],
}

/// An open connection, and the network that it counts for, if any.
pub(super) struct Open {
    pub(super) entry: Arc<Entry>,
    pub(super) network: Option<ClientNetwork>,
}

/// The slots of one protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceSlots {
    /// Slots that other protocols leave to it.
    pub(super) reserved: usize,
    pub(super) open: usize,
    /// Of those, the evicted ones that have not ended yet.
    pub(super) leaving: usize,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({:?})", self.services)
    }
}

impl Registry {
    pub(super) fn reserve_for(&mut self, service: usize, policy: &SlotPolicy) {
        self.services[service].reserved = policy.reserved_for_service();
    }

    /// Returns how many slots are open, or reserved for protocols other than `service`.
    pub(super) fn used_for(&self, service: usize) -> usize {
        let slots = self.services.iter().enumerate();
        slots.map(|(other, slots)| slots.open.max(if other == service { 0 } else { slots.reserved })).sum()
    }

    pub(super) fn open(&self) -> usize {
        self.services.iter().map(|slots| slots.open).sum()
    }

    /// Returns how many connections were evicted and have not ended yet.
    pub(super) fn leaving(&self) -> usize {
        self.services.iter().map(|slots| slots.leaving).sum()
    }

    /// Returns whether a network has as many slots as it may have now.
    pub(super) fn has_its_share(&self, network: ClientNetwork, policy: &SlotPolicy) -> bool {
        let is_short = self.open() - self.leaving() >= policy.short();
        self.by_network.get(&network).is_some_and(|count| *count >= policy.share_of_address(is_short))
    }

    /// Adds a connection, which counts for `network`; `make` creates it for the slot it gets.
    pub(super) fn insert(
        &mut self,
        network: Option<ClientNetwork>,
        make: impl FnOnce(usize) -> Arc<Entry>,
    ) -> Arc<Entry> {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let entry = make(index);
        self.entries[index] = Some(Open { entry: Arc::clone(&entry), network });
        self.services[entry.service].open += 1;
        self.count(network);
        entry
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&mut self, entry: &Entry) {
        let open = self.entries[entry.index].take();
        self.vacant.push(entry.index);
        let slots = &mut self.services[entry.service];
        slots.open -= 1;
        slots.leaving -= usize::from(entry.is_evicted());
        self.release(open.and_then(|open| open.network));
    }

    /// Counts the connection in slot `index` for another network, or for none. Returns false, and counts it
    /// for none, if the network has its share.
    pub(super) fn recount(
        &mut self,
        index: usize,
        network: Option<ClientNetwork>,
        policy: &SlotPolicy,
    ) -> bool {
        self.recount_unchecked(index, None);
        if network.is_some_and(|network| self.has_its_share(network, policy)) {
            return false;
        }
        self.recount_unchecked(index, network);
        true
    }

    fn recount_unchecked(&mut self, index: usize, network: Option<ClientNetwork>) {
        let Some(open) = self.entries.get_mut(index).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut open.network, network);
        self.release(before);
        self.count(network);
    }

    /// Follows the reports of other processes, of which there have been `reports`: a cell for each slot.
    pub(super) fn follow(&mut self, networks: &[AtomicU64], reports: u64) {
        if std::mem::replace(&mut self.followed, reports) == reports {
            return;
        }
        for (index, cell) in networks.iter().enumerate().take(self.entries.len()) {
            self.recount_unchecked(index, ClientNetwork::from_word(cell.load(Ordering::Relaxed)));
        }
    }

    fn count(&mut self, network: Option<ClientNetwork>) {
        let Some(network) = network else { return };
        *self.by_network.entry(network).or_default() += 1;
        self.counted += 1;
    }

    fn release(&mut self, network: Option<ClientNetwork>) {
        let Some(InMap::Occupied(mut count)) = network.map(|network| self.by_network.entry(network)) else {
            return;
        };
        self.counted -= 1;
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }

    /// Returns how many networks have connections, exempt ones not counted.
    pub(super) fn networks(&self) -> usize {
        self.by_network.len()
    }

    /// Returns how many connections count for a network.
    pub(super) fn counted(&self) -> usize {
        self.counted
    }
}
