//! Times in JSON bodies, such as the end of a share: RFC 3339.
//!
//! Not here: the dates of HTTP's fields (`http_fields`). Invariants: a parsed time is written as the same
//! instant, in one form. Only the fraction and the form of the offset may change.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::calendar::{format_rfc3339, parse_rfc3339 as parse, since_1970};

/// Maximum number of positions at which a time is truncated, since its fraction may be as long as the
/// input.
const CUTS_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sent) = std::str::from_utf8(bytes) else { return };
    let Some(time) = parse(sent) else { return };
    assert!(sent.is_ascii() && sent.len() >= "2026-11-20T13:40:05Z".len());
    let written = format_rfc3339(since_1970(time));
    assert_eq!(written.len(), "2026-11-20T13:40:05Z".len());
    assert_eq!(parse(&written), Some(time), "{sent} is written as {written}");
    at_an_offset(&written, time);
    for at in 0..sent.len().min(CUTS_MAX) {
        assert!(parse(&sent[..at]).is_none(), "{sent} is read when cut at {at}");
    }
});

/// Checks that the same clock time, one hour ahead of UTC, is one hour earlier.
fn at_an_offset(written: &str, time: std::time::SystemTime) {
    let ahead = parse(&written.replace('Z', ".75+01:00"));
    let hour = Duration::from_secs(3600);
    assert_eq!(ahead, time.checked_sub(hour).filter(|time| *time >= UNIX_EPOCH));
}
