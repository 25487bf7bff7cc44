//! All bounds of the classic client, by name, with their unit last.
//!
//! The bound on lines is not here, but with their parser. Invariant: every wait for a server has a bound
//! here.

use std::time::Duration;

/// The client's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For connecting.
    pub connect: Duration,
    /// For each answer: a password hash is slow by design.
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
