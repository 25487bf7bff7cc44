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
    /// Files whose descriptors were received.
    FilesReceived,
    /// Bytes of the received ranges of files.
    BytesReceived,
    /// Bytes of shared memory that open channels have mapped.
    MemoryBytes,
    /// Wake-ups of the peer.
    Wakeups,
    /// Publications that needed no wake-up, because the peer was awake.
    WakeupsSaved,
    /// Channels that wait for room in a ring.
    RoomWaiters,
    /// Waits for room in a ring.
    RoomWaits,
    /// Microseconds of the waits for room that have ended.
    RoomWaitTime,
    /// Channels that wait for a slot.
    SlotWaiters,
    /// Waits for a slot: the peer has to take a frame or a descriptor first.
    SlotWaits,
    /// Microseconds of the waits for a slot that have ended.
    SlotWaitTime,
}

/// The kind of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountKind {
    /// A number that rises and falls.
    Gauge,
    /// A number that only rises.
    Total,
    /// Microseconds, which only rise.
    Microseconds,
}

impl Count {
    /// All counts, in the order of their cells, each with its name, without a unit.
    pub const ALL: [(Count, &'static str); 18] = [
        (Count::Open, "open"),
        (Count::Opened, "opened"),
        (Count::Refused, "refused"),
        (Count::Corrupt, "corrupt"),
        (Count::FilesPassed, "files_passed"),
        (Count::BytesPassed, "bytes_passed"),
        (Count::BytesCopied, "bytes_copied"),
        (Count::FilesReceived, "files_received"),
        (Count::BytesReceived, "bytes_received"),
        (Count::MemoryBytes, "memory_bytes"),
        (Count::Wakeups, "wakeups"),
        (Count::WakeupsSaved, "wakeups_saved"),
        (Count::RoomWaiters, "room_waiters"),
        (Count::RoomWaits, "room_waits"),
        (Count::RoomWaitTime, "room_wait"),
        (Count::SlotWaiters, "slot_waiters"),
        (Count::SlotWaits, "slot_waits"),
        (Count::SlotWaitTime, "slot_wait"),
    ];
}

impl Count {
    /// Returns the kind.
    pub fn kind(self) -> CountKind {
        match self {
            Count::Open | Count::MemoryBytes | Count::RoomWaiters | Count::SlotWaiters => CountKind::Gauge,
            Count::RoomWaitTime | Count::SlotWaitTime => CountKind::Microseconds,
            _ => CountKind::Total,
        }
    }

    /// Returns what is counted, in words for an operator.
    pub fn help(self) -> &'static str {
        match self {
            Count::Open => "Connections by shared memory that are open.",
            Count::Opened => "Connections by shared memory that were set up.",
            Count::Refused => "Handshakes of such connections that failed.",
            Count::Corrupt => "Such connections that ended because the peer broke the protocol.",
            Count::FilesPassed => "Files that were handed over as open descriptors.",
            Count::BytesPassed => "Bytes of files that were handed over as open descriptors.",
            Count::BytesCopied => "Bytes that were copied into rings.",
            Count::FilesReceived => "Files that were received as open descriptors.",
            Count::BytesReceived => "Bytes of files that were received as open descriptors.",
            Count::MemoryBytes => "Shared memory of open connections, which is mostly their rings.",
            Count::Wakeups => "Wake-ups of the peer.",
            Count::WakeupsSaved => "Turns that needed no wake-up, because the peer was awake.",
            Count::RoomWaiters => "Connections that wait for room in a ring.",
            Count::RoomWaits => "Waits for room in a ring.",
            Count::RoomWaitTime => "Time of the waits for room in a ring that have ended.",
            Count::SlotWaiters => "Connections that wait for a slot.",
            Count::SlotWaits => "Waits for a slot: the peer has to take a frame or a descriptor.",
            Count::SlotWaitTime => "Time of the waits for a slot that have ended.",
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

    pub(crate) fn subtract(&self, count: Count, amount: u64) {
        if let Some(cell) = self.0.get(count as usize) {
            cell.fetch_sub(amount, Ordering::Relaxed);
        }
    }
}

/// Counts one channel as open while it exists.
pub(crate) struct Open {
    meter: Arc<Meter>,
    memory_bytes: u64,
}

impl Open {
    pub(crate) fn new(meter: &Arc<Meter>, memory_bytes: usize) -> Open {
        let memory_bytes = memory_bytes as u64;
        meter.add(Count::Open, 1);
        meter.add(Count::Opened, 1);
        meter.add(Count::MemoryBytes, memory_bytes);
        Open { meter: Arc::clone(meter), memory_bytes }
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.meter.subtract(Count::Open, 1);
        self.meter.subtract(Count::MemoryBytes, self.memory_bytes);
    }
}
