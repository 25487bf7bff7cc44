//! A record of how much of an open file was last found in memory, and when.
//!
//! It makes no system call, and its information may be out of date: it saves a repetition of a recent
//! check. Invariant: it never reports a range as found in memory that no check has found there.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::time::Instant;

/// The unit of the recorded end, in bytes.
const PAGE_BYTES: u64 = 4096;
/// Low bits of the word: pages from the beginning. The other bits: milliseconds.
const PAGES_BITS: u32 = 20;
const PAGES_MASK: u64 = (1 << PAGES_BITS) - 1;

/// How much of an open file, from its beginning, was found in memory, and when. One atomic word, because
/// many threads send the same file.
#[derive(Debug, Default)]
pub struct InMemory(AtomicU64);

/// The decoded word.
#[derive(Clone, Copy)]
struct Found {
    pages: u64,
    at: Duration,
}

impl InMemory {
    /// Whether all of `range` was found in memory, no longer than `time` before `now`.
    pub fn was(&self, range: &Range<u64>, now: Instant, time: Duration) -> bool {
        self.fresh(now, time).is_some_and(|found| range.end <= found.pages * PAGE_BYTES)
    }

    /// Records that `range` was found in memory, unless a gap separates it from the recorded prefix. The
    /// whole prefix has the age of its first part, until `time` has passed.
    pub fn found(&self, range: &Range<u64>, now: Instant, time: Duration) {
        // A page that was read in part is in memory as a whole.
        let pages = range.end.div_ceil(PAGE_BYTES).min(PAGES_MASK);
        let found = match self.fresh(now, time) {
            Some(before) if range.start <= before.pages * PAGE_BYTES => {
                Found { pages: pages.max(before.pages), at: before.at }
            }
            None if range.start == 0 => Found { pages, at: now.since_start() },
            _ => return,
        };
        let millis = u64::try_from(found.at.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis << PAGES_BITS | found.pages, Ordering::Relaxed);
    }

    fn fresh(&self, now: Instant, time: Duration) -> Option<Found> {
        let word = self.0.load(Ordering::Relaxed);
        let found = Found { pages: word & PAGES_MASK, at: Duration::from_millis(word >> PAGES_BITS) };
        let is_fresh = found.pages > 0 && now.since_start().saturating_sub(found.at) < time;
        is_fresh.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::from_start(Duration::from_millis(millis))
    }

    #[test]
    fn nothing_was_found_at_first() {
        assert!(!InMemory::default().was(&(0..1), at(0), TIME));
    }

    #[test]
    fn a_range_found_in_memory_is_trusted_for_its_time() {
        let memory = InMemory::default();
        memory.found(&(0..100_000), at(5_000), TIME);
        assert!(memory.was(&(0..100_000), at(5_999), TIME));
        assert!(memory.was(&(99_999..100_000), at(5_999), TIME));
        assert!(!memory.was(&(0..1), at(6_000), TIME), "its time is over");
        assert!(!memory.was(&(0..200_000), at(5_001), TIME), "nobody looked so far");
    }

    #[test]
    fn parts_add_up_and_are_as_old_as_the_first() {
        let memory = InMemory::default();
        memory.found(&(0..1_048_576), at(0), TIME);
        memory.found(&(1_048_576..2_000_000), at(900), TIME);
        assert!(memory.was(&(0..2_000_000), at(999), TIME));
        assert!(!memory.was(&(1_500_000..2_000_000), at(1_000), TIME));
    }

    #[test]
    fn a_part_behind_a_gap_does_not_count() {
        let memory = InMemory::default();
        memory.found(&(8_192..16_384), at(0), TIME);
        assert!(!memory.was(&(8_192..16_384), at(0), TIME));
        memory.found(&(0..4_096), at(0), TIME);
        memory.found(&(8_192..16_384), at(0), TIME);
        assert!(!memory.was(&(8_192..16_384), at(0), TIME));
        assert!(memory.was(&(0..4_096), at(0), TIME));
    }

    #[test]
    fn less_that_is_found_later_takes_nothing_away() {
        let memory = InMemory::default();
        memory.found(&(0..100_000), at(0), TIME);
        memory.found(&(0..10), at(1), TIME);
        assert!(memory.was(&(0..100_000), at(2), TIME));
    }

    #[test]
    fn an_end_beyond_32_bits_is_looked_up_again() {
        let memory = InMemory::default();
        memory.found(&(0..u64::MAX), at(0), TIME);
        assert!(memory.was(&(0..4_000_000_000), at(0), TIME));
        assert!(!memory.was(&(0..5_000_000_000), at(0), TIME));
    }
}
