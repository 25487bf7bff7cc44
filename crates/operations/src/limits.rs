//! Limits of operations. A name ends with its unit.
//!
//! Invariants: every quantity that a single request can enlarge has a limit here.

use std::time::Duration;

/// Bytes of a path in a line of the transfer log.
pub(crate) const LOG_PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a login name in a line of the transfer log.
pub(crate) const LOG_NAME_BYTES_MAX: usize = 64;
/// The interval at which a transfer's right is checked. Twice this time must be under a second: a check
/// starts a poll for changes by other processes, and the check after it applies them.
pub const RIGHT_CHECK_TIME: Duration = Duration::from_millis(250);
/// How long a transfer continues while its right cannot be verified, because the directory or the
/// authentication server does not answer. A restart of either takes less.
pub const RIGHT_UNVERIFIED_TIME: Duration = Duration::from_secs(10);
/// Uploads in progress by one public link, in each process. Visitors share it: they are strangers.
pub const UPLOADS_PER_LINK_MAX: usize = 16;
/// Failed operations that operators can look at.
pub const RECENT_FAILURES_MAX: usize = 64;
/// Bytes of the record of a failed operation.
pub const RECENT_FAILURE_BYTES_MAX: usize = 248;
/// How often a commit is retried because the account's or the share's rights changed right before the rename.
pub const COMMIT_CHECKS_MAX: usize = 8;
