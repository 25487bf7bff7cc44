//! All bounds of the laboratory.
//!
//! Not here: limits that a workload sets itself. Invariant: any growth or wait that a server under load can
//! cause is bounded here.

use std::time::Duration;

use plimsoll_wire::http::head::HeadLimits;

/// Maximum number of users of one workload.
pub const USERS_MAX: usize = 100_000;
/// Maximum number of files of one workload; each has its request in memory.
pub const FILES_MAX: u64 = 1_000_000;
/// Maximum size of one upload; its bytes are in memory once, for all users.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of files for which reference bodies are downloaded before the start. Above it, the first
/// verified body of a file is its reference.
pub const REFERENCES_FETCHED_MAX: u64 = 4096;
/// Maximum number of uploads per thread that are downloaded and verified after the end.
pub const UPLOADS_VERIFIED_MAX: usize = 4096;
/// Time between an error and the user's next request. It prevents a flood of connections to a server that
/// is down, and keeps the error counts readable.
pub const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);
/// Maximum wait for responses in progress at the end.
pub const LAST_ANSWERS_TIME_MAX: Duration = Duration::from_secs(2);
/// Maximum duration of a user's clean close.
pub const LEAVE_TIME_MAX: Duration = Duration::from_secs(1);
/// Maximum time for all users to connect, log in and download reference bodies.
pub const READY_TIME_MAX: Duration = Duration::from_secs(300);
/// Interval between progress reports of a thread.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum length of a JSON body: a listing of everything that one life of a mix creates.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of requests of one kind in one life of a mix; a listing of as many has one page.
pub const MIX_TIMES_MAX: u32 = 100;
/// Maximum length of a test file of document 003's client.
pub const TEST_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of tests in such a file.
pub const TESTS_MAX: usize = 1000;
/// Limits on a response's head.
pub const HEAD: HeadLimits = HeadLimits { bytes_max: 32 * 1024, fields_max: 100, target_bytes_max: 0 };
/// Maximum number of interim responses to one request.
pub const INTERIM_ANSWERS_MAX: u32 = 32;
/// Up to this length, a body is received together with its head in one call. Of a longer one, the first
/// call receives only the part that arrives with the head.
pub const ONE_RECEIVE_BYTES_MAX: u64 = 32 * 1024;
/// Maximum latency that a histogram distinguishes, in microseconds; longer ones count as this.
pub const LATENCY_MICROSECONDS_MAX: u64 = 3_600_000_000;
/// From this fraction of a core on, the generator is assumed to limit the figures.
pub const SHARE_OF_A_LIMIT: f64 = 0.95;
/// From this fraction of the measured time on, the report says that users did not start together.
pub const START_SPREAD_SHARE: f64 = 0.01;
