//! Times of fourteen digits.

use std::time::Duration;

use plimsoll_wire::ftp::time::{parse_time, push_time};
use proptest::prelude::*;

const LAST_SECOND: u64 = 253_402_300_799;

fn written(time: Duration) -> String {
    let mut out = Vec::new();
    push_time(&mut out, time);
    String::from_utf8(out).unwrap()
}

#[test]
fn known_timestamps_format_as_known_dates() {
    for (seconds, text) in [
        (0, "19700101000000"),
        (951_782_400, "20000229000000"),
        (951_868_800, "20000301000000"),
        (1_078_012_800, "20040229000000"),
        (1_709_164_800, "20240229000000"),
        (1_795_204_805, "20261120200005"),
        (4_107_542_399, "21000228235959"),
        (4_107_542_400, "21000301000000"),
        (LAST_SECOND, "99991231235959"),
    ] {
        assert_eq!(written(Duration::from_secs(seconds)), text);
        assert_eq!(parse_time(text.as_bytes()), Some(Duration::from_secs(seconds)), "{text}");
    }
    assert_eq!(written(Duration::MAX), "99991231235959");
}

#[test]
fn every_day_formats_and_parses_to_the_same() {
    let mut before = String::new();
    for day in 0..=LAST_SECOND / 86_400 {
        let time = Duration::from_secs(day * 86_400 + day % 86_400);
        let text = written(time);
        assert!(before < text, "{before} comes before {text}");
        assert_eq!(parse_time(text.as_bytes()), Some(time), "{text}");
        before = text;
    }
}

#[test]
fn a_fraction_parses_to_the_nanosecond() {
    for (fraction, nanos) in [
        (".5", 500_000_000),
        (".001", 1_000_000),
        (".000000001", 1),
        (".9999999999999", 999_999_999),
        (".0", 0),
    ] {
        let text = format!("19980615100045{fraction}");
        assert_eq!(parse_time(text.as_bytes()), Some(Duration::new(897_904_845, nanos)), "{text}");
    }
    assert_eq!(written(Duration::new(897_904_845, 999_999_999)), "19980615100045", "and written without");
}

#[test]
fn a_leap_second_parses_as_the_next_minutes_first_second() {
    assert_eq!(parse_time(b"19981231235960"), parse_time(b"19990101000000"));
}

#[test]
fn a_time_before_1970_parses_as_its_start() {
    for text in ["19691231235959", "19691231235960", "19650102030405.5", "16010101000000", "00000229000000"] {
        assert_eq!(parse_time(text.as_bytes()), Some(Duration::ZERO), "{text}");
    }
}

#[test]
fn an_impossible_date_is_rejected() {
    for bad in [
        "",
        "2026",
        "2026010100000",
        "202601010000000",
        "20261301000000",
        "20260001000000",
        "20260100000000",
        "20260132000000",
        "20260229000000",
        "21000229000000",
        "20260431000000",
        "20260101240000",
        "20260101006000",
        "20260101000061",
        "19690229000000",
        "99991231235960",
        "2026010100000a",
        "+0260101000000",
        "20260101000000.",
        "20260101000000.x",
        "20260101000000,5",
        "20260101000000Z",
        " 20260101000000",
        "2026010100000\u{663}",
    ] {
        assert_eq!(parse_time(bad.as_bytes()), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn every_second_formats_and_parses_to_the_same(seconds in 0..=LAST_SECOND) {
        let time = Duration::from_secs(seconds);
        prop_assert_eq!(parse_time(written(time).as_bytes()), Some(time));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(text in "[0-9.x\u{e9}]{0,24}") {
        let _ = parse_time(text.as_bytes());
    }
}
