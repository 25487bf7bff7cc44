//! Limits on the servers that the laboratory starts.
//!
//! They bound a measurement, not a client.

use std::time::Duration;

/// Maximum time until a server accepts connections.
pub(super) const START_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum time for a server to end after SIGTERM.
pub(super) const END_TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum time for one response.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum length of the quoted output of a server that did not start.
pub(super) const QUOTED_BYTES_MAX: usize = 2000;
