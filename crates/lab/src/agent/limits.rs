//! Limits of the agent.
//!
//! They bound a measurement, not a client.

use std::time::Duration;

/// Maximum time until a process of a contender accepts connections.
pub(super) const START_TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum time for a process to end after SIGTERM.
pub(super) const END_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum length of the quoted output of a process that did not start.
pub(super) const QUOTED_BYTES_MAX: usize = 2000;
/// Maximum length of the output of a command; the rest is left out.
pub(super) const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of samples of a trial; later ones replace the last.
pub(super) const SAMPLES_MAX: usize = 20_000;
/// Maximum share of a core that the sampling may use.
pub(super) const PROBE_SHARE_MAX: f64 = 0.01;
/// Maximum time for an agent to end everything that it started.
pub(super) const AGENT_END_TIME_MAX: Duration = Duration::from_secs(60);
