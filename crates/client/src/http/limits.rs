//! Every bound of the HTTP client, by name, with its unit last.
//!
//! Not here: the parsers' own, which stand beside them. What must hold: whatever a server can make grow, or
//! wait, has a number here or there.

use std::time::Duration;

use plimsoll_wire::http::head::HeadLimits;

/// How long a connection may take to be made.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server may think about a request: a commit waits for its disk, a large folder for its removal.
pub const FIRST_BYTE_TIME_MAX: Duration = Duration::from_secs(120);
/// How long nothing may come, or be taken, in the middle of a body.
pub const BETWEEN_BYTES_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a 100 (Continue) is waited for: "a client SHOULD NOT wait for an indefinite period before sending
/// the content" (RFC 9110, section 10.1.1).
pub const CONTINUE_TIME_MAX: Duration = Duration::from_secs(1);
/// How long an answer is waited for that may have been sent before the server broke the connection off.
pub const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(2);
/// From this length on, a streamed body waits for a 100 (Continue).
pub const EXPECT_BYTES_MIN: u64 = 1024 * 1024;
/// Bytes of a streamed body that may wait to be sent before more are asked of its source.
pub const SEND_AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Interim answers to one request, anew after each piece of a streamed body, unless its client takes more.
pub const INTERIM_ANSWERS_MAX: u32 = 32;
/// The head of an answer.
pub const HEAD: HeadLimits = HeadLimits { bytes_max: 32 * 1024, fields_max: 100, target_bytes_max: 0 };

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For a connection to be made, to each address of the server.
    pub connect: Duration,
    /// For the head of the answer, once the request is sent; anew after each interim answer.
    pub first_byte: Duration,
    /// For the next bytes of a body, either way; of one that is sent, anew after each interim answer.
    pub between_bytes: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            connect: CONNECT_TIME_MAX,
            first_byte: FIRST_BYTE_TIME_MAX,
            between_bytes: BETWEEN_BYTES_TIME_MAX,
        }
    }
}
