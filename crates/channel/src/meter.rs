//! The counters of all channels of one side.
//!
//! They decide nothing. Invariant: counting is one atomic addition, and processes that share the cells count
//! together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::Cells;

/// A count, by the index of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Open channels.
    Open,
    /// Channels that were set up.
    Opened,
    /// Handshakes that failed.
    Refused,
    /// Channels that ended because the peer wrote what no correct peer writes.
    Corrupt,
    /// Files whose descriptors were passed.
    FilesPassed,
    /// Bytes of the passed ranges of files.
    BytesPassed,
    /// Bytes that were copied into rings.
    BytesCopied,
    /// Wake-ups of the peer.
    Wakeups,
    /// Publications that needed no wake-up, because the peer was awake.
    WakeupsSaved,
    /// Waits for room in a ring.
    RoomWaits,
    /// Waits for a slot: a descriptor that the peer has to take first.
    SlotWaits,
}

impl Count {
    /// All counts, in the order of their cells, each with its name in a metric.
    pub const ALL: [(Count, &'static str); 11] = [
        (Count::Open, "open"),
        (Count::Opened, "opened"),
        (Count::Refused, "refused"),
        (Count::Corrupt, "corrupt"),
        (Count::FilesPassed, "files_passed"),
        (Count::BytesPassed, "bytes_passed"),
        (Count::BytesCopied, "bytes_copied"),
        (Count::Wakeups, "wakeups"),
        (Count::WakeupsSaved, "wakeups_saved"),
        (Count::RoomWaits, "room_waits"),
        (Count::SlotWaits, "slot_waits"),
    ];
}

impl Count {
    /// Returns what is counted, in words for an operator.
    pub fn help(self) -> &'static str {
        match self {
            Count::Open => "Connections by shared memory that are open.",
            Count::Opened => "Connections by shared memory that were set up.",
            Count::Refused => "Handshakes of such connections that failed.",
            Count::Corrupt => "Such connections that ended because the peer broke the protocol.",
            Count::FilesPassed => "Files that were handed over as open descriptors.",
            Count::BytesPassed => "Bytes of the ranges of these files.",
            Count::BytesCopied => "Bytes that were copied into rings.",
            Count::Wakeups => "Wake-ups of the peer.",
            Count::WakeupsSaved => "Turns that needed no wake-up, because the peer was awake.",
            Count::RoomWaits => "Waits for room in a ring.",
            Count::SlotWaits => "Waits for the peer to take a descriptor.",
        }
    }
}

/// The counters.
pub struct Meter(Cells);

impl Meter {
    /// The number of cells.
    pub const CELLS: usize = Count::ALL.len();

    /// Creates counters in the memory of this process.
    pub fn own() -> Arc<Meter> {
        Meter::in_cells(Cells::own(Meter::CELLS))
    }

    /// Creates counters in [`Meter::CELLS`] cells, which other processes may share.
    pub fn in_cells(cells: Cells) -> Arc<Meter> {
        Arc::new(Meter(cells))
    }

    /// Returns a count.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, count: Count, amount: u64) {
        if let Some(cell) = self.0.get(count as usize) {
            cell.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn subtract(&self, count: Count, amount: u64) {
        if let Some(cell) = self.0.get(count as usize) {
            cell.fetch_sub(amount, Ordering::Relaxed);
        }
    }
}

/// Counts one channel as open while it exists.
pub(crate) struct Open(pub(crate) Arc<Meter>);

impl Open {
    pub(crate) fn new(meter: &Arc<Meter>) -> Open {
        meter.add(Count::Open, 1);
        meter.add(Count::Opened, 1);
        Open(Arc::clone(meter))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.subtract(Count::Open, 1);
    }
}
