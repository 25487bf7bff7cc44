//! Limits of a benchmark run.
//!
//! They bound a measurement, not a client.

use std::time::Duration;

/// Maximum file size with a new connection for each request; above it, the transfer dominates.
pub(super) const NEW_BYTES_MAX: usize = 1_000_000;
/// Maximum file size with new connections in a quick run.
pub(super) const NEW_QUICK_BYTES_MAX: usize = 10_000;
/// Maximum time for strace to attach, and to detach.
pub(super) const STRACE_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time that a generator may take beyond its measured time.
pub(super) const OVERTIME_MAX: Duration = Duration::from_secs(60);
