//! Entity tags and conditional requests.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_wire::http::conditional::{
    ETag, Precondition, Validators, etag_matches_strong, etag_matches_weak, evaluate, range_applies,
};
use plimsoll_wire::http::head::{HeadLimits, parse_head};

/// The current state in these tests: tag "now", modified at 08:49:37 and a half.
fn current() -> Validators<'static> {
    Validators { etag: b"\"now\"", modified: Some(UNIX_EPOCH + Duration::from_millis(784_111_777_500)) }
}

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const EXACT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn ask(method: &str, fields: &[&str], current: Option<&Validators<'_>>) -> Precondition {
    let block = format!("{method} /x HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.join("\r\n"));
    let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
    evaluate(&head, block.as_bytes(), current, head.method().reads())
}

fn get(fields: &[&str]) -> Precondition {
    ask("GET", fields, Some(&current()))
}

fn put(fields: &[&str]) -> Precondition {
    ask("PUT", fields, Some(&current()))
}

#[test]
fn conditions_by_a_date_are_ignored_without_a_modification_date() {
    let undated = Validators { modified: None, ..current() };
    let get = |field: &str| ask("GET", &[field], Some(&undated));
    for date in [BEFORE, EXACT, AFTER] {
        assert_eq!(get(&format!("If-Modified-Since: {date}")), Proceed);
        assert_eq!(get(&format!("If-Unmodified-Since: {date}")), Proceed);
        let block = format!("GET /x HTTP/1.1\r\nHost: a\r\nIf-Range: {date}\r\n\r\n");
        let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        assert!(!range_applies(&head, block.as_bytes(), &undated));
    }
}

use Precondition::{Failed, NotModified, Proceed};

#[test]
fn without_conditions_a_request_proceeds() {
    assert_eq!(get(&["Accept: */*"]), Proceed);
    assert_eq!(ask("PUT", &["Accept: */*"], None), Proceed);
}

#[test]
fn if_match_compares_strongly_and_requires_an_existing_file() {
    assert_eq!(put(&["If-Match: \"now\""]), Proceed);
    assert_eq!(put(&["If-Match: \"old\", \"now\""]), Proceed);
    assert_eq!(put(&["If-Match: \"old\"", "If-Match: \"now\""]), Proceed);
    assert_eq!(put(&["If-Match: *"]), Proceed);
    assert_eq!(put(&["If-Match: W/\"now\""]), Failed);
    assert_eq!(put(&["If-Match: \"old\""]), Failed);
    assert_eq!(put(&["If-Match: now"]), Failed);
    assert_eq!(put(&["If-Match:"]), Failed);
    assert_eq!(get(&["If-Match: \"old\""]), Failed);
    assert_eq!(ask("PUT", &["If-Match: *"], None), Failed);
    assert_eq!(ask("PUT", &["If-Match: \"now\""], None), Failed);
    let weak = Validators { etag: b"W/\"now\"", ..current() };
    assert_eq!(ask("PUT", &["If-Match: W/\"now\""], Some(&weak)), Failed);
}

#[test]
fn if_none_match_compares_weakly_and_yields_304_for_reads_and_412_for_writes() {
    for field in ["If-None-Match: \"now\"", "If-None-Match: W/\"now\"", "If-None-Match: *"] {
        assert_eq!(get(&[field]), NotModified, "{field}");
        assert_eq!(ask("HEAD", &[field], Some(&current())), NotModified, "{field}");
        assert_eq!(put(&[field]), Failed, "{field}");
        assert_eq!(ask("PUT", &[field], None), Proceed, "{field}");
    }
    assert_eq!(get(&["If-None-Match: \"old\""]), Proceed);
    assert_eq!(get(&["If-None-Match: \"old\"", "If-None-Match: \"now\""]), NotModified);
}

#[test]
fn if_modified_since_applies_to_reads_in_whole_seconds() {
    let since = |date: &str| format!("If-Modified-Since: {date}");
    assert_eq!(get(&[&since(BEFORE)]), Proceed);
    assert_eq!(get(&[&since(EXACT)]), NotModified);
    assert_eq!(get(&[&since(AFTER)]), NotModified);
    assert_eq!(put(&[&since(AFTER)]), Proceed);
    assert_eq!(get(&[&since("yesterday")]), Proceed);
    assert_eq!(get(&[&since(AFTER), &since(AFTER)]), Proceed, "more than one is none");
}

#[test]
fn if_unmodified_since_guards_a_write() {
    let since = |date: &str| format!("If-Unmodified-Since: {date}");
    assert_eq!(put(&[&since(BEFORE)]), Failed);
    assert_eq!(put(&[&since(EXACT)]), Proceed);
    assert_eq!(put(&[&since(AFTER)]), Proceed);
    assert_eq!(put(&[&since("yesterday")]), Proceed);
    assert_eq!(ask("PUT", &[&since(BEFORE)], None), Proceed);
}

#[test]
fn tags_take_precedence_over_dates_and_guards_over_cache_validation() {
    let unmodified_before = format!("If-Unmodified-Since: {BEFORE}");
    assert_eq!(put(&["If-Match: \"now\"", &unmodified_before]), Proceed, "the date is not looked at");
    let modified_after = format!("If-Modified-Since: {AFTER}");
    assert_eq!(get(&["If-None-Match: \"old\"", &modified_after]), Proceed, "nor here");
    assert_eq!(get(&["If-Match: \"old\"", "If-None-Match: \"now\""]), Failed);
    assert_eq!(get(&["If-Match: \"now\"", "If-None-Match: \"now\""]), NotModified);
}

fn range_counts(fields: &str, etag: &'static [u8]) -> bool {
    let block = format!("GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n{fields}\r\n");
    let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
    range_applies(&head, block.as_bytes(), &Validators { etag, ..current() })
}

#[test]
fn if_range_requires_an_exact_match() {
    assert!(range_counts("", b"\"now\""));
    assert!(range_counts("If-Range: \"now\"\r\n", b"\"now\""));
    assert!(range_counts(&format!("If-Range: {EXACT}\r\n"), b"\"now\""));
    assert!(!range_counts("If-Range: \"old\"\r\n", b"\"now\""));
    assert!(!range_counts("If-Range: W/\"now\"\r\n", b"\"now\""));
    assert!(!range_counts("If-Range: \"now\"\r\n", b"W/\"now\""));
    assert!(!range_counts(&format!("If-Range: {BEFORE}\r\n"), b"\"now\""));
    assert!(!range_counts(&format!("If-Range: {AFTER}\r\n"), b"\"now\""), "not even a later date");
    assert!(!range_counts("If-Range: *\r\n", b"\"now\""));
    assert!(!range_counts("If-Range: now\r\n", b"\"now\""));
    assert!(!range_counts("If-Range: \"now\", \"old\"\r\n", b"\"now\""));
    assert!(!range_counts("If-Range: \"now\"\r\nIf-Range: \"now\"\r\n", b"\"now\""));
}

#[test]
fn etag_comparisons_agree_with_the_table_of_rfc_9110() {
    for (one, other, strong, weak) in [
        ("W/\"1\"", "W/\"1\"", false, true),
        ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
    ] {
        assert_eq!(etag_matches_strong(one.as_bytes(), other.as_bytes()), strong, "{one} {other}");
        assert_eq!(etag_matches_weak(one.as_bytes(), other.as_bytes()), weak, "{one} {other}");
    }
}

#[test]
fn malformed_members_of_a_tag_list_do_not_hide_the_others() {
    for list in [
        "\"a\"",
        " \"a\" ",
        "\"b\",\"a\"",
        "\"b\" , , \"a\",",
        "junk, \"a\"",
        "\"b,c\", \"a\"",
        "\"b\\\", \"a\"",
        "\"b\"junk, \"a\"",
        "\"\", \"a\"",
        "\"b, \"a\"",
    ] {
        assert!(etag_matches_strong(list.as_bytes(), b"\"a\""), "{list}");
    }
    for list in ["", ",", "a", "\"a", "a\"", "*, \"b\"", "'a'", "\"A\"", "w/\"a\""] {
        assert!(!etag_matches_weak(list.as_bytes(), b"\"a\""), "{list}");
    }
    assert!(etag_matches_strong(b" * ", b"\"a\""));
}

#[test]
fn a_single_tag_parses_strictly() {
    assert_eq!(ETag::parse(b"\"x\""), Some(ETag { weak: false, opaque: b"x" }));
    assert_eq!(ETag::parse(b"W/\"\""), Some(ETag { weak: true, opaque: b"" }));
    for bad in ["", "x", "\"x", "\"x\"y", "w/\"x\"", "W/x"] {
        assert_eq!(ETag::parse(bad.as_bytes()), None, "{bad}");
    }
}
