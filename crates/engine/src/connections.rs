//! The count of open connections, and the bound that it keeps.
//!
//! It is not a limit of attempts or of rates. What must hold: a connection is counted from its accept until
//! its task is gone, whichever way it goes; no single address can take all places.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_io::Peer;

/// Connections of a server: how many are open, have been, and may be.
#[derive(Debug)]
pub struct Connections {
    open: AtomicUsize,
    accepted: AtomicU64,
    panicked: AtomicU64,
    refused: AtomicU64,
    cut_off: AtomicU64,
    max: usize,
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
    /// None yet, `max` at most.
    pub fn new(max: usize) -> Arc<Connections> {
        Arc::new(Connections {
            open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            max,
            by_address: Mutex::default(),
            ended: Condvar::new(),
            waiting: Mutex::new(()),
            is_awaited: AtomicBool::new(false),
        })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many were dropped because serving them panicked: each is a defect of the server.
    pub fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(crate) fn count_panic(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
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
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were cut off because the grace was over.
    pub fn cut_off(&self) -> u64 {
        self.cut_off.load(Ordering::Relaxed)
    }

    pub(crate) fn count_cut_off(&self, connections: usize) {
        self.cut_off.fetch_add(connections as u64, Ordering::Relaxed);
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
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(Admitted { connections: Arc::clone(self), address })
    }

    /// Waits until none is open, for `time` at most.
    pub(crate) fn wait_until_none(&self, time: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the count is looked at: whoever ends the last one looks at this after it.
        self.is_awaited.store(true, Ordering::SeqCst);
        // How it ended does not matter: either all have gone, or the grace is over.
        let is_any_open = |(): &mut ()| self.open.load(Ordering::SeqCst) > 0;
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
        let is_last = connections.open.fetch_sub(1, Ordering::SeqCst) == 1;
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
