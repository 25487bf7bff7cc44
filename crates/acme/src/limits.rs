//! All bounds of ACME, by name, with their unit last.
//!
//! The bounds of HTTP are not here, but in the client. Invariant: everything that a server can make grow, or
//! wait, has a bound.

use std::time::Duration;

/// Bytes of one response: a chain of certificates is the longest.
pub const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// How long a connection to one address of the server may take, with its handshake.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a request may take, from the connection to the end of the response.
pub const RESPONSE_TIME_MAX: Duration = Duration::from_secs(60);
/// Names of one certificate. Let's Encrypt permits as many.
pub const NAMES_MAX: usize = 100;
/// Bytes of a domain name (RFC 1035, section 2.3.4).
pub const NAME_BYTES_MAX: usize = 253;
/// Bytes of a label of a domain name.
pub const LABEL_BYTES_MAX: usize = 63;
/// Bytes of a file in the state folder.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// Tries of a request whose nonce the server refuses. Each is up to three requests of `instant-acme`.
pub const NONCE_TRIES_MAX: u32 = 4;
/// How long an order may take, from its creation to its certificate.
pub const ORDER_TIME_MAX: Duration = Duration::from_secs(600);
/// The first interval between requests for the state of an order, if the server names none.
pub const POLL_TIME_MIN: Duration = Duration::from_secs(1);
/// The longest such interval; it doubles up to this.
pub const POLL_TIME_MAX: Duration = Duration::from_secs(15);

/// The wait after the first failure; it doubles with each failure in a row.
pub const BACKOFF_TIME_MIN: Duration = Duration::from_secs(60);
/// The wait after many failures.
pub const BACKOFF_TIME_MAX: Duration = Duration::from_secs(12 * 3600);
/// The longest time after an order in which its certificate is not renewed. For a short certificate, it is a
/// third of its lifetime.
pub const ORDER_PAUSE_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest wait that a server may request. Let's Encrypt counts some failures for a week.
pub const RETRY_AFTER_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Failed validations within [`VALIDATIONS_TIME`]. Let's Encrypt permits five in an hour.
pub const FAILED_VALIDATIONS_MAX: usize = 4;
/// The time for which failed validations count.
pub const VALIDATIONS_TIME: Duration = Duration::from_secs(3600);

/// The shortest time between two requests for renewal information (RFC 9773, section 4.3.1).
pub const RENEWAL_INFO_TIME_MIN: Duration = Duration::from_secs(60);
/// The longest time between two requests for renewal information.
pub const RENEWAL_INFO_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The time to the next request for renewal information after a failed one.
pub const RENEWAL_INFO_TIME: Duration = Duration::from_secs(6 * 3600);

/// The time between two looks at the state folder, which other fronts may share.
pub const FOLDER_POLL_TIME: Duration = Duration::from_secs(10);
