//! All bounds of the FTP client, by name, with their unit last.
//!
//! The bounds on answers and their lines are not here, but with their parser. Invariant: everything that a
//! server can make grow, or wait, has a bound here or there.

use std::time::Duration;

/// How long connecting may take.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to answer a command: a commit waits for its disk, PASS for a password hash
/// that is slow by design.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// How long no byte may arrive, or be taken, in the middle of a file.
pub const BETWEEN_BYTES_TIME_MAX: Duration = Duration::from_secs(60);
/// How long to wait for an answer that explains why a data connection broke.
pub const LATE_REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of a file that may wait to be sent before more are requested from its source.
pub const SEND_AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Handshakes that a session records until its caller takes them.
pub const HANDSHAKES_NOTED_MAX: usize = 64;

/// The client's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For connecting: the control connection, and each data connection.
    pub connect: Duration,
    /// For each answer, to its last byte.
    pub answer: Duration,
    /// For the next bytes of a file or a listing, either way.
    pub between_bytes: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times { connect: CONNECT_TIME_MAX, answer: ANSWER_TIME_MAX, between_bytes: BETWEEN_BYTES_TIME_MAX }
    }
}
