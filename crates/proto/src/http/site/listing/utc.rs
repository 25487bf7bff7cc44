//! Times as RFC 3339 writes them, in UTC.
//!
//! Not here: a clock, local time, and the form of HTTP's own fields. What must hold: every duration can be
//! written.

use std::time::Duration;

/// The last second of the year 9999: four digits are all that the form has for a year.
const SECONDS_MAX: u64 = 253_402_300_799;
const SECONDS_A_DAY: u64 = 86_400;

/// Writes a time since 1970 in whole seconds: `2026-11-20T13:40:05Z`. What is after 9999 is written as its
/// end.
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs().min(SECONDS_MAX);
    let (year, month, day) = civil(seconds / SECONDS_A_DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The year, month and day of so many days since 1970.
///
/// A year is taken to begin in March, so that a leap day is its last; 400 such years, an era, always have the
/// same number of days. (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".)
fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_AN_ERA: u64 = 146_097;
    let days = days_since_1970 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_AN_ERA, days % DAYS_AN_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_after_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_after_march + 2) / 5 + 1;
    let month = if months_after_march < 10 { months_after_march + 3 } else { months_after_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use plimsoll_wire::http::date::parse_date;

    use super::*;

    #[test]
    fn known_dates_are_written() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (784_111_777, "1994-11-06T08:49:37Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_182_005, "2026-11-20T13:40:05Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (SECONDS_MAX, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(Duration::new(seconds, 999_999_999)), text);
        }
    }

    #[test]
    fn every_day_of_five_centuries_agrees_with_the_dates_of_http() {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        for days in 0..500 * 365 {
            let (year, month, day) = civil(days);
            let month = MONTHS[usize::try_from(month).unwrap() - 1];
            let weekday =
                ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap()];
            let date = parse_date(format!("{weekday}, {day:02} {month} {year} 00:00:00 GMT").as_bytes());
            assert_eq!(date, Some(UNIX_EPOCH + Duration::from_secs(days * SECONDS_A_DAY)));
        }
    }
}
