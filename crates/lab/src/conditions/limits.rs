//! Limits on the work of setting and undoing conditions.
//!
//! They bound the laboratory's waits for the kernel, not a client. Invariant: no wait is endless.

use std::time::Duration;

/// Maximum time until the kernel releases a control group, a mount or a loop device that was just used.
pub(super) const RELEASE_TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum number of files in the arguments of one program.
pub(super) const FILE_ARGUMENTS_MAX: usize = 256;
