//! Every bound of the laboratory, by name, with its unit last.
//!
//! Not here: what a workload says itself. What must hold: whatever a server under load can make grow, or
//! wait, has a number here.

use std::time::Duration;

use plimsoll_wire::http::head::HeadLimits;

/// Users of one workload.
pub const USERS_MAX: usize = 100_000;
/// Files of one workload; each has its request in memory.
pub const FILES_MAX: u64 = 1_000_000;
/// Bytes of one upload; they are in memory once, for all users.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 30;
/// Files whose bodies are fetched before the start, to compare later ones with. Of more, the first body
/// that is verified is what later ones are compared with.
pub const REFERENCES_FETCHED_MAX: u64 = 4096;
/// Uploads of each thread that are fetched and verified after the end.
pub const UPLOADS_VERIFIED_MAX: usize = 4096;
/// How long a user waits before it tries again after an error: a server that is gone is not flooded with
/// connections, and the figures of errors stay readable.
pub const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);
/// How long answers that were begun are waited for when the time is over.
pub const LAST_ANSWERS_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a user says goodbye.
pub const LEAVE_TIME_MAX: Duration = Duration::from_secs(1);
/// How long users have to connect, log in and fetch what they compare with.
pub const READY_TIME_MAX: Duration = Duration::from_secs(300);
/// How often the counts of a thread are shown to who watches.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);
/// JSON that an answer may have: listings of what one life of a mix has made.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;
/// Requests of one kind in one life of a mix; a listing of as many has one page.
pub const MIX_TIMES_MAX: u32 = 100;
/// The head of an answer.
pub const HEAD: HeadLimits = HeadLimits { bytes_max: 32 * 1024, fields_max: 100, target_bytes_max: 0 };
/// Interim answers to one request.
pub const INTERIM_ANSWERS_MAX: u32 = 32;
/// Up to this length, a body is received with its head in one call; of a longer one, only what comes with
/// the head is.
pub const ONE_RECEIVE_BYTES_MAX: u64 = 32 * 1024;
/// The longest latency that a histogram tells apart, in microseconds; longer ones count as this.
pub const LATENCY_MICROSECONDS_MAX: u64 = 3_600_000_000;
/// From this share of a core on, the generator may be what limits the figures.
pub const SHARE_OF_A_LIMIT: f64 = 0.95;
