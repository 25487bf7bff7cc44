//! How the ports for passive data connections are shared out among accounts and addresses.
//!
//! It opens no port. A session holds a port from PASV or EPSV until the data connection is open, or until the
//! port is closed because none came. Invariants: no account and no address holds more ports than its share.
//! A hold whose process was killed ends by itself.
//!
//! There is a cell for each port, with the holder's account and address as short hashes, so that processes
//! can share the cells on a page. The cells are counted only while as many ports are held as the smallest
//! share.

use core::net::IpAddr;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::{Cells, Instant};

use super::limits::{ACCOUNT_PORTS_PART, ADDRESS_PORTS_PART};

/// A holder's share of the ports is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HasItsShare;

/// The shares of the ports.
pub struct PortShares {
    /// The number of held ports, which is never too low; then a cell for each port.
    cells: Cells,
    /// Keyed, so that no client can choose a name with the hash of another.
    hasher: RandomState,
}

/// The holder of a port, and when it is held.
pub(super) struct Holder<'a> {
    /// The account, unless the client is a guest.
    pub(super) account: Option<&'a str>,
    pub(super) address: IpAddr,
    pub(super) now: Instant,
    /// The time by which the port is released in any case.
    pub(super) until: Instant,
}

/// A held port. Dropping it releases the port.
pub(super) struct PortHold {
    shares: Arc<PortShares>,
    cell: usize,
    word: u64,
}

/// The bits of a hash.
const TAG_BITS: u32 = 16;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// The word of a held port: the second at which the hold ends, and the hashes of account and address.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    fn is_held(self, now: Instant) -> bool {
        self.0 >> (2 * TAG_BITS) > seconds(now)
    }

    fn account(self) -> u64 {
        self.0 >> TAG_BITS & TAG_MASK
    }

    fn address(self) -> u64 {
        self.0 & TAG_MASK
    }
}

fn seconds(at: Instant) -> u64 {
    at.since_start().as_secs()
}

impl PortShares {
    /// The number of cells where processes share them: ports beyond that share cells.
    pub const CELLS: usize = 1 + 10_000;

    /// Creates the shares of `ports` ports, used by one process.
    pub fn new(ports: usize) -> PortShares {
        PortShares::in_cells(Cells::own(1 + ports.max(1)))
    }

    /// Creates shares in `cells`, of which there are two at least.
    pub fn in_cells(cells: Cells) -> PortShares {
        PortShares { cells, hasher: RandomState::new() }
    }

    fn held_cell(&self) -> &AtomicU64 {
        &self.cells[0]
    }

    /// Returns the number of held ports, or more if processes were killed.
    pub(super) fn held(&self) -> usize {
        usize::try_from(self.held_cell().load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Returns a hash that is never 0, which is the hash of no account.
    fn tag(&self, of: impl Hash) -> u64 {
        self.hasher.hash_one(of) % TAG_MASK + 1
    }

    fn word(&self, holder: &Holder<'_>) -> Word {
        let account = holder.account.map_or(0, |name| self.tag(name));
        let address = match holder.address {
            IpAddr::V4(ip) => self.tag(ip),
            // One host has the rest.
            IpAddr::V6(ip) => self.tag(&ip.octets()[..8]),
        };
        // A second more, because the time is cut to seconds.
        let until = seconds(holder.until + Duration::from_secs(1));
        Word(until << (2 * TAG_BITS) | account << TAG_BITS | address)
    }

    /// Checks that the holder may have one more of `ports` ports.
    pub(super) fn check(&self, holder: &Holder<'_>, ports: usize) -> Result<(), HasItsShare> {
        let share = |part: usize| (ports / part).max(1);
        let (of_account, of_address) = (share(ACCOUNT_PORTS_PART), share(ADDRESS_PORTS_PART));
        if self.held() < of_account.min(of_address) {
            return Ok(());
        }
        let own = self.word(holder);
        let (mut all, mut by_account, mut by_address) = (0, 0, 0);
        for word in self.cells[1..].iter().map(|cell| Word(cell.load(Ordering::Relaxed))) {
            if word.is_held(holder.now) {
                all += 1;
                by_account += usize::from(word.account() == own.account());
                by_address += usize::from(word.address() == own.address());
            }
        }
        // Killed processes have left it too high.
        self.held_cell().store(all, Ordering::Relaxed);
        let is_over = own.account() != 0 && by_account >= of_account || by_address >= of_address;
        if is_over { Err(HasItsShare) } else { Ok(()) }
    }

    /// Takes the port `index` of the range; `None` if it is held.
    pub(super) fn take(self: &Arc<Self>, index: usize, holder: &Holder<'_>) -> Option<PortHold> {
        let (cell, word) = (1 + index % (self.cells.len() - 1), self.word(holder).0);
        let take = |before| (!Word(before).is_held(holder.now)).then_some(word);
        self.cells[cell].fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        self.held_cell().fetch_add(1, Ordering::Relaxed);
        Some(PortHold { shares: Arc::clone(self), cell, word })
    }
}

impl Drop for PortHold {
    fn drop(&mut self) {
        let (cell, held) = (&self.shares.cells[self.cell], self.shares.held_cell());
        // After the hold's end, another session may have the port.
        if cell.compare_exchange(self.word, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let less = |held: u64| Some(held.saturating_sub(1));
            let _ = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_start(Duration::from_secs(seconds))
    }

    fn holder(account: Option<&str>, last: u8) -> Holder<'_> {
        Holder { account, address: [192, 0, 2, last].into(), now: at(10), until: at(70) }
    }

    /// Takes as many ports as the shares allow.
    fn take_all<'a>(
        shares: &Arc<PortShares>,
        ports: usize,
        holders: impl Fn(usize) -> Holder<'a>,
    ) -> Vec<PortHold> {
        let mut taken = Vec::new();
        for index in 0..ports {
            if shares.check(&holders(index), ports).is_ok() {
                taken.extend(shares.take(index, &holders(index)));
            }
        }
        taken
    }

    #[test]
    fn an_account_has_a_quarter_of_the_ports_from_all_its_addresses() {
        let shares = Arc::new(PortShares::new(100));
        let held = take_all(&shares, 100, |index| holder(Some("alice"), u8::try_from(index).unwrap()));
        assert_eq!(held.len(), 25);
        assert!(shares.check(&holder(Some("alice"), 200), 100).is_err());
        assert!(shares.check(&holder(Some("bob"), 200), 100).is_ok());
        drop(held);
        assert!(shares.check(&holder(Some("alice"), 200), 100).is_ok());
        assert_eq!(shares.held(), 0);
    }

    #[test]
    fn an_address_has_half_of_the_ports_for_all_its_accounts() {
        let shares = Arc::new(PortShares::new(100));
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let held = take_all(&shares, 100, |index| holder(Some(&names[index]), 1));
        assert_eq!(held.len(), 50);
        assert!(shares.check(&holder(None, 1), 100).is_err(), "a guest has an address, too");
        assert!(shares.check(&holder(None, 2), 100).is_ok());
    }

    #[test]
    fn a_single_port_can_be_held() {
        let shares = Arc::new(PortShares::new(1));
        let held = take_all(&shares, 1, |_| holder(Some("alice"), 1));
        assert_eq!(held.len(), 1);
        assert!(shares.take(0, &holder(Some("bob"), 2)).is_none());
        drop(held);
        assert!(shares.take(0, &holder(Some("bob"), 2)).is_some());
    }

    #[test]
    fn a_hold_that_was_never_released_ends() {
        let shares = Arc::new(PortShares::new(4));
        std::mem::forget(shares.take(0, &holder(Some("alice"), 1)));
        assert!(shares.check(&holder(Some("alice"), 1), 4).is_err());
        let later = || Holder { now: at(72), until: at(132), ..holder(Some("alice"), 1) };
        assert!(shares.check(&later(), 4).is_ok());
        assert!(shares.take(0, &later()).is_some());
    }
}
