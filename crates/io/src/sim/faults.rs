//! The faults of a simulation, setting by setting.
//!
//! A setting does not cause a fault by itself: the seed draws when it occurs. Invariant:
//! [`Faults::none`] leaves nothing to chance, so that an exchange can be split at one chosen byte and at
//! no other.

use std::time::Duration;

use super::chance::{Chance, PER_MILLE};
use super::limits::WINDOW_BYTES_MAX;

/// A tiny window opens by a byte for this many that went through it, so that it delays short exchanges
/// and does not stop long ones.
pub(super) const WINDOW_OPENS_EVERY: u64 = 64;

/// The possible faults, and their probabilities. The fields are public: take a constructor's result and
/// change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Bytes are sent, arrive and are received in random portions, down to a single byte.
    pub splits: bool,
    /// The first this many bytes of each direction arrive separately from the rest.
    pub fixed_split: Option<usize>,
    /// The maximum of the random part of every network delay.
    pub delay_max: Duration,
    /// Windows are of random size, mostly tiny; else all are [`WINDOW_BYTES_MAX`].
    pub small_windows: bool,
    /// Tasks that are ready together are polled in random order; else in the order they were woken.
    pub shuffle: bool,
    /// Chance that a receive is pending though bytes are there, as in an engine at the end of a
    /// connection's turn. Of a thousand.
    pub hold_back: u16,
    /// Chance that a non-blocking query of files returns [`std::io::ErrorKind::WouldBlock`]. Of a
    /// thousand.
    pub would_block: u16,
    /// Chance that a read or a write of a file moves fewer bytes than requested. Of a thousand.
    pub short_reads: u16,
    /// The maximum of the random delay before an offloaded job runs.
    pub offload_delay_max: Duration,
    /// Share of streams that take [`crate::Segment::File`]. Of a thousand.
    pub takes_files: u16,
    /// Chance that the connection is reset when bytes are about to be sent. Of a thousand.
    pub resets: u16,
    /// Chance that a reset takes from the receiver bytes that have arrived and were not read. Of a
    /// thousand.
    pub reset_discards: u16,
}

impl Faults {
    /// No faults and no random choices: whole segments, one short delay.
    pub fn none() -> Faults {
        Faults {
            splits: false,
            fixed_split: None,
            delay_max: Duration::ZERO,
            small_windows: false,
            shuffle: false,
            hold_back: 0,
            would_block: 0,
            short_reads: 0,
            offload_delay_max: Duration::ZERO,
            takes_files: PER_MILLE,
            resets: 0,
            reset_discards: 0,
        }
    }

    /// The usual setting: nothing breaks, but bytes are split, tasks reordered and everything delayed.
    pub fn splits() -> Faults {
        Faults {
            splits: true,
            fixed_split: None,
            delay_max: Duration::from_millis(5),
            small_windows: true,
            shuffle: true,
            hold_back: 100,
            would_block: 300,
            short_reads: 300,
            offload_delay_max: Duration::from_millis(20),
            takes_files: PER_MILLE / 2,
            resets: 0,
            reset_discards: PER_MILLE / 2,
        }
    }

    /// As [`Faults::splits`], and of a thousand sends, `per_mille` find the connection reset.
    pub fn resets(per_mille: u16) -> Faults {
        Faults { resets: per_mille, ..Faults::splits() }
    }

    /// As [`Faults::none`], but the first `bytes` of each direction arrive separately from the rest.
    pub fn split_at(bytes: usize) -> Faults {
        Faults { fixed_split: Some(bytes), ..Faults::none() }
    }

    /// Draws how many of `most` bytes move in one step.
    pub(super) fn portion(&self, chance: &mut Chance, most: usize) -> usize {
        if !self.splits || most <= 1 {
            return most;
        }
        match chance.below(4) {
            0 => 1,
            1 => most,
            _ => 1 + chance.index(most),
        }
    }

    /// Draws the initial window of a direction.
    pub(super) fn window(&self, chance: &mut Chance) -> usize {
        if !self.small_windows {
            return WINDOW_BYTES_MAX;
        }
        match chance.below(8) {
            0 => 1,
            1..=3 => 1 + chance.index(64),
            4..=5 => 1 + chance.index(4096),
            _ => 1 + chance.index(WINDOW_BYTES_MAX),
        }
    }

    /// Draws a duration of at most `most`; zero in a third of cases.
    pub(super) fn delay(chance: &mut Chance, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        if nanos == 0 || chance.chance(PER_MILLE / 3) {
            return Duration::ZERO;
        }
        Duration::from_nanos(chance.below(nanos.saturating_add(1)))
    }
}
