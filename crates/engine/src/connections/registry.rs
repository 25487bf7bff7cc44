//! All open connections of the process that accepts them, by slot, address and protocol.
//!
//! It does not choose which of them to evict (`eviction` does). Invariant: the counts always agree with the
//! entries.

use std::collections::HashMap;
use std::collections::hash_map::Entry as InMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::policy::SlotPolicy;
use super::slot::Entry;
use crate::limits::SERVICES_MAX;

/// All open connections.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) entries: Vec<Option<Arc<Entry>>>,
    vacant: Vec<usize>,
    pub(super) by_address: HashMap<IpAddr, usize>,
    pub(super) services: [ServiceSlots; SERVICES_MAX],
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

    /// Returns whether an address has as many slots as it may have now.
    pub(super) fn has_its_share(&self, address: IpAddr, policy: &SlotPolicy) -> bool {
        let is_short = self.open() - self.leaving() >= policy.short();
        self.by_address.get(&address).is_some_and(|count| *count >= policy.share_of_address(is_short))
    }

    /// Adds a connection; `make` creates it for the slot it gets.
    pub(super) fn insert(&mut self, make: impl FnOnce(usize) -> Arc<Entry>) -> (Arc<Entry>, usize) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let entry = make(index);
        self.entries[index] = Some(Arc::clone(&entry));
        self.services[entry.service].open += 1;
        if let Some(address) = entry.address {
            *self.by_address.entry(address).or_default() += 1;
        }
        (entry, index)
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&mut self, index: usize, entry: &Entry) {
        self.entries[index] = None;
        self.vacant.push(index);
        let slots = &mut self.services[entry.service];
        slots.open -= 1;
        slots.leaving -= usize::from(entry.is_evicted());
        if let Some(InMap::Occupied(mut count)) = entry.address.map(|address| self.by_address.entry(address))
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Returns how many addresses have connections, exempt ones not counted.
    pub(super) fn addresses(&self) -> usize {
        self.by_address.len()
    }
}
