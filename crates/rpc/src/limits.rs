//! Every bound of the layer, by name, with its unit last.
//!
//! A tier's own bounds, such as the deadline of each method, are not here but in its crate. Invariant:
//! everything that a client or server can make grow, or wait, has a bound here or there.

use std::time::Duration;

use crate::failures::Budget;

/// Sets of a bounded table. Each set has one lock.
pub const TABLE_SETS: usize = 4096;
/// Entries of one set. One more evicts the one with the lowest priority.
pub const TABLE_WAYS: usize = 8;
/// Wrong secrets that one network may present.
pub const WRONG_SECRETS_PER_NETWORK: Budget = Budget { count: 10, forgiven_after: Duration::from_secs(10) };
/// Wrong secrets from all networks together. Beyond this, unknown networks are delayed.
pub const WRONG_SECRETS: Budget = Budget { count: 1000, forgiven_after: Duration::from_secs(1) };
/// How long a network stays known after it has presented the secret.
pub const SECRET_KNOWN_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a request is delayed before its secret is checked.
pub const SECRET_DELAY: Duration = Duration::from_secs(1);
/// Requests that are delayed at a time; one more is refused.
pub const SECRETS_DELAYED_MAX: usize = 64;
/// Bytes of a request.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are allocated for a request before it is serialised, so that one with a password does not
/// outgrow its memory, of which the allocator would keep a copy.
pub const REQUEST_BYTES_USUAL: usize = 4 * 1024;
/// Interval of a server's interim responses while it works on a request.
pub const INTERIM_RESPONSE_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes of a response that a thread parses while its other connections wait: a fraction of a
/// millisecond. Longer ones are parsed by the threads for listings.
pub const PARSED_INLINE_BYTES_MAX: usize = 64 * 1024;
/// How long an idle connection is kept: less than a server waits for another request on it.
pub const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(20);
/// Changes that a feed stores for its subscribers. A subscriber that has missed more invalidates its
/// whole cache.
pub const FEED_CHANGES_MAX: usize = 4096;
/// Subscribers of one feed.
pub const SUBSCRIBERS_MAX: usize = 256;
/// Bytes of the name that a subscriber gives itself.
pub const SUBSCRIBER_NAME_BYTES_MAX: usize = 64;
/// How long a server waits for a subscriber to acknowledge a change. After this time, a disconnected
/// subscriber no longer trusts its cache.
pub const ACKNOWLEDGE_TIME: Duration = Duration::from_secs(2);
/// How long a subscriber trusts its cache after it sent the last answered request for changes. Shorter than
/// [`ACKNOWLEDGE_TIME`] by more than the clocks of two threads can differ.
pub const WATCH_TRUST_TIME: Duration = Duration::from_millis(1500);
/// How long a server holds a request for changes before it answers that there are none. The subscriber
/// repeats the request at once, so this is also the interval of its heartbeat.
pub const WATCH_TIME: Duration = Duration::from_millis(500);
/// How long a subscriber waits for the response. Longer than [`WATCH_TIME`].
pub const WATCH_RESPONSE_TIME: Duration = Duration::from_secs(2);
/// How long a subscriber waits before it requests changes again after an error.
pub const WATCH_RETRY_TIME: Duration = Duration::from_millis(100);
