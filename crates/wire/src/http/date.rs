//! Dates as HTTP writes them (RFC 9110, section 5.6.7).
//!
//! Not here: a clock. What must hold: every `SystemTime` can be written; whatever is not one of the three
//! forms is no date.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The length of a date as it is written: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

/// The last second of the year 9999: four digits are all that the form has for a year.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Writes a time in the preferred form. A time before 1970 or after 9999 is written as the nearest that can
/// be.
pub fn write_date(time: SystemTime, out: &mut [u8; DATE_BYTES]) {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).min(SECONDS_MAX);
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
    // The form has exactly as many bytes as the array, so this cannot fail.
    let written = write!(&mut out[..], "{date}");
    debug_assert!(written.is_ok());
}

/// Reads a date: "a recipient that parses a timestamp value in an HTTP field MUST accept all three HTTP-date
/// formats".
///
/// A year of two digits is one of 1970 to 2069, rather than relative to a clock that is not here.
#[must_use]
pub fn parse_date(bytes: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.parse::<HttpDate>().ok().map(SystemTime::from)
}

/// A time without its fraction of a second, as it will be after it was written and read again. Compare only
/// these with a date from a peer.
#[must_use]
pub fn to_whole_seconds(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).min(SECONDS_MAX);
    UNIX_EPOCH + Duration::from_secs(seconds)
}
