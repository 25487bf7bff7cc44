//! The count of open connections, and the bound that it keeps.
//!
//! It is not a limit of attempts or of rates. What must hold: a connection is counted from its accept until
//! its task is gone, whichever way it goes; no single address can take all places.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_io::{Cells, Peer};

/// Which cell counts what.
#[derive(Clone, Copy)]
enum Count {
    Open,
    Accepted,
    Panicked,
    Refused,
    CutOff,
}

/// Connections of a server: how many are open, have been, and may be.
#[derive(Debug)]
pub struct Connections {
    cells: Cells,
    max: usize,
    /// Of the process that accepts.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    ended: Condvar,
    waiting: Mutex<()>,
    /// Whether anybody waits for the last to end: to wake nobody costs a system call, too.
    is_awaited: AtomicBool,
}

/// One connection's place in the count.
pub(crate) struct Admitted {
    connections: Arc<Connections>,
    address: Option<IpAddr>,
}

impl Connections {
    /// How many cells they are counted in.
    pub const CELLS: usize = Count::CutOff as usize + 1;

    /// None yet, `max` at most.
    pub fn new(max: usize) -> Arc<Connections> {
        Connections::counted_in(Cells::own(Connections::CELLS), max)
    }

    /// The same, counted in `cells`, of which there are [`Connections::CELLS`].
    pub fn counted_in(cells: Cells, max: usize) -> Arc<Connections> {
        Arc::new(Connections {
            cells,
            max,
            by_address: Mutex::default(),
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

    /// How many are open.
    pub fn open(&self) -> usize {
        usize::try_from(self.read(Count::Open)).unwrap_or(usize::MAX)
    }

    /// How many were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.read(Count::Accepted)
    }

    /// How many were dropped because serving them panicked: each is a defect of the server.
    pub fn panicked(&self) -> u64 {
        self.read(Count::Panicked)
    }

    pub(crate) fn count_panic(&self) {
        self.add(Count::Panicked, 1);
    }

    /// How many may be open.
    pub fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open() >= self.max
    }

    /// How many were refused: their address had half of all places, or no worker came to them.
    pub fn refused(&self) -> u64 {
        self.read(Count::Refused)
    }

    pub(crate) fn count_refused(&self) {
        self.add(Count::Refused, 1);
    }

    /// How many were cut off because the grace was over.
    pub fn cut_off(&self) -> u64 {
        self.read(Count::CutOff)
    }

    pub(crate) fn count_cut_off(&self, connections: usize) {
        self.add(Count::CutOff, connections as u64);
    }

    /// A place for a connection of `peer`; none if its address has half of them already.
    pub(crate) fn admit(self: &Arc<Self>, peer: &Peer) -> Option<Admitted> {
        let address = match peer {
            Peer::Ip(ip, _) => Some(network_of(*ip)),
            Peer::Unix => None,
        };
        if let Some(address) = address {
            let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            let count = by_address.entry(address).or_default();
            if *count >= (self.max / 2).max(1) {
                self.count_refused();
                return None;
            }
            *count += 1;
        }
        self.add(Count::Open, 1);
        self.add(Count::Accepted, 1);
        Some(Admitted { connections: Arc::clone(self), address })
    }

    /// Waits until none is open, for `time` at most.
    pub(crate) fn wait_until_none(&self, time: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the count is looked at: whoever ends the last one looks at this after it.
        self.is_awaited.store(true, Ordering::SeqCst);
        // How it ended does not matter: either all have gone, or the grace is over.
        let is_any_open = |(): &mut ()| self.cell(Count::Open).load(Ordering::SeqCst) > 0;
        let _ = self.ended.wait_timeout_while(waiting, time, is_any_open);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let connections = &self.connections;
        if let Some(address) = self.address {
            let mut by_address = connections.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            if let Entry::Occupied(mut count) = by_address.entry(address) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        let is_last = connections.cell(Count::Open).fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && connections.is_awaited.load(Ordering::SeqCst) {
            let _waiting = connections.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            connections.ended.notify_all();
        }
    }
}

/// What counts as one address: of IPv6 the first 64 bits, because a peer has all the others to itself.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(ip: &str) -> Peer {
        Peer::Ip(ip.parse().unwrap(), 1)
    }

    #[test]
    fn one_address_has_half_of_the_places_and_gets_them_back() {
        let connections = Connections::new(4);
        let mut held: Vec<_> = (0..2).map(|_| connections.admit(&peer("192.0.2.1")).unwrap()).collect();
        assert!(connections.admit(&peer("192.0.2.1")).is_none());
        let other = connections.admit(&peer("192.0.2.2")).unwrap();
        assert_eq!((connections.open(), connections.refused()), (3, 1));
        held.pop();
        assert!(connections.admit(&peer("192.0.2.1")).is_some());
        drop((held, other));
        assert_eq!((connections.open(), connections.accepted()), (0, 4));
        assert!(connections.by_address.lock().unwrap().is_empty());
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_count_as_one() {
        assert_eq!(network_of("2001:db8::1".parse().unwrap()), network_of("2001:db8::2:3".parse().unwrap()));
        assert_ne!(
            network_of("2001:db8::1".parse().unwrap()),
            network_of("2001:db8:0:1::1".parse().unwrap())
        );
    }
}
