//! The end of a database call, as a time of the monotonic clock.
//!
//! It waits for nothing. The other files of the directories read no clock, except those of SQLite's
//! library.

use std::time::{Duration, Instant};

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub(in crate::directory) struct Deadline(Instant);

impl Deadline {
    /// Returns the time `time` from now.
    pub(in crate::directory) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// Returns the earlier of this one and the time `time` from now.
    pub(in crate::directory) fn within(self, time: Duration) -> Deadline {
        Deadline(self.0.min(Instant::now() + time))
    }

    /// Returns the end of the next of `count` attempts, which have the same time.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(in crate::directory) fn share_of(self, count: u32) -> Deadline {
        self.within(self.left() / count.max(1))
    }

    pub(in crate::directory) fn is_over(self) -> bool {
        self.left().is_zero()
    }

    /// Returns the time left, which is zero after the deadline.
    pub(in crate::directory) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(in crate::directory) fn instant(self) -> Instant {
        self.0
    }
}
