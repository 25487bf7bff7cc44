//! The wait of a channel's side for its peer, counted while it lasts.
//!
//! It wakes nothing. Invariant: a wait that ends in any way is no longer counted as present.

use std::sync::Arc;

use plimsoll_io::Instant;

use crate::meter::{Count, Meter};

/// The lack for which a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Room in the ring.
    Room,
    /// A slot: the peer has to take a frame or a descriptor.
    Slot,
}

impl Lack {
    /// Returns the counts of present waits, of all waits, and of their time.
    fn counts(self) -> (Count, Count, Count) {
        match self {
            Lack::Room => (Count::RoomWaiters, Count::RoomWaits, Count::RoomWaitTime),
            Lack::Slot => (Count::SlotWaiters, Count::SlotWaits, Count::SlotWaitTime),
        }
    }
}

/// A wait.
pub(crate) struct Wait {
    meter: Arc<Meter>,
    lack: Lack,
    since: Instant,
}

impl Wait {
    /// Begins a wait.
    pub(crate) fn new(meter: &Arc<Meter>, lack: Lack, now: Instant) -> Wait {
        let (waiters, waits, _) = lack.counts();
        meter.add(waiters, 1);
        meter.add(waits, 1);
        Wait { meter: Arc::clone(meter), lack, since: now }
    }

    /// Returns the lack.
    pub(crate) fn lack(&self) -> Lack {
        self.lack
    }

    /// Ends it, and counts its time.
    pub(crate) fn end(self, now: Instant) {
        let (_, _, time) = self.lack.counts();
        self.meter.add(time, u64::try_from((now - self.since).as_micros()).unwrap_or(u64::MAX));
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let (waiters, ..) = self.lack.counts();
        self.meter.subtract(waiters, 1);
    }
}
