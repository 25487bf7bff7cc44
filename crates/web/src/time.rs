//! Times in JSON: RFC 3339.
//!
//! Formatting is in `proto`. Invariants: a time that no calendar has is rejected, not normalised; a
//! parsed time can be formatted again, and parses to the same time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_proto::http::site::rfc3339;

/// The last second that can be formatted: a year has four digits.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Formats a time for JSON, in UTC: `2026-11-20T13:40:05Z`.
pub fn text(time: SystemTime) -> String {
    rfc3339(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Parses `2026-11-20T13:40:05Z`, with a fraction (which is dropped) and any offset (RFC 3339, section
/// 5.6). Rejects times before 1970 or after 9999, in UTC.
pub fn parse(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, offset_minutes) = split_offset(rest)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    if !is_time || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let local = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let seconds = u64::try_from(local - offset_minutes * 60).ok()?;
    (seconds <= SECONDS_MAX).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Splits a text into the time and the minutes that it is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let [hours, minutes] = numbers(&text[at + 1..], ':', [2, 2])?;
    let ahead = hours * 60 + minutes;
    let sign = if text[at..].starts_with('-') { -1 } else { 1 };
    (hours < 24 && minutes < 60).then_some((&text[..at], sign * ahead))
}

/// Parses numbers of fixed widths.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = if is_number { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(numbers)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let before_year = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let before_month: i64 = (1..month).map(|month| days_in(year, month)).sum();
    before_year + before_month + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for seconds in (0..253_402_300_799).step_by(98_765_431) {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(parse(&text(time)), Some(time), "{}", text(time));
        }
    }

    #[test]
    fn fractions_and_offsets_are_understood() {
        let utc = parse("2026-11-20T13:40:05Z");
        for same in ["2026-11-20t13:40:05.999z", "2026-11-20T14:40:05+01:00", "2026-11-19 23:10:05-14:30"] {
            assert_eq!(parse(same), utc, "{same}");
        }
        assert_eq!(parse("2024-02-29T00:00:00Z"), Some(UNIX_EPOCH + Duration::from_secs(1_709_164_800)));
    }

    #[test]
    fn a_time_that_is_cut_or_changed_anywhere_is_read_or_refused_and_nothing_else() {
        let good = "2026-11-20T13:40:05.25+01:30";
        for at in 0..good.len() {
            assert!(parse(&good[..at]).is_none(), "{}", &good[..at]);
            for odd in ["é", "-", "+", ":", "9", "Z", "."] {
                let _ = parse(&format!("{}{odd}{}", &good[..at], &good[at + 1..]));
            }
        }
        assert!(parse(good).is_some());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "2026-11-20",
            "2026-11-20T13:40Z",
            "2026-11-20T13:40:05",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.xZ",
            "2026-01-01T00:00:00+1:00",
            "tomorrow",
            "2026-01-01T00:00:00+25:00",
            "2026-01-01T00:00:00Zé",
            "2026-01-01T00:00:00é+01:00",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
