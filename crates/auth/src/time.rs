//! Times as the tier keeps them: whole milliseconds since 1970, the same for all threads and after a
//! restart.
//!
//! It is no clock: the engine's time of day is. What must hold: what is read back is what was stored.

use std::time::{Duration, SystemTime};

use plimsoll_io::Io;

/// Milliseconds since 1970.
pub(crate) type Millis = u64;

/// The last millisecond of the year 9999: what comes after has no form in a message.
const LAST: Millis = 253_402_300_799_999;

/// The time of day.
pub(crate) fn now(io: &Io) -> Millis {
    since_1970(io.wall())
}

/// `time` in whole milliseconds; before 1970 is 1970.
pub(crate) fn since_1970(time: SystemTime) -> Millis {
    millis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A length of time in whole milliseconds.
pub(crate) fn millis(time: Duration) -> Millis {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The time that `millis` stands for, and [`LAST`] for all that come after it.
pub(crate) fn time(millis: Millis) -> SystemTime {
    let in_range = Duration::from_millis(millis.min(LAST));
    SystemTime::UNIX_EPOCH + in_range
}
