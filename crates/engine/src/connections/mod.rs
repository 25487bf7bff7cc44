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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use plimsoll_io::{Cells, ClientNetwork, Networks, Peer};

use eviction::Newcomers;
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
    /// Reports of processes that their connection counts for another network.
    Recounted,
}

/// The connections of a server: how many are open, were accepted, and are allowed.
#[derive(Debug)]
pub struct Connections {
    cells: Cells,
    policy: SlotPolicy,
    proxies: RwLock<Proxies>,
    /// Used only by the process that accepts.
    registry: Mutex<Registry>,
    ended: Condvar,
    waiting: Mutex<()>,
    /// Whether a thread waits for the last connection to end: a notification without a waiter costs a system
    /// call, too.
    is_awaited: AtomicBool,
}

/// The peers that may have any number of slots, because each brings many clients, whom it names.
#[derive(Debug, Default)]
struct Proxies {
    trusted: Networks,
    /// The protocols whose connections begin with a header that names the client: by number, a bit each.
    with_headers: u64,
}

/// One connection's slot: dropping it releases the slot.
pub(crate) struct Admitted {
    entry: Arc<Entry>,
}

impl Connections {
    /// The number of cells that the counters take.
    pub const CELLS: usize = Count::Recounted as usize + 1;
    /// The number of cells where each connection is a process: each process reports to the accepting process
    /// its state by a cell of its own, and the network that it counts for by another.
    pub const SHARED_CELLS: usize = Connections::CELLS + 2 * PROCESS_CELLS;

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
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(networks) = self.shared_networks() {
            registry.follow(networks, self.cell(Count::Recounted).load(Ordering::Acquire));
        }
        registry
    }

    /// Returns the cells by which processes report the networks that they count for.
    fn shared_networks(&self) -> Option<&'static [AtomicU64]> {
        match &self.cells {
            Cells::Page(cells) => cells.get(Connections::CELLS + PROCESS_CELLS..Connections::SHARED_CELLS),
            Cells::Own(_) => None,
        }
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
        self.proxies.write().unwrap_or_else(PoisonError::into_inner).trusted = proxies;
    }

    /// Counts no connection of the protocol `service` before a header has named its client. If there are
    /// trusted proxies, this applies to theirs only.
    pub fn expect_headers(&self, service: usize) {
        self.proxies.write().unwrap_or_else(PoisonError::into_inner).with_headers |= 1 << service;
    }

    /// Returns the network that a new connection of `peer` counts for.
    fn network_of_peer(&self, peer: &Peer, service: usize) -> Option<ClientNetwork> {
        let proxies = self.proxies.read().unwrap_or_else(PoisonError::into_inner);
        let is_named_later = proxies.trusted.is_empty() && proxies.with_headers & 1 << service != 0;
        if is_named_later { None } else { self.network_unless_in(&proxies.trusted, peer) }
    }

    /// Returns the network that connections of `client` count for. They count for none if it is one of
    /// `proxies`, or a local program: the mode of its socket admits only those.
    fn network_unless_in(&self, proxies: &Networks, client: &Peer) -> Option<ClientNetwork> {
        match client {
            Peer::Ip(ip, _) if self.policy.has_shares() && !proxies.contain(client) => {
                Some(ClientNetwork::of(*ip))
            }
            Peer::Ip(..) | Peer::Unix => None,
        }
    }

    /// Counts the connection in slot `index` for another client. Returns false if that has its share.
    fn recount(&self, index: usize, client: Option<&Peer>) -> bool {
        let network = client.and_then(|client| {
            let proxies = self.proxies.read().unwrap_or_else(PoisonError::into_inner);
            self.network_unless_in(&proxies.trusted, client)
        });
        let fits = match self.shared_networks() {
            Some(networks) => self.recount_shared(networks, index, network),
            None => self.registry().recount(index, network, &self.policy),
        };
        self.add(Count::Refused, u64::from(!fits));
        fits
    }

    /// As [`Connections::recount`], in the process of the connection. Of several processes that report at
    /// the same time, two can both be refused, but never both take the last slot.
    fn recount_shared(&self, networks: &[AtomicU64], index: usize, network: Option<ClientNetwork>) -> bool {
        let Some(own) = networks.get(index) else { return true };
        let word = ClientNetwork::word(network);
        let mut fits = true;
        if own.swap(word, Ordering::SeqCst) != word {
            if network.is_some() {
                let is_short = self.open() >= self.policy.short();
                let count = networks.iter().filter(|cell| cell.load(Ordering::SeqCst) == word).count();
                fits = count <= self.policy.share_of_address(is_short);
            }
            if !fits {
                own.store(ClientNetwork::word(None), Ordering::SeqCst);
            }
            self.cell(Count::Recounted).fetch_add(1, Ordering::Release);
        }
        fits
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
        let network = self.network_of_peer(peer, service);
        let opened = since_start();
        let mut registry = self.registry();
        if network.is_some_and(|network| registry.has_its_share(network, &self.policy)) {
            drop(registry);
            self.count_refused();
            return None;
        }
        let entry = registry.insert(network, |index| {
            let state = State::of(&self.cells, Connections::CELLS + index, opened);
            self.report_network(index, network);
            Arc::new(Entry::new(Arc::clone(self), state, (index, service), opened))
        });
        self.add(Count::Open, 1);
        self.add(Count::Accepted, 1);
        self.evict_in(registry, Newcomers { service, waiting: 0 });
        Some(Admitted { entry })
    }

    /// Writes the network of a slot where processes share it.
    fn report_network(&self, index: usize, network: Option<ClientNetwork>) {
        let cell = self.shared_networks().and_then(|networks| networks.get(index));
        cell.into_iter().for_each(|cell| cell.store(ClientNetwork::word(network), Ordering::SeqCst));
    }

    /// Evicts connections of lower priority than the one of the protocol `service` that waits to be accepted,
    /// if slots run short. Returns whether any is about to end.
    pub(crate) fn make_room(&self, service: usize) -> bool {
        self.evict_in(self.registry(), Newcomers { service, waiting: 1 })
    }

    /// Closes `count` connections that hold a worker, while others wait for one.
    pub(crate) fn relieve_workers(&self, count: usize) {
        let mut registry = self.registry();
        let evicted = registry.evict_from_workers(count, since_start());
        drop(registry);
        self.end(&evicted);
    }

    /// Closes a connection whose client keeps a connection to another server waiting. A connection's process
    /// has such connections of its own, so that nothing waits for those of others.
    fn relieve_upstream(&self) {
        if self.shared_networks().is_some() {
            return;
        }
        let evicted = self.registry().evict_from_upstream(since_start());
        self.end(evicted.as_slice());
    }

    fn evict_in(&self, mut registry: MutexGuard<'_, Registry>, newcomers: Newcomers) -> bool {
        if self.open() < self.policy.plenty() {
            return false;
        }
        let evicted = registry.evict_for(newcomers, self.authenticated(), &self.policy, since_start());
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
        let mut registry = connections.registry();
        registry.remove(&self.entry);
        connections.report_network(self.entry.index, None);
        drop(registry);
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

#[cfg(test)]
mod tests;
