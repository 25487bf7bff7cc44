//! Limits on sizes and waits: the operator's, and the protocol's own.
//!
//! Limits on ranges, chunk headers and trailers are in `plimsoll_wire::http`. Invariant: every wait of a
//! conversation is under one of these limits.

use std::time::Duration;

use plimsoll_content::limits::SMALL_FILE_BYTES_MAX;
use plimsoll_wire::http::head::HeadLimits;

/// An operator's limits on each connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes and fields of a request's head.
    pub head: HeadLimits,
    /// Bytes of a request's body.
    pub body_bytes_max: u64,
    /// Time from a head's first byte to its last.
    pub head_time: Duration,
    /// Time between two receives of a body.
    pub receive_time: Duration,
    /// Time for the whole body of a request without valid credentials, plus a second for each
    /// [`UNAUTHENTICATED_BYTES_PER_SECOND_MIN`] bytes.
    pub body_time: Duration,
    /// Time in which a client must receive at least one byte of a response.
    pub send_time: Duration,
    /// Time without a request on a keep-alive connection.
    pub idle_time: Duration,
    /// Time in which a client must close its side after the server has closed its own.
    pub linger_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: HeadLimits::default(),
            body_bytes_max: 1 << 40,
            head_time: Duration::from_secs(15),
            receive_time: Duration::from_secs(30),
            body_time: Duration::from_secs(20),
            send_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(75),
            linger_time: Duration::from_secs(5),
        }
    }
}

/// Minimum rate, after [`Limits::body_time`], of a body without valid credentials.
pub const UNAUTHENTICATED_BYTES_PER_SECOND_MIN: u64 = 500;
/// Requests that are answered in a row without a wait, before other connections get their turn.
pub const REQUESTS_PER_TURN_MAX: u32 = 16;
/// Bytes of an unread body that are read and dropped to keep the connection.
pub const DISCARD_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of a body that is copied behind its head, so that both leave in one send.
pub const COPIED_BODY_BYTES_MAX: usize = SMALL_FILE_BYTES_MAX;
/// Bytes of log lines that a thread buffers, for [`LOG_BUFFER_TIME`] at most.
pub const LOG_BYTES: usize = 32 * 1024;
/// How long a thread buffers a log line.
pub const LOG_BUFFER_TIME: Duration = Duration::from_millis(200);
/// Bytes of a request's target in a log line.
pub const LOG_TARGET_BYTES_MAX: usize = 1024;
/// How often a target is decoded to find the path above a link's token: it may be in the query of another.
pub const DECODINGS_MAX: usize = 3;
/// How long work continues for a client that has closed its side. A client that still waits for the response
/// looks the same as one that has left.
pub const HALF_CLOSED_TIME: Duration = Duration::from_secs(1);
/// How long `/readyz` repeats the result of its checks.
pub const READY_CACHE_TIME: Duration = Duration::from_secs(1);
/// How long one check of `/readyz` may take.
pub const READY_CHECK_TIME_MAX: Duration = Duration::from_secs(5);
/// Seconds for which a browser may remember the response to a preflight request.
pub const PREFLIGHT_SECONDS: u64 = 600;
/// Seconds of the Retry-After field if the server is overloaded.
pub const RETRY_AFTER_SECONDS: u64 = 2;
/// The response to a connection above the limit of its address, sent before a request is read. It has no
/// Date, which a response of class 5xx may lack (RFC 9110, section 6.6.1).
pub const OVER_SHARE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n\
    Content-Type: application/problem+json\r\nContent-Length: 100\r\n\r\n\
    {\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"Your address has too many connections open.\"}\n";

/// The detail of that response, also where a trusted proxy has named the client.
pub const OVER_SHARE_DETAIL: &str = "Your address has too many connections open.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_over_share_refusal_has_a_correct_content_length() {
        let text = std::str::from_utf8(OVER_SHARE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(head.contains(&format!("Retry-After: {RETRY_AFTER_SECONDS}\r\n")), "{head}");
        assert!(body.contains(OVER_SHARE_DETAIL), "{body}");
    }
}
