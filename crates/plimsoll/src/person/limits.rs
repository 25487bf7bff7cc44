//! Bounds of what a person's commands hold, send and wait for, by name, with their unit last.
//!
//! Waits for a server are the client's. What must hold: whatever a server can make grow has a number here.

use std::time::Duration;

/// Bytes of a JSON answer: a folder of some hundred thousand names.
pub(super) const JSON_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of an answer that says no: its sentence.
pub(super) const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a password.
pub(super) const PASSWORD_BYTES_MAX: u64 = 4 * 1024;
/// Bytes of a file in the state folder.
pub(super) const STATE_BYTES_MAX: u64 = 1024 * 1024;
/// Up to this many bytes, a file is sent at once; larger ones are sent in parts and can be gone on with.
pub(crate) const WHOLE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of the first part of a file: the server has them for good before the rest is sent.
pub(super) const FIRST_PART_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of the last part of a larger file, which comes with the digest of the whole.
pub(super) const LAST_PART_BYTES: u64 = 1024 * 1024;
/// Bytes that are read from a file at a time.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Levels of folders that are walked into.
pub(super) const LEVELS_MAX: usize = 256;
/// How long a server may think: it reads all of a file for its digest, or copies a folder. There is Ctrl-C.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);
/// Tries in a row that get nowhere.
pub(super) const TRIES_MAX: u32 = 8;
/// The wait after the first of them; it doubles from then on.
pub(super) const WAIT_TIME_MIN: Duration = Duration::from_millis(500);
/// The longest wait, also where a server asks for more.
pub(super) const WAIT_TIME_MAX: Duration = Duration::from_secs(15);
/// Times that a download begins anew because the file is another one by now.
pub(super) const RESTARTS_MAX: u32 = 3;
/// Bytes that are received before they are handed to the thread that writes and hashes them.
pub(super) const BATCH_BYTES_MIN: usize = 64 * 1024;
/// Bytes that wait for that thread at most.
pub(super) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a file that are written before they are synced while more come.
pub(super) const SYNCED_EARLY_BYTES: u64 = 128 * 1024 * 1024;
/// How long a command runs before it draws a progress bar.
pub(super) const BARS_AFTER_TIME: Duration = Duration::from_millis(300);
/// Small files that come from the server and wait for their names, to be synced together.
pub(crate) const NAMED_TOGETHER_MAX: usize = 4096;
/// Small files that are sent at the same time, each on a connection of its own: the server waits for its disk
/// for each, and for many at the same time.
pub(crate) const SENDING_CONNECTIONS: usize = 32;
/// Small files that are received at the same time: as many digests as the server computes for one account.
pub(crate) const RECEIVING_CONNECTIONS: usize = 4;
