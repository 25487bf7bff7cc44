//! Dates in the form of HTTP (RFC 9110, section 5.6.7).
//!
//! Not here: a clock. Invariants: every `SystemTime` can be written; a text in none of the three forms is
//! rejected.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

use crate::calendar::{LAST_SECOND, since_1970};
use crate::limits::MODIFICATION_MIN;

/// Length of a written date in bytes: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

/// Writes a time in the preferred form. A time before 1970 or after 9999 is clamped to this range.
pub fn write_date(time: SystemTime, out: &mut [u8; DATE_BYTES]) {
    let seconds = since_1970(time).as_secs().min(LAST_SECOND);
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
    // The form has exactly as many bytes as the array, so this cannot fail.
    let written = write!(&mut out[..], "{date}");
    debug_assert!(written.is_ok());
}

/// Parses a date: "a recipient that parses a timestamp value in an HTTP field MUST accept all three
/// HTTP-date formats".
///
/// A year of two digits is one of 1970 to 2069, and not relative to the current year, because this crate
/// has no clock.
#[must_use]
pub fn parse_date(bytes: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.parse::<HttpDate>().ok().map(SystemTime::from)
}

/// Returns the date of a modification, if it distinguishes versions at the time `now`. A later one is wrong:
/// "An origin server with a clock MUST NOT generate a Last-Modified date that is later than the server's
/// time of message origination" (RFC 9110, section 8.8.2.1). Images and reproducible builds give all files
/// one date of 1970 or 1980.
#[must_use]
pub fn usable_modification(modified: SystemTime, now: SystemTime) -> Option<SystemTime> {
    let date = to_whole_seconds(modified);
    (since_1970(date) >= MODIFICATION_MIN && date <= now).then_some(date)
}

/// Drops the fraction of a second, as a written date does. Only such a time may be compared with a date
/// from a peer.
#[must_use]
pub fn to_whole_seconds(time: SystemTime) -> SystemTime {
    let seconds = since_1970(time).as_secs().min(LAST_SECOND);
    UNIX_EPOCH + Duration::from_secs(seconds)
}
