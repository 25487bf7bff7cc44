//! Byte ranges.

use std::ops::Range;

use plimsoll_wire::http::range::{ContentRange, NotARange, Resolved, parse_content_range, parse_range};
use plimsoll_wire::limits::RANGES_MAX;
use proptest::prelude::*;

/// Returns the ranges that a field selects of `length` bytes; None is the whole, an empty list is 416.
fn select(field: &str, length: u64) -> Option<Vec<Range<u64>>> {
    match parse_range(field.as_bytes()).unwrap().resolve(length) {
        Resolved::Whole => None,
        Resolved::Unsatisfiable => Some(Vec::new()),
        Resolved::Ranges(ranges) => Some(ranges.as_slice().to_vec()),
    }
}

#[test]
fn ranges_select_the_stated_bytes() {
    for (field, ranges) in [
        ("bytes=0-0", vec![0..1]),
        ("bytes=0-9", vec![0..10]),
        ("bytes=0-", vec![0..10]),
        ("bytes=9-", vec![9..10]),
        ("bytes=5-100", vec![5..10]),
        ("bytes=0-18446744073709551615", vec![0..10]),
        ("bytes=0-99999999999999999999999", vec![0..10]),
        ("bytes=-1", vec![9..10]),
        ("bytes=-10", vec![0..10]),
        ("bytes=-99999999999999999999999", vec![0..10]),
        ("Bytes=2-3", vec![2..4]),
        ("bytes= 2-3 ,\t5-6", vec![2..4, 5..7]),
        ("bytes=,2-3,,5-6,", vec![2..4, 5..7]),
        ("bytes=8-9,0-1", vec![8..10, 0..2]),
        ("bytes=0-1,50-60", vec![0..2]),
        ("bytes=0-4,3-7", vec![0..5, 3..8]),
    ] {
        assert_eq!(select(field, 10), Some(ranges), "{field}");
    }
}

#[test]
fn ranges_beyond_the_end_are_unsatisfiable() {
    for field in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999-", "bytes=10-,-0"] {
        assert_eq!(select(field, 10), Some(vec![]), "{field}");
    }
}

#[test]
fn any_range_of_an_empty_file_selects_the_whole() {
    for field in ["bytes=0-", "bytes=-5", "bytes=0-0", "bytes=7-", "bytes=-0", "bytes=0-1,5-"] {
        assert_eq!(select(field, 0), None, "{field}");
    }
}

#[test]
fn a_malformed_range_is_ignored() {
    for field in [
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-4",
        "bytes=1-2-3",
        "bytes=+1-2",
        "bytes=1 - 2",
        "bytes=0x1-2",
        "bytes=1",
        "bytes=0-1;2-3",
        "0-1",
        "",
    ] {
        assert_eq!(parse_range(field.as_bytes()), Err(NotARange::Malformed), "{field}");
    }
    assert_eq!(parse_range(b"items=0-1"), Err(NotARange::Unit));
    assert_eq!(parse_range(b"=0-1"), Err(NotARange::Unit));
    assert_eq!(parse_range(b"bytes =0-1"), Err(NotARange::Unit));
}

#[test]
fn more_ranges_than_the_limit_are_rejected() {
    let of = |count: usize| format!("bytes={}", "0-0,".repeat(count));
    assert_eq!(select(&of(RANGES_MAX), 1000).map(|ranges| ranges.len()), Some(RANGES_MAX));
    assert_eq!(parse_range(of(RANGES_MAX + 1).as_bytes()), Err(NotARange::TooMany));
}

#[test]
fn ranges_longer_than_the_whole_file_are_ignored() {
    assert_eq!(select("bytes=0-9,0-0", 10), None);
    assert_eq!(select("bytes=0-,0-,0-,0-", 10), None);
    assert_eq!(select("bytes=0-4,5-9", 10), Some(vec![0..5, 5..10]));
    assert_eq!(select("bytes=0-,0-", u64::MAX), None, "without overflow");
}

#[test]
fn content_range_formats_and_parses() {
    let part = ContentRange::Part { range: 0..5, length: 10 };
    let none = ContentRange::Unsatisfied { length: 10 };
    assert_eq!(part.to_string(), "bytes 0-4/10");
    assert_eq!(none.to_string(), "bytes */10");
    assert_eq!(parse_content_range(b"bytes 0-4/10"), Some(part));
    assert_eq!(parse_content_range(b"Bytes */10"), Some(none));
    for bad in [
        "",
        "bytes",
        "bytes 0-4",
        "bytes 0-4/*",
        "bytes 4-0/10",
        "bytes 0-10/10",
        "bytes -4/10",
        "items 0-4/10",
    ] {
        assert_eq!(parse_content_range(bad.as_bytes()), None, "{bad}");
    }
    let last = format!("bytes 0-{}/{}", u64::MAX, u64::MAX);
    assert_eq!(parse_content_range(last.as_bytes()), None, "without overflow");
}

proptest! {
    #[test]
    fn resolved_ranges_stay_within_the_representation(
        specs in proptest::collection::vec("[0-9]{0,3}-[0-9]{0,3}", 1..20), length in 0u64..500,
    ) {
        if let Ok(set) = parse_range(format!("bytes={}", specs.join(",")).as_bytes())
            && let Resolved::Ranges(ranges) = set.resolve(length)
        {
            let ranges = ranges.as_slice();
            prop_assert!(!ranges.is_empty() && ranges.len() <= RANGES_MAX);
            prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
            prop_assert!(ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= length);
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), length: u64) {
        let field = [b"bytes=", &bytes[..]].concat();
        if let Ok(set) = parse_range(&field) {
            let _ = set.resolve(length);
        }
        let _ = parse_content_range(&bytes);
    }
}
