//! Dates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_wire::http::date::{DATE_BYTES, parse_date, to_whole_seconds, write_date};
use proptest::prelude::*;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn written(time: SystemTime) -> String {
    let mut out = [0; DATE_BYTES];
    write_date(time, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

#[test]
fn all_three_date_formats_parse_to_the_same_time() {
    for form in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        assert_eq!(parse_date(form.as_bytes()), Some(at(784_111_777)), "{form}");
    }
    assert_eq!(written(at(784_111_777)), "Sun, 06 Nov 1994 08:49:37 GMT");
}

#[test]
fn a_malformed_date_is_none() {
    for text in [
        "",
        "0",
        "784111777",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
        "Sun, 06 N\u{f6}v 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse_date(text.as_bytes()), None, "{text}");
    }
    assert_eq!(parse_date(&[0xff; 29]), None);
}

#[test]
fn every_time_formats() {
    assert_eq!(written(UNIX_EPOCH - Duration::from_secs(5)), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(written(at(253_402_300_799)), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(written(at(1 << 60)), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(written(at(951_782_400)), "Tue, 29 Feb 2000 00:00:00 GMT");
}

proptest! {
    #[test]
    fn a_written_date_parses_to_whole_seconds(
        seconds in 0u64..260_000_000_000, nanos in 0u32..1_000_000_000,
    ) {
        let time = UNIX_EPOCH + Duration::new(seconds, nanos);
        prop_assert_eq!(parse_date(written(time).as_bytes()), Some(to_whole_seconds(time)));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(Sun|Monday|, | |[0-9]{1,4}|-|Nov|:|GMT){0,12}") {
        let _ = parse_date(text.as_bytes());
    }
}
