//! Connection slots: how many connections are open, and which of them stay when slots run short.
//!
//! It does not limit attempts or rates. Invariants: a connection has a slot from its accept until its task
//! ends, even by a panic. No address and no protocol can take all slots. A transfer that makes progress
//! keeps its slot, unless its address has more connections than the mean.
//!
//! Design: docs/design/fairness.md.

mod eviction;
mod policy;
mod registry;
mod slot;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use plimsoll_io::{Cells, Networks, Peer};

pub use policy::{NoPerAddress, PerAddress, SlotPolicy};
use registry::Registry;
use slot::State;
pub(crate) use slot::{Entry, serve_until_evicted};

use crate::clock::since_start;
use crate::limits::PROCESS_CELLS;

/// The index of each counter's cell.
#[derive(Clone, Copy)]
enum Count {
    Open,
    Authenticated,
    Accepted,
    Panicked,
    Refused,
    Evicted,
    CutOff,
}

/// The connections of a server: how many are open, were accepted, and are allowed.
#[derive(Debug)]
pub struct Connections {
    cells: Cells,
    policy: SlotPolicy,
    /// Peers that may have any number of slots, because each brings many clients.
    proxies: RwLock<Networks>,
    /// Used only by the process that accepts.
    registry: Mutex<Registry>,
    ended: Condvar,
    waiting: Mutex<()>,
    /// Whether a thread waits for the last connection to end: a notification without a waiter costs a system
    /// call, too.
    is_awaited: AtomicBool,
}

/// One connection's slot: dropping it releases the slot.
pub(crate) struct Admitted {
    entry: Arc<Entry>,
    index: usize,
}

impl Connections {
    /// The number of cells that the counters take.
    pub const CELLS: usize = Count::CutOff as usize + 1;
    /// The number of cells where each connection is a process: each process reports to the accepting process
    /// by a cell of its own.
    pub const SHARED_CELLS: usize = Connections::CELLS + PROCESS_CELLS;

    /// Creates an empty set of slots; `policy` is their number, or a full policy.
    pub fn new(policy: impl Into<SlotPolicy>) -> Arc<Connections> {
        Connections::counted_in(Cells::own(Connections::CELLS), policy)
    }

    /// Creates the same with the counters in `cells`, of which there are [`Connections::CELLS`] or
    /// [`Connections::SHARED_CELLS`].
    pub fn counted_in(cells: Cells, policy: impl Into<SlotPolicy>) -> Arc<Connections> {
        // Processes that are forked later must count time from the same start.
        since_start();
        Arc::new(Connections {
            cells,
            policy: policy.into(),
            proxies: RwLock::default(),
            registry: Mutex::default(),
            ended: Condvar::new(),
            waiting: Mutex::new(()),
            is_awaited: AtomicBool::new(false),
        })
    }

    fn cell(&self, of: Count) -> &AtomicU64 {
        &self.cells[of as usize]
    }

    fn read(&self, of: Count) -> u64 {
        self.cell(of).load(Ordering::Relaxed)
    }

    fn add(&self, of: Count, more: u64) {
        self.cell(of).fetch_add(more, Ordering::Relaxed);
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many connections are open.
    pub fn open(&self) -> usize {
        usize::try_from(self.read(Count::Open)).unwrap_or(usize::MAX)
    }

    /// Returns how many of those have authenticated.
    fn authenticated(&self) -> usize {
        usize::try_from(self.read(Count::Authenticated)).unwrap_or(usize::MAX)
    }

    /// Returns how many connections were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.read(Count::Accepted)
    }

    /// Returns how many connections were dropped because serving them panicked: each is a defect of the
    /// server.
    pub fn panicked(&self) -> u64 {
        self.read(Count::Panicked)
    }

    pub(crate) fn count_panic(&self) {
        self.add(Count::Panicked, 1);
    }

    /// Returns how many connections may be open.
    pub fn max(&self) -> usize {
        self.policy.max
    }

    /// Returns how many connections were refused: their address had its share of the slots, or no worker
    /// became free.
    pub fn refused(&self) -> u64 {
        self.read(Count::Refused)
    }

    pub(crate) fn count_refused(&self) {
        self.add(Count::Refused, 1);
    }

    /// Returns how many connections were closed because others needed their slots.
    pub fn evicted(&self) -> u64 {
        self.read(Count::Evicted)
    }

    /// Returns how many connections were cut off at the end of the grace period.
    pub fn cut_off(&self) -> u64 {
        self.read(Count::CutOff)
    }

    pub(crate) fn count_cut_off(&self, connections: usize) {
        self.add(Count::CutOff, connections as u64);
    }

    /// Exempts trusted proxies from the bound per address, from their next connections on. Replaces the
    /// earlier exemptions.
    pub fn exempt(&self, proxies: Networks) {
        *self.proxies.write().unwrap_or_else(PoisonError::into_inner) = proxies;
    }

    fn is_proxy(&self, peer: &Peer) -> bool {
        self.proxies.read().unwrap_or_else(PoisonError::into_inner).contain(peer)
    }

    /// Reserves slots for the protocol `service`, because it has a listener.
    pub(crate) fn reserve_for(&self, service: usize) {
        self.registry().reserve_for(service, &self.policy);
    }

    /// Returns whether a connection of the protocol `service` has to wait for a slot.
    pub(crate) fn is_full(&self, service: usize) -> bool {
        // Avoids the lock while few slots are taken, which is nearly always.
        self.open() >= self.policy.plenty() && self.registry().used_for(service) >= self.policy.max
    }

    /// Gives a slot to a connection of `peer` over the protocol `service`; `None` if the peer's address has
    /// its share. Where slots run short, evicts connections of lower priority.
    pub(crate) fn admit(self: &Arc<Self>, peer: &Peer, service: usize) -> Option<Admitted> {
        let address = match peer {
            Peer::Ip(ip, _) if self.policy.has_shares() && !self.is_proxy(peer) => Some(network_of(*ip)),
            // Only local programs that the socket's mode admits connect to it, mostly as a proxy.
            Peer::Ip(..) | Peer::Unix => None,
        };
        let opened = since_start();
        let mut registry = self.registry();
        if address.is_some_and(|address| registry.has_its_share(address, &self.policy)) {
            drop(registry);
            self.count_refused();
            return None;
        }
        let (entry, index) = registry.insert(|index| {
            let state = State::of(&self.cells, Connections::CELLS + index, opened);
            Arc::new(Entry::new(Arc::clone(self), state, service, address, opened))
        });
        self.add(Count::Open, 1);
        self.add(Count::Accepted, 1);
        self.evict_in(registry, service);
        Some(Admitted { entry, index })
    }

    /// Evicts connections of lower priority than a new one of the protocol `service`, if slots run short.
    /// Returns whether any is about to end.
    pub(crate) fn make_room(&self, service: usize) -> bool {
        self.evict_in(self.registry(), service)
    }

    /// Closes `count` connections that hold a worker, while others wait for one.
    pub(crate) fn relieve_workers(&self, count: usize) {
        let mut registry = self.registry();
        let evicted = registry.evict_from_workers(count, since_start());
        drop(registry);
        self.end(&evicted);
    }

    fn evict_in(&self, mut registry: MutexGuard<'_, Registry>, service: usize) -> bool {
        if self.open() < self.policy.plenty() {
            return false;
        }
        let evicted = registry.evict_for(service, self.authenticated(), &self.policy, since_start());
        let are_leaving = registry.leaving() > 0;
        drop(registry);
        self.end(&evicted);
        are_leaving
    }

    /// Wakes evicted connections. The lock is not held: a waker may run code that takes it.
    fn end(&self, evicted: &[Arc<Entry>]) {
        self.add(Count::Evicted, evicted.len() as u64);
        evicted.iter().for_each(|entry| entry.end());
    }

    /// Waits until no connection is open, for `time` at most.
    pub(crate) fn wait_until_none(&self, time: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Set before the count is read: the thread that ends the last connection reads this flag after
        // decrementing.
        self.is_awaited.store(true, Ordering::SeqCst);
        // The result does not matter: either all connections have ended, or the time is over.
        let is_any_open = |(): &mut ()| self.cell(Count::Open).load(Ordering::SeqCst) > 0;
        let _ = self.ended.wait_timeout_while(waiting, time, is_any_open);
    }
}

impl Admitted {
    /// The connection's entry, which its conversation reports to.
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Registers the waker that ends the connection when others need its slot.
    pub(crate) fn evict_by(&self, evictor: Waker) {
        self.entry.evict_by(evictor);
    }

    /// Returns whether the connection was evicted.
    pub(crate) fn is_evicted(&self) -> bool {
        self.entry.is_evicted()
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let connections = Arc::clone(&self.entry.connections);
        connections.registry().remove(self.index, &self.entry);
        if self.entry.is_authenticated() {
            connections.cell(Count::Authenticated).fetch_sub(1, Ordering::Relaxed);
        }
        let is_last = connections.cell(Count::Open).fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && connections.is_awaited.load(Ordering::SeqCst) {
            let _waiting = connections.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            connections.ended.notify_all();
        }
    }
}

/// Returns the network that counts as one address: for IPv6 the first 64 bits, because one host has the
/// rest.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests;
