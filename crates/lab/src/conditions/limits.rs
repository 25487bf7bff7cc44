//! Limits on the work of setting and undoing conditions.
//!
//! They bound the laboratory's waits for the kernel, not a client. Invariant: no wait is endless.

use std::time::Duration;

/// Maximum time until the kernel releases a control group, a mount or a loop device that was just used.
pub(super) const RELEASE_TIME_MAX: Duration = Duration::from_secs(5);
/// Interval between two attempts to get a lock, or to release a resource of the kernel.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for other agents of this machine to undo their changes.
pub(super) const LOCK_TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a journal. One of all conditions has about 2 KiB.
pub(super) const JOURNAL_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum length of the name of a congestion control, with its end (TCP_CA_NAME_MAX of Linux).
pub(super) const ALGORITHM_BYTES_MAX: usize = 16;
/// Maximum number of files in the arguments of one program.
pub(super) const FILE_ARGUMENTS_MAX: usize = 256;
