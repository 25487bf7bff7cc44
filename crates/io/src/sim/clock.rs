//! The virtual clock: it stands still while any task or event is ready.
//!
//! It is not the machine's clock and never reads it. Invariant: it never goes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::time::Instant;

/// The time of day at which every simulation starts, 2026-01-01T00:00:00Z, as time since 1970.
pub const START: Duration = Duration::from_secs(1_767_225_600);

/// Shared by everything in one simulation; atomic only because a disk must be `Sync`.
#[derive(Default)]
pub(super) struct Clock {
    nanos: AtomicU64,
}

impl Clock {
    pub(super) fn now(&self) -> Instant {
        Instant::from_start(Duration::from_nanos(self.nanos.load(Ordering::Relaxed)))
    }

    pub(super) fn move_to(&self, at: Instant) {
        let nanos = u64::try_from(at.since_start().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Advances to a time since 1970.
    pub(super) fn move_to_1970(&self, time: Duration) {
        self.move_to(Instant::from_start(time.saturating_sub(START)));
    }

    pub(super) fn since_1970(&self) -> Duration {
        START + self.now().since_start()
    }

    pub(super) fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.since_1970()
    }
}
