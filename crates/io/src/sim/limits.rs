//! The simulator's limits.
//!
//! They bound a test, not a client.

use std::time::Duration;

/// Offloaded jobs that wait on one host at a time, at most; further jobs are refused.
pub const OFFLOAD_JOBS_MAX: usize = 64;
/// Links that one walk follows, as under Linux.
pub(super) const SYMLINKS_MAX: usize = 40;
/// Connections that wait to be accepted at one address, at most.
pub const BACKLOG_MAX: usize = 128;
/// Virtual time that one [`super::Sim::run`] may take: more means an unintended wait.
pub const RUN_TIME_MAX: Duration = Duration::from_secs(3600);
/// Polls and events that one [`super::Sim::run`] may take: more means an endless loop.
pub const RUN_STEPS_MAX: u64 = 5_000_000;
/// Bytes that one direction of a connection holds between the sender's process and the receiver's, at most.
pub const WINDOW_BYTES_MAX: usize = 64 * 1024;
