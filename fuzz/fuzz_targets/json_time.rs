//! Times in JSON bodies, such as when a share ends: RFC 3339.
//!
//! Not here: the dates of HTTP's fields (`http_fields`). What must hold: what is read is written again as
//! the same instant, in one form; a fraction and the offset's own form change nothing else.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use plimsoll_web::time::{parse, text};

/// Places that a time is cut at: a fraction may be as long as the input.
const CUTS_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sent) = std::str::from_utf8(bytes) else { return };
    let Some(time) = parse(sent) else { return };
    assert!(sent.is_ascii() && sent.len() >= "2026-11-20T13:40:05Z".len());
    let written = text(time);
    assert_eq!(written.len(), "2026-11-20T13:40:05Z".len());
    assert_eq!(parse(&written), Some(time), "{sent} is written as {written}");
    at_an_offset(&written, time);
    for at in 0..sent.len().min(CUTS_MAX) {
        assert!(parse(&sent[..at]).is_none(), "{sent} is read when cut at {at}");
    }
});

/// The same clock an hour ahead of UTC is an hour before.
fn at_an_offset(written: &str, time: std::time::SystemTime) {
    let ahead = parse(&written.replace('Z', ".75+01:00"));
    let hour = Duration::from_secs(3600);
    assert_eq!(ahead, time.checked_sub(hour).filter(|time| *time >= UNIX_EPOCH));
}
