//! Timeouts of a connection, set by the operator.
//!
//! The length of a line is limited in `plimsoll_wire`. Invariant: every wait of a connection is under one
//! of these.

use std::time::Duration;

/// An operator's limits on each connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time from when a line may be sent until it is complete.
    pub line_time: Duration,
    /// Time in which a client must take at least one byte of what is sent to it.
    pub send_time: Duration,
    /// Time in which a client must close its side after the server has closed its own.
    pub linger_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line_time: Duration::from_secs(15),
            send_time: Duration::from_secs(30),
            linger_time: Duration::from_secs(5),
        }
    }
}

/// The response to a connection above the limit of its address, sent before a line is read.
pub const OVER_SHARE: &[u8] = b"error: your address has too many connections open; try again shortly\n";
