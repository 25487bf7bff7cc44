//! Seats before the password hashing: how many one account's name and one address take at a time.
//!
//! It counts no failures (`attempts.rs` does): a right password costs as much as a wrong one. What must
//! hold: a seat is kept until its hash is made or given up, also when nobody waits for it any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::attempts::Source;
use crate::limits::{HASHES_PER_ADDRESS_MAX, HASHES_PER_NAME_MAX};

/// Whose seats are counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Name(String),
    Address(Vec<u8>),
}

impl Holder {
    fn max(&self) -> usize {
        match self {
            Holder::Name(_) => HASHES_PER_NAME_MAX,
            Holder::Address(_) => HASHES_PER_ADDRESS_MAX,
        }
    }
}

/// The seats that are taken. It has an entry for nobody else, so the engine's queues bound its size.
#[derive(Default)]
pub(crate) struct Seats {
    taken: Mutex<BTreeMap<Holder, usize>>,
}

/// One seat; dropped, it is free.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    holders: Vec<Holder>,
}

impl Seats {
    /// Takes a seat for a name and an address, where they count; none if either has as many as it may.
    pub(crate) fn take(self: &Arc<Seats>, name: Option<&str>, from: Option<Source>) -> Option<Seat> {
        let name = name.map(|name| Holder::Name(name.to_owned()));
        let address = from.map(|from| Holder::Address(from.place()));
        let holders: Vec<Holder> = [name, address].into_iter().flatten().collect();
        let mut taken = self.taken();
        if holders.iter().any(|holder| taken.get(holder).is_some_and(|count| *count >= holder.max())) {
            return None;
        }
        for holder in &holders {
            *taken.entry(holder.clone()).or_default() += 1;
        }
        drop(taken);
        Some(Seat { seats: Arc::clone(self), holders })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<Holder, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        for holder in &self.holders {
            if let Some(count) = taken.get_mut(holder) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> Option<Source> {
        Some(Source::Ip(core::net::Ipv4Addr::new(192, 0, 2, last).into()))
    }

    #[test]
    fn a_name_has_so_many_from_wherever_and_a_seat_that_is_left_is_free() {
        let seats = Arc::new(Seats::default());
        let mut held: Vec<Seat> = (0..4).map(|last| seats.take(Some("alice"), from(last)).unwrap()).collect();
        assert!(seats.take(Some("alice"), from(9)).is_none());
        assert!(seats.take(Some("bob"), from(9)).is_some());
        held.pop();
        assert!(seats.take(Some("alice"), from(9)).is_some());
        drop(held);
        assert!(seats.taken().is_empty());
    }

    #[test]
    fn an_address_has_so_many_for_whatever_names_unless_it_is_exempt() {
        let seats = Arc::new(Seats::default());
        let take = |number: usize, from| seats.take(Some(&format!("name{number}")), from);
        let held: Vec<Seat> = (0..HASHES_PER_ADDRESS_MAX).map(|at| take(at, from(1)).unwrap()).collect();
        assert!(take(99, from(1)).is_none());
        assert!(take(99, from(2)).is_some() && take(99, None).is_some());
        drop(held);
        assert!(seats.taken().is_empty());
    }
}
