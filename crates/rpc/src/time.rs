//! Times as the tier stores them: whole milliseconds since 1970, the same for all threads and after a
//! restart.
//!
//! It is not a clock: the engine provides the time of day. Invariant: a stored time is read back
//! unchanged.

use std::time::{Duration, SystemTime};

use plimsoll_io::Io;
use plimsoll_wire::calendar::{self, LAST_SECOND};

/// Milliseconds since 1970.
pub type Millis = u64;

/// The last millisecond of the year 9999: later times cannot be formatted in a message.
const LAST: Millis = LAST_SECOND * 1000 + 999;

/// Returns the time of day.
pub fn now(io: &Io) -> Millis {
    since_1970(io.wall())
}

/// Converts `time` to whole milliseconds. Times before 1970 become 1970.
pub fn since_1970(time: SystemTime) -> Millis {
    millis(calendar::since_1970(time))
}

/// Converts a duration to whole milliseconds.
pub fn millis(time: Duration) -> Millis {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Converts `millis` to a time, at most the end of the year 9999.
pub fn time(millis: Millis) -> SystemTime {
    let in_range = Duration::from_millis(millis.min(LAST));
    SystemTime::UNIX_EPOCH + in_range
}
