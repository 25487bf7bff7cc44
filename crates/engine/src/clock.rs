//! The system's clocks, read once per turn.
//!
//! It is not a source of timers. What must hold: within one turn, time stands still, so that a hundred
//! connections that look at the clock cost one reading.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::SystemTime;

use plimsoll_io::Instant;

/// All threads count from here, so that one can tell how old is what another has kept.
static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// The time by the clock that all threads have: for who stamps something before there is a loop.
pub fn since_start() -> Instant {
    Instant::from_start(START.elapsed())
}

/// Clock and time of day as of this turn.
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
}
