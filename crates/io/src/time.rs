//! A point on an engine's clock: nanoseconds since the engine started.
//!
//! It is not the time of day ([`crate::Io::wall`] is), and it is not comparable between kinds of
//! engines; all threads of one engine count from the same point. Invariant: it never goes back.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, in nanoseconds since the engine's start. The simulator's is virtual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// A time that no clock reaches, for a deadline that is off.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// Returns the point that is `since_start` after the engine's start; saturates after 584 years.
    pub fn from_start(since_start: Duration) -> Instant {
        Instant(u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the time since the engine's start.
    pub fn since_start(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, later: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Returns the time from `earlier` to `self`, zero if `earlier` is later.
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
