//! The time of day for certificates and tickets.
//!
//! It does not read a clock: the holder of an engine sets it. Invariant: under the simulator, TLS sees
//! simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A time of day that is as old as the latest handshake.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Creates a clock that shows 1970 until it is set.
    #[must_use]
    pub fn new() -> Arc<Clock> {
        Arc::default()
    }

    /// Sets the time.
    pub fn set(&self, now: SystemTime) {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}
