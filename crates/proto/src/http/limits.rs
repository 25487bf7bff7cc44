//! What a peer may send, and how long it may take: an operator's limits, and the protocol's own.
//!
//! Sizes of ranges, chunk heads and trailers are the wire's (`plimsoll_wire::http`). What must hold: every
//! wait of a conversation is under one of these.

use std::time::Duration;

use plimsoll_wire::http::head::HeadLimits;

/// An operator's limits on each connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of a request's head, and the count of its fields.
    pub head: HeadLimits,
    /// Length of a request's body, in bytes.
    pub body_bytes_max: u64,
    /// Time from a head's first byte to its last.
    pub head_time: Duration,
    /// Time between two receives of a body.
    pub receive_time: Duration,
    /// Time for the whole body of a request without valid credentials, beside a second for each
    /// [`UNAUTHENTICATED_BYTES_PER_SECOND_MIN`] bytes of it.
    pub body_time: Duration,
    /// Time in which a peer must take at least one byte of what is sent to it.
    pub send_time: Duration,
    /// Time without a request on a kept connection.
    pub idle_time: Duration,
    /// Time in which a peer must end its side after we have ended ours.
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

/// Bytes per second, after [`Limits::body_time`], that a client without valid credentials sends at least.
pub const UNAUTHENTICATED_BYTES_PER_SECOND_MIN: u64 = 500;
/// Requests that are answered in a row without a wait, before other connections have their turn.
pub const REQUESTS_PER_TURN_MAX: u32 = 16;
/// Bytes of a body that nobody asked for which are read and dropped to keep the connection.
pub const DISCARD_BYTES_MAX: u64 = 64 * 1024;
/// Bodies up to this size are copied behind their head, so that both go in one send.
pub const COPIED_BODY_BYTES_MAX: usize = 4 * 1024;
/// Files up to this size are kept as bytes when they are hot, larger ones as descriptors.
pub const HOT_BODY_BYTES_MAX: usize = 32 * 1024;
/// Bytes that an entry of the hot set takes beside its name and the file's bytes: its own, those of what is
/// said of the file, of the table that it is in, and what the allocator adds to six allocations.
pub const HOT_ENTRY_BYTES: u64 = 1024;
/// Bytes that are expected of an entry, to lay out the table.
pub const HOT_ENTRY_BYTES_USUAL: u64 = 8 * 1024;
/// Files of the hot set that wait to be closed by a thread that may wait for a disk.
pub const HOT_CLOSING_FILES_MAX: usize = 64;
/// How long a file that nobody asks for stays in the hot set, at least; twice that, at most. A file that was
/// removed gives its space back when it is closed.
pub const HOT_IDLE_TIME: Duration = Duration::from_secs(10);
/// How often the open files of the hot set are checked: one that was removed or replaced is closed, so that
/// its blocks are free within this time. A check is one fstat(2) for each.
pub const HOT_CHECK_TIME: Duration = Duration::from_secs(1);
/// Files that are looked at to be read before anybody asks.
pub const PREFETCH_FILES_MAX: usize = 1_000_000;
/// Folders within folders that are looked into for them.
pub const PREFETCH_LEVELS_MAX: usize = 128;
/// Bytes of bodies that were made for answers (listings) and are still in memory, of a whole server. More are
/// not begun: who asks for listings and never reads them would fill the memory.
pub const MADE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of such a body that is sent whatever others take: the number of connections bounds these.
pub const MADE_SMALL_BYTES: u64 = 32 * 1024;
/// Log lines of a thread wait for this many bytes, or for [`LOG_TIME`].
pub const LOG_BYTES: usize = 32 * 1024;
/// How long a log line may wait in its thread.
pub const LOG_TIME: Duration = Duration::from_millis(200);
/// Bytes of a request's target that a log line shows.
pub const LOG_TARGET_BYTES_MAX: usize = 1024;
/// Entries that a folder's listing has at most.
pub const LISTING_ENTRIES_MAX: usize = 100_000;
/// Entries of a page of a listing, where its `limit` is not given.
pub const LISTING_PAGE_ENTRIES: usize = 1_000;
/// Entries of a page of a listing, at most.
pub const LISTING_PAGE_ENTRIES_MAX: usize = 10_000;
/// How long work for a client that has ended its side goes on. A client that only sends no more, and still
/// waits for the response, looks the same as one that is gone.
pub const HALF_CLOSED_TIME: Duration = Duration::from_secs(1);
/// How long `/readyz` repeats what its checks said.
pub const READY_TIME: Duration = Duration::from_secs(1);
/// How long one of its checks may take.
pub const READY_CHECK_TIME_MAX: Duration = Duration::from_secs(5);
/// Seconds that a client is asked to wait when too much is going on.
pub const RETRY_AFTER_SECONDS: u64 = 2;
/// The response to a connection of an address that has its share of them, sent before a request is read. It
/// has no Date, which a response of class 5xx may lack (RFC 9110, section 6.6.1).
pub const OVER_SHARE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n\
    Content-Type: application/problem+json\r\nContent-Length: 100\r\n\r\n\
    {\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"Your address has too many connections open.\"}\n";
/// Bytes of a site's own page for what is not there.
pub const NOT_FOUND_PAGE_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_of_an_address_over_its_share_tells_its_own_length() {
        let text = std::str::from_utf8(OVER_SHARE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(head.contains(&format!("Retry-After: {RETRY_AFTER_SECONDS}\r\n")), "{head}");
    }
}
