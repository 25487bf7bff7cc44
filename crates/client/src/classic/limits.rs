//! Every bound of the client of classic, by name, with its unit last.
//!
//! Not here: the length of lines, which stands beside their parser. What must hold: whatever a server can
//! make wait has a number here.

use std::time::Duration;

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For a connection to be made.
    pub connect: Duration,
    /// For each answer: a password's digest is meant to be slow.
    pub answer: Duration,
    /// For the next bytes of a file.
    pub between_bytes: Duration,
}

impl Default for Times {
    fn default() -> Times {
        let seconds = Duration::from_secs;
        Times { connect: seconds(10), answer: seconds(120), between_bytes: seconds(60) }
    }
}
