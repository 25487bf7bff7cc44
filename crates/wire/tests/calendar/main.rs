//! Dates of the calendar, and their text form of RFC 3339, as a specification.
// Clippy recognises tests by their attribute, and so not the helper functions.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_wire::calendar::{CalendarTime, LAST_SECOND, format_rfc3339, parse_rfc3339};
use plimsoll_wire::http::date::parse_date;

#[test]
fn known_seconds_are_formatted_as_their_dates() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (784_111_777, "1994-11-06T08:49:37Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (1_795_182_005, "2026-11-20T13:40:05Z"),
        (4_107_542_399, "2100-02-28T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (LAST_SECOND, "9999-12-31T23:59:59Z"),
        (u64::MAX, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(format_rfc3339(Duration::new(seconds, 999_999_999)), text);
    }
}

#[test]
fn every_day_of_five_centuries_agrees_with_the_dates_of_http() {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    for days in 0..500 * 365_u64 {
        let time = Duration::from_secs(days * 86_400);
        let date = CalendarTime::at(time);
        let month = MONTHS[usize::try_from(date.month).unwrap() - 1];
        let weekday = WEEKDAYS[usize::try_from(days % 7).unwrap()];
        let text = format!("{weekday}, {:02} {month} {} 00:00:00 GMT", date.day, date.year);
        assert_eq!(parse_date(text.as_bytes()), Some(UNIX_EPOCH + time));
    }
}

#[test]
fn a_formatted_time_parses_as_the_same_second() {
    for seconds in (0..LAST_SECOND).step_by(98_765_431) {
        let time = Duration::from_secs(seconds);
        assert_eq!(parse_rfc3339(&format_rfc3339(time)), Some(UNIX_EPOCH + time), "{seconds}");
        assert_eq!(CalendarTime::at(time).seconds_since_1970(), Some(seconds));
    }
}

#[test]
fn fractions_and_offsets_are_parsed() {
    let utc = parse_rfc3339("2026-11-20T13:40:05Z");
    for same in ["2026-11-20t13:40:05.999z", "2026-11-20T14:40:05+01:00", "2026-11-19 23:10:05-14:30"] {
        assert_eq!(parse_rfc3339(same), utc, "{same}");
    }
    let leap_day = UNIX_EPOCH + Duration::from_secs(1_709_164_800);
    assert_eq!(parse_rfc3339("2024-02-29T00:00:00Z"), Some(leap_day));
}

#[test]
fn a_time_that_is_cut_or_changed_at_any_byte_never_panics() {
    let good = "2026-11-20T13:40:05.25+01:30";
    for at in 0..good.len() {
        assert!(parse_rfc3339(&good[..at]).is_none(), "{}", &good[..at]);
        for odd in ["é", "-", "+", ":", "9", "Z", "."] {
            let _ = parse_rfc3339(&format!("{}{odd}{}", &good[..at], &good[at + 1..]));
        }
    }
    assert!(parse_rfc3339(good).is_some());
}

#[test]
fn a_time_outside_the_calendar_or_the_grammar_is_rejected() {
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
        assert_eq!(parse_rfc3339(bad), None, "{bad}");
    }
}
