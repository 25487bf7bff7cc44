//! The kernel's clocks, read once per turn.
//!
//! It is not a source of timers. Invariant: time stands still within one turn, so the kernel's clock is read
//! once for all connections of the turn. It is read again only after a job is submitted, which may have run
//! in place.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::SystemTime;

use plimsoll_io::Instant;

/// The origin of time for all threads, so that one thread can compare its time with another's.
static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Returns the present time on the clock that all threads share, for callers without an event loop. Zero is
/// the clock's first use.
pub fn since_start() -> Instant {
    Instant::from_start(START.elapsed())
}

/// Monotonic clock and time of day as of this turn.
pub(crate) struct Clock {
    now: Cell<Instant>,
    wall: Cell<Option<SystemTime>>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock { now: Cell::new(since_start()), wall: Cell::new(None) }
    }

    /// Reads the clock for a new turn.
    pub(crate) fn tick(&self) -> Instant {
        self.now.set(since_start());
        self.wall.set(None);
        self.now.get()
    }

    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn wall(&self) -> SystemTime {
        let wall = self.wall.get().unwrap_or_else(SystemTime::now);
        self.wall.set(Some(wall));
        wall
    }

    /// Reads the time of day, also for the rest of this turn.
    pub(crate) fn wall_exact(&self) -> SystemTime {
        self.wall.set(None);
        self.wall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_stands_still_within_a_turn_unless_it_is_read_exactly() {
        let clock = Clock::new();
        let before = clock.wall();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(clock.wall(), before);
        let exact = clock.wall_exact();
        assert!(exact > before);
        assert_eq!(clock.wall(), exact);
    }
}
