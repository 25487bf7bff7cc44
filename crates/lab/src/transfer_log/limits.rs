//! Limits on a transfer log that is read.
//!
//! They bound memory, not the length of a log. Invariant: memory depends on the number of repetitions in the
//! log, not on the number of its lines.

/// Maximum length of a line. Two paths of 4 KiB, of which each byte is an escape of six, are the most that
/// plimsoll writes.
pub const LOG_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Maximum number of repetitions, over all sizes, types and numbers of connections.
pub const LOG_REPETITIONS_MAX: usize = 100_000;
/// Maximum number of repetitions that are listed by their numbers.
pub const REPETITIONS_LISTED_MAX: usize = 10;
/// The number of repetitions that document 001 discards at the beginning.
pub const DISCARDED: u32 = 5;
