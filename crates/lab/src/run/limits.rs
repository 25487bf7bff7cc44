//! Limits of a run.
//!
//! They bound a measurement, not a client.

use std::time::Duration;

/// Maximum time of a command of a contender, in seconds.
pub(super) const COMMAND_SECONDS_MAX: f64 = 120.0;
/// Maximum time of a trial beyond its planned time, in seconds: connections, references, last responses.
pub(super) const OVERTIME_SECONDS_MAX: f64 = 330.0;
/// Maximum time of a trial that ends by a number of requests, in seconds.
pub(super) const COUNTED_TRIAL_SECONDS_MAX: f64 = 3600.0;
/// Maximum length of a profiler's file. It is copied as text, which may have 64 MiB.
pub(super) const PROFILE_BYTES_MAX: u64 = 40 * 1024 * 1024;
/// Maximum length of the quoted output of a load tool that failed, in characters.
pub(super) const QUOTED_CHARACTERS_MAX: usize = 300;

/// How often a load tool is started in a trial, until it prints its figures. A server such as iperf3's has
/// one client at a time, and may still have the connection with which the laboratory found it ready.
pub(super) const TOOL_ATTEMPTS: u32 = 3;
/// The pause between two such attempts.
pub(super) const TOOL_RETRY_TIME: Duration = Duration::from_millis(500);
