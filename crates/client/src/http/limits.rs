//! All bounds of the HTTP client, by name, with their unit last.
//!
//! The parsers' bounds are not here, but with the parsers. Invariant: everything that a server can make
//! grow, or wait, has a bound here or there.

use std::time::Duration;

use plimsoll_wire::http::head::HeadLimits;

/// How long connecting may take.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to answer: a commit waits for its disk, a large folder for its removal.
pub const FIRST_BYTE_TIME_MAX: Duration = Duration::from_secs(120);
/// How long no byte may arrive, or be taken, in the middle of a body.
pub const BETWEEN_BYTES_TIME_MAX: Duration = Duration::from_secs(60);
/// How long to wait for a 100 (Continue): "a client SHOULD NOT wait for an indefinite period before sending
/// the content" (RFC 9110, section 10.1.1).
pub const CONTINUE_TIME_MAX: Duration = Duration::from_secs(1);
/// How long to wait for an answer that may have been sent before the server aborted the connection.
pub const LATE_ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// The length in bytes from which a streamed body waits for a 100 (Continue).
pub const EXPECT_BYTES_MIN: u64 = 1024 * 1024;
/// Bytes of a streamed body that may wait to be sent before more are requested from its source.
pub const SEND_AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of a body in memory that are pushed at a time where the transport copies them.
pub const COPIED_PART_BYTES_MAX: usize = 64 * 1024;
/// Interim answers to one request. The count restarts after each piece of a streamed body. A client may set
/// another bound.
pub const INTERIM_ANSWERS_MAX: u32 = 32;
/// How often an idle connection over TLS is polled for what is left of its session's tickets.
pub const TICKET_POLLS_MAX: u32 = 16;
/// Bounds on the head of an answer.
pub const HEAD: HeadLimits = HeadLimits { bytes_max: 32 * 1024, fields_max: 100, target_bytes_max: 0 };

/// The client's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For connecting to each address of the server.
    pub connect: Duration,
    /// For the head of the answer, after the request is sent; restarted by each interim answer.
    pub first_byte: Duration,
    /// For the next bytes of a body, in either direction. When sending, each interim answer restarts it.
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
