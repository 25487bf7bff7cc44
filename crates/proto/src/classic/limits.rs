//! How long a client may take, as the operator has it.
//!
//! How long a line may be is the wire's. What must hold: every wait of a connection is under one of these.

use std::time::Duration;

/// An operator's limits on each connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time until a line has come, from when it may be sent.
    pub line_time: Duration,
    /// Time in which a client must take at least one byte of what is sent to it.
    pub send_time: Duration,
    /// Time in which a client must end its side after the server has ended its own.
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

/// The response to a connection of an address that has its share of them, sent before a line is read.
pub const OVER_SHARE: &[u8] = b"error: your address has too many connections open; try again shortly\n";
