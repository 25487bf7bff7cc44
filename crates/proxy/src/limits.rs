//! All bounds of the proxy, by name, with their unit last.
//!
//! The bounds on clients are not here, but in [`plimsoll_proto::http::Limits`], and those of the parsers are
//! with the parsers. Invariant: everything that an origin or a client can make grow, or wait, has a bound
//! here or there.

use std::time::Duration;

/// How long connecting to each address of an origin may take.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an origin may take from the end of a request to the head of its response. Each interim response
/// restarts it.
pub const FIRST_BYTE_TIME_MAX: Duration = Duration::from_secs(120);
/// How long no byte may arrive from an origin, or be taken by it, in the middle of a body.
pub const BETWEEN_BYTES_TIME_MAX: Duration = Duration::from_secs(60);
/// How long to wait for a response that may have been sent before the origin stopped reading the request.
pub const LATE_RESPONSE_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a request continues after its client has closed its side without a response. A client that still
/// waits for the response looks the same as one that has left.
pub const HALF_CLOSED_TIME: Duration = Duration::from_secs(1);
/// How long a request is in progress before its client is watched for its end: most are answered by then, and
/// watching costs a system call.
pub const WATCH_AFTER_TIME: Duration = Duration::from_millis(100);
/// How long no byte may pass through a tunnel, in either direction.
pub const TUNNEL_IDLE_TIME: Duration = Duration::from_secs(600);
/// Interim responses to one request.
pub const INTERIM_RESPONSES_MAX: u32 = 32;
/// Bytes in memory that may be unsent to one side before more are received from the other.
pub const RELAY_AHEAD_BYTES_MAX: u64 = 128 * 1024;
/// Bytes of a request's body that are copied, so that the request can be repeated.
pub const REPLAY_BYTES_MAX: usize = 16 * 1024;
/// Connections to one origin that may be in use, unless the operator sets another number. A plimsoll origin
/// with a limit of 1,024 open files has 160 slots for channels.
pub const ORIGIN_CONNECTIONS_MAX: usize = 128;
/// Divisor: one client may use this part of them while most are in use, and half otherwise.
pub const CLIENT_CONNECTIONS_PART: usize = 16;
/// Connections that one client may use at least: enough for a few browsers. It is half of all where these
/// are few.
pub const CLIENT_CONNECTIONS_MIN: usize = 16;
/// Requests that wait for a connection to one origin.
pub const ORIGIN_QUEUE_MAX: usize = 1024;
/// How long a request waits for a connection before it is refused.
pub const ORIGIN_WAIT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a request waits before a client is evicted that keeps a connection waiting, and then for each
/// other one.
pub const ORIGIN_RELIEF_TIME: Duration = Duration::from_millis(250);
/// How long a client may take nothing of a response before the rest is spooled, so that it keeps no
/// connection to the origin.
pub const SLOW_CLIENT_TIME: Duration = Duration::from_millis(250);
/// Bytes of files that spools of responses may have in all, unless the operator sets another number.
pub const SPOOL_BYTES_MAX: u64 = 1 << 30;
/// Divisor: one response may have this part of them.
pub const SPOOL_SHARE: u64 = 8;
/// Bytes of a spool in memory. Further ones are in its file.
pub const SPOOL_MEMORY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a spool's file that are sent at a time.
pub const SPOOLED_PART_BYTES_MAX: u64 = 256 << 10;
/// Bytes of a request's body that are received before its connection to an origin is chosen, so that a slow
/// client keeps none waiting.
pub const EARLY_BODY_BYTES_MAX: u64 = 64 << 10;
/// Attempts of one request, each on another connection.
pub const ATTEMPTS_MAX: usize = 3;
/// Idle connections to one origin that a thread keeps.
pub const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long a connection to an origin stays idle before it is closed.
pub const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(50);
/// How long a connection may have been idle for a request that must not be repeated: an origin may close an
/// older one just as the request is sent.
pub const FRESH_CONNECTION_TIME: Duration = Duration::from_secs(1);
/// How often idle connections are checked for their age and their end.
pub const IDLE_CHECK_TIME: Duration = Duration::from_secs(10);
/// Failures in a row to connect to an origin, after which it gets no request while others are healthy.
pub const FAILURES_MAX: u64 = 3;
/// How long such an origin gets no request before the next attempt.
pub const UNHEALTHY_TIME: Duration = Duration::from_secs(5);
/// How often an unhealthy origin is checked.
pub const HEALTH_CHECK_TIME: Duration = Duration::from_secs(2);
/// How often a failed request is a warning in the log, for each origin. The others are at level debug.
pub const FAILURE_REPORT_TIME: Duration = Duration::from_secs(10);
/// Origins of one proxy.
pub const ORIGINS_MAX: usize = 64;
/// Hosts that one proxy forwards to.
pub const FORWARD_HOSTS_MAX: usize = 256;
/// Proxies that a request may have passed, by its Via fields.
pub const VIA_HOPS_MAX: usize = 32;
/// Tasks that a connection performs beside its requests, such as validations of stale responses.
pub const SIDE_TASKS_MAX: usize = 4;
/// Bytes of an unread body that are read and dropped to keep a client's connection.
pub const DISCARD_BYTES_MAX: u64 = 64 * 1024;

/// The timeouts for an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginTimes {
    /// For connecting to each of its addresses.
    pub connect: Duration,
    /// From the end of a request to the head of its response; restarted by each interim response.
    pub first_byte: Duration,
    /// For the next bytes of a body, in either direction.
    pub between_bytes: Duration,
    /// Without a byte in either direction of a tunnel.
    pub tunnel_idle: Duration,
}

impl Default for OriginTimes {
    fn default() -> OriginTimes {
        OriginTimes {
            connect: CONNECT_TIME_MAX,
            first_byte: FIRST_BYTE_TIME_MAX,
            between_bytes: BETWEEN_BYTES_TIME_MAX,
            tunnel_idle: TUNNEL_IDLE_TIME,
        }
    }
}
/// Bytes of a response that another request fetches, which are pushed to a client at a time.
pub const FOLLOWED_BYTES_MAX: u64 = 256 * 1024;
/// Bodies from the cache up to this size in bytes are copied behind their head, and leave in one send.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;
/// Lookups of one request whose fetches failed, before it proceeds alone.
pub const LOOKUPS_MAX: usize = 4;
/// Bytes of a body of known length that are received at a time. It bounds the part of a passed file that
/// is read into the page cache before it is sent.
pub const RELAYED_PART_BYTES_MAX: u64 = 1024 * 1024;
