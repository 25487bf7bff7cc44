//! Bounds of what operations do, by name, with their unit last.
//!
//! What must hold: whatever one request makes long has a number here.

/// Bytes of a path that a line of the transfer log shows.
pub(crate) const LOG_PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a name that somebody tried to log in with, as the transfer log shows it.
pub(crate) const LOG_NAME_BYTES_MAX: usize = 64;
/// Digests of whole files that one account may have under way; more are refused.
pub const DIGESTS_PER_ACCOUNT_MAX: usize = 4;
/// Digests of whole files that may be under way in all; more are refused.
pub const DIGESTS_MAX: usize = 64;
