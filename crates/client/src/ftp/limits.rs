//! Every bound of the FTP client, by name, with its unit last.
//!
//! Not here: the length of answers and their lines, which stand beside their parser. What must hold: whatever
//! a server can make grow, or wait, has a number here or there.

use std::time::Duration;

/// How long a connection may take to be made.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server may think about a command: a commit waits for its disk, PASS for a digest that is meant
/// to be slow.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// How long nothing may come, or be taken, in the middle of a file.
pub const BETWEEN_BYTES_TIME_MAX: Duration = Duration::from_secs(60);
/// How long an answer is waited for that says why a data connection broke.
pub const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of a file that may wait to be sent before more are asked of its source.
pub const SEND_AHEAD_BYTES_MAX: u64 = 256 * 1024;

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For a connection to be made: the session's, and that of each transfer.
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
