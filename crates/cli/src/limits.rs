//! Limits of the client commands: memory, sizes and waits, by name, with their unit last.
//!
//! Timeouts of single requests are in the HTTP client. Invariant: each amount that a server can make grow
//! has a limit here.

use std::time::Duration;

/// Bytes of a JSON response: a folder with some hundred thousand names.
pub(crate) const JSON_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Results of a search by name, in memory until all are printed.
pub(crate) const FOUND_ENTRIES_MAX: usize = 200_000;
/// Bytes of a refusal's body.
pub(crate) const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a password.
pub(crate) const PASSWORD_BYTES_MAX: u64 = 4 * 1024;
/// Bytes of a file in the state folder.
pub(crate) const STATE_BYTES_MAX: u64 = 1024 * 1024;
/// The largest file that is sent in one request. Larger ones are sent in parts and are resumable.
pub(crate) const WHOLE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of the first part of a file: the server syncs them before the rest is sent.
pub(crate) const FIRST_PART_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of the last part of a larger file, which is sent with the digest of the whole file.
pub(crate) const LAST_PART_BYTES: u64 = 1024 * 1024;
/// Bytes that are read from a file at a time.
pub(crate) const READ_BYTES: usize = 256 * 1024;
/// Levels of nested folders that a walk descends.
pub(crate) const LEVELS_MAX: usize = 256;
/// How long a response may take: the server hashes a whole file for its digest, or copies a folder. Ctrl-C
/// ends the wait.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);
/// How long `plimsoll health` may take: a supervisor's check every 30 seconds must not overlap the next.
pub(crate) const HEALTH_TIME_MAX: Duration = Duration::from_secs(5);
/// Consecutive attempts without progress.
pub(crate) const TRIES_MAX: u32 = 8;
/// The wait after the first such attempt; it doubles from then on.
pub(crate) const WAIT_TIME_MIN: Duration = Duration::from_millis(500);
/// The longest wait, even if a server asks for more.
pub(crate) const WAIT_TIME_MAX: Duration = Duration::from_secs(15);
/// How often a download starts over because the file has changed.
pub(crate) const RESTARTS_MAX: u32 = 3;
/// Bytes that are received before they are handed to the threads that write and hash them.
pub(crate) const BATCH_BYTES_MIN: usize = 64 * 1024;
/// The most bytes that wait for those threads.
pub(crate) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a file that are written before a sync in the background begins.
pub(crate) const SYNCED_EARLY_BYTES: u64 = 128 * 1024 * 1024;
/// How long a command runs before it draws a progress bar.
pub(crate) const BARS_AFTER_TIME: Duration = Duration::from_millis(300);
/// Received small files that wait for their rename, to be synced together.
pub(crate) const NAMED_TOGETHER_MAX: usize = 4096;
/// Small files that are sent in parallel, each on its own connection. The server waits for its disk for
/// each file, and can do so for many at the same time.
pub(crate) const SENDING_CONNECTIONS: usize = 32;
/// Small files that are received in parallel: as many digests as the server computes for one account.
pub(crate) const RECEIVING_CONNECTIONS: usize = 4;

/// The most bytes of the target's name in the part file's name. The rest of 255 is for the additions.
pub(crate) const PART_NAME_BYTES_MAX: usize = 200;
