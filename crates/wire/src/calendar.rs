//! Calendar dates in UTC, and their text form of RFC 3339.
//!
//! Not here: a clock, local time, and the text forms of HTTP and FTP. Invariants: every time has a text. A
//! date that does not exist in the calendar is rejected, not normalised.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::decimal::decimal;

/// The last second of the year 9999, since 1970: the text forms of this crate have four digits for a year.
pub const LAST_SECOND: u64 = 253_402_300_799;

const SECONDS_A_DAY: u64 = 86_400;
/// Days from 1 March of year 0 to 1 January 1970.
const DAYS_TO_1970: u64 = 719_468;
const DAYS_IN_400_YEARS: u64 = 146_097;

/// A time of the calendar, in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// 1970 to 9999.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59.
    pub second: u64,
}

impl CalendarTime {
    /// Converts a time since 1970. A time after 9999 becomes [`LAST_SECOND`].
    #[must_use]
    pub fn at(since_1970: Duration) -> CalendarTime {
        let seconds = since_1970.as_secs().min(LAST_SECOND);
        let (year, month, day) = date(seconds / SECONDS_A_DAY);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        CalendarTime { year, month, day, hour, minute, second }
    }

    /// Returns the seconds since 1970; `None` before 1970, after 9999, or for a time that does not exist.
    #[must_use]
    pub fn seconds_since_1970(self) -> Option<u64> {
        let CalendarTime { year, month, day, hour, minute, second } = self;
        let is_date = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day);
        if !is_date || hour >= 24 || minute >= 60 || second >= 60 {
            return None;
        }
        Some(days_since_1970(year, month, day) * SECONDS_A_DAY + hour * 3600 + minute * 60 + second)
    }
}

/// Returns the time since 1970; zero before.
#[must_use]
pub fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Formats a time since 1970 in whole seconds: `2026-11-20T13:40:05Z`. A time after 9999 is written as
/// [`LAST_SECOND`].
#[must_use]
pub fn format_rfc3339(since_1970: Duration) -> String {
    let CalendarTime { year, month, day, hour, minute, second } = CalendarTime::at(since_1970);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Parses `2026-11-20T13:40:05Z`, with a fraction (which is dropped) and any offset (RFC 3339, section
/// 5.6). Rejects times before 1970 or after 9999, in UTC.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let (clock, ahead_minutes) = split_offset(rest)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let local = CalendarTime { year, month, day, hour, minute, second }.seconds_since_1970()?;
    let seconds = local.checked_add_signed(-60 * ahead_minutes)?;
    (seconds <= LAST_SECOND).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Splits a text into the time and the minutes that it is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let sign = text.rfind(['+', '-'])?;
    let [hours, minutes] = numbers(&text[sign + 1..], ':', [2, 2])?;
    let offset = i64::try_from(hours * 60 + minutes).ok().filter(|_| hours < 24 && minutes < 60)?;
    Some((&text[..sign], if text[sign..].starts_with('-') { -offset } else { offset }))
}

/// Parses numbers of fixed widths.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        *number = decimal(parts.next().filter(|part| part.len() == width)?.as_bytes())?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns the year, month and day at this many days after 1 January 1970.
///
/// A year is taken to begin in March, so that a leap day is its last; 400 such years always have the same
/// number of days. (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".)
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
