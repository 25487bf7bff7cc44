//! Times in the form of MDTM, MFMT and the facts: `YYYYMMDDHHMMSS[.sss]`, always in UTC.
//!
//! Not here: a clock. "time-val = 14DIGIT [ "." 1*DIGIT ]" (RFC 3659, section 2.3). Invariants: a time that
//! does not exist in the calendar is rejected, not normalised; a written time parses as the same second.

use std::time::Duration;

use crate::calendar::{CalendarTime, LAST_SECOND};
use crate::decimal::decimal;

/// Parses a time and returns the time since the start of 1970. A fraction is read to the nanosecond.
/// A time before 1970 counts as its start. Returns None after 9999, or for a time that does not exist in the
/// calendar.
#[must_use]
pub fn parse_time(text: &[u8]) -> Option<Duration> {
    let (digits, fraction) = text.split_at_checked(14)?;
    let field = |at: usize, len: usize| decimal(digits.get(at..at + len)?);
    let [year, month, day] = [field(0, 4)?, field(4, 2)?, field(6, 2)?];
    let [hour, minute, second] = [field(8, 2)?, field(10, 2)?, field(12, 2)?];
    let nanos = nanos(fraction)?;
    // "00--60 (with 60 being used only at a leap second)": it is the next minute's first.
    let leap_second = u64::from(second == 60);
    let is_before_1970 = year < 1970;
    // The calendar repeats every 400 years, so that the date is checked all the same.
    let year = if is_before_1970 { year + 2_000 } else { year };
    let time = CalendarTime { year, month, day, hour, minute, second: second - leap_second };
    let seconds = time.seconds_since_1970()? + leap_second;
    if is_before_1970 {
        return Some(Duration::ZERO);
    }
    (seconds <= LAST_SECOND).then(|| Duration::new(seconds, nanos))
}

/// Parses an optional fraction: a point and digits. Digits beyond nanoseconds are dropped.
fn nanos(fraction: &[u8]) -> Option<u32> {
    let Some((b'.', digits)) = fraction.split_first() else {
        return fraction.is_empty().then_some(0);
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let nine = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some(nine.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

/// Appends a time's 14 digits, without its fraction. A time after 9999 is written as the last second of
/// 9999.
pub fn push_time(out: &mut Vec<u8>, since_1970: Duration) {
    let time = CalendarTime::at(since_1970);
    push_digits(out, time.year, 4);
    for field in [time.month, time.day, time.hour, time.minute, time.second] {
        push_digits(out, field, 2);
    }
}

/// Appends a number, padded with zeros to this many digits.
pub(super) fn push_digits(out: &mut Vec<u8>, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10u64.pow(place) % 10;
        out.push(b'0' + u8::try_from(digit).unwrap_or_default());
    }
}
