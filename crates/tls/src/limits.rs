//! All bounds of TLS, by name, with their unit last.
//!
//! rustls bounds records and handshake messages itself. Invariant: everything that a peer can make grow, or
//! wait, has a bound here or there.

use std::time::Duration;

/// How long a handshake may take.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes that a peer may send before its handshake is complete: a client's certificates are a few KiB.
pub const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
/// How long the peer may take to read the alert that says why a handshake failed.
pub const ALERT_TIME_MAX: Duration = Duration::from_secs(1);
/// Bytes of plaintext in one record at most (RFC 8446, section 5.1).
pub(crate) const RECORD_BYTES_MAX: usize = 16 * 1024;
/// Bytes that a record adds to its plaintext: 5 of header, and up to 24 of nonce, type and tag.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 29;
/// Certificates in one chain.
pub const CHAIN_CERTIFICATES_MAX: usize = 16;
/// Certificates that a server chooses among by the name that a client requests.
pub const CERTIFICATES_MAX: usize = 1024;
/// How long tickets have one key. A client may resume a session for as long, and up to twice as long.
pub const TICKET_PERIOD: Duration = Duration::from_secs(6 * 60 * 60);
/// Bytes of a ticket. It has the certificates of a client, if the server requests any.
pub const TICKET_BYTES_MAX: usize = 32 * 1024;
/// Handshakes that one network has at a time: its clients may be many behind one address, and an honest one
/// takes two round trips.
pub const HANDSHAKES_PER_NETWORK: u32 = 64;
/// The weight of the signatures that one event loop computes in a turn: four with ECDSA, or one with RSA.
/// A handshake takes about 0.1 ms with P-256. A signature alone takes 0.6 ms with RSA of 2048 bits, and 4 ms
/// with 4096.
pub(crate) const SIGNING_WEIGHT_MAX: u32 = 4;
/// The weight of a signature with ECDSA or Ed25519.
pub(crate) const SIGNING_WEIGHT_MIN: u32 = 1;
/// Turns that a handshake waits for others before it pauses.
pub(crate) const TURNS_WAITED_MAX: u32 = 256;
/// How long it pauses.
pub(crate) const TURN_PAUSE_TIME: Duration = Duration::from_millis(1);
/// Bytes of a session's id in its tickets.
pub(crate) const TICKET_ID_BYTES: usize = 16;
/// Tickets of TLS 1.3 for the first connection of a session with several: some clients use each once, and
/// rustls keeps so many.
pub const SESSION_TICKETS: usize = 8;
/// Tickets of TLS 1.3 for each further connection on which the client receives.
pub const DOWNLOAD_TICKETS: usize = 2;
/// Unused tickets of TLS 1.3 that every client keeps. curl with OpenSSL keeps the latest, and uses it once.
pub const TICKETS_KEPT_MIN: u32 = 1;
