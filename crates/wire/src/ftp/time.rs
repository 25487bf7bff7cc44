//! Times in the form of MDTM, MFMT and the facts: `YYYYMMDDHHMMSS[.sss]`, always in UTC.
//!
//! Not here: a clock. "time-val = 14DIGIT [ "." 1*DIGIT ]" (RFC 3659, section 2.3). Invariants: a time that
//! does not exist in the calendar is rejected, not normalised; a written time parses as the same second.

use std::time::Duration;

use crate::decimal::decimal;

const SECONDS_A_DAY: u64 = 86_400;

/// The last second of the year 9999, the largest year with four digits.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Days from 1 March of year 0 to 1 January 1970. In a year that begins in March, the leap day is the last
/// day.
const DAYS_TO_1970: u64 = 719_468;
const DAYS_IN_400_YEARS: u64 = 146_097;

/// A calendar time, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) year: u64,
    /// 1 to 12.
    pub(super) month: u64,
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    second: u64,
}

/// Parses a time and returns the time since the start of 1970. A fraction is read to the nanosecond.
/// Returns None before 1970, after 9999, or for a time that does not exist in the calendar.
#[must_use]
pub fn parse_time(text: &[u8]) -> Option<Duration> {
    let (digits, fraction) = text.split_at_checked(14)?;
    let field = |at: usize, len: usize| decimal(digits.get(at..at + len)?);
    let [year, month, day] = [field(0, 4)?, field(4, 2)?, field(6, 2)?];
    let [hour, minute, second] = [field(8, 2)?, field(10, 2)?, field(12, 2)?];
    let nanos = nanos(fraction)?;
    // "00--60 (with 60 being used only at a leap second)": it is the next minute's first.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    if !is_time || year < 1970 || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second;
    let seconds = days_since_1970(year, month, day) * SECONDS_A_DAY + of_day;
    (seconds <= SECONDS_MAX).then(|| Duration::new(seconds, nanos))
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
    let time = calendar(since_1970);
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

/// Converts to a calendar time. A time after 9999 becomes the last second of 9999.
pub(super) fn calendar(since_1970: Duration) -> Calendar {
    let seconds = since_1970.as_secs().min(SECONDS_MAX);
    let (year, month, day) = date(seconds / SECONDS_A_DAY);
    let of_day = seconds % SECONDS_A_DAY;
    Calendar { year, month, day, hour: of_day / 3600, minute: of_day / 60 % 60, second: of_day % 60 }
}

/// Returns the year, month and day at this many days after 1 January 1970.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + DAYS_TO_1970;
    let of_era = days % DAYS_IN_400_YEARS;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, months have 31, 30, 31, 30, 31 days, repeated: 153 in five.
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (days / DAYS_IN_400_YEARS * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let before_year = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let before_month: u64 = (1..month).map(|month| days_in(year, month)).sum();
    before_year + before_month + day - 1
}

fn days_in(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
