//! Limits that all protocols share.
//!
//! The limits of one protocol are not here, but in its own module.

use std::time::Duration;

/// How long a proxy may take to send its header of the PROXY protocol. The specification asks for at least 3
/// seconds, which cover a retransmission of TCP.
pub const PROXY_HEADER_TIME_MAX: Duration = Duration::from_secs(5);
