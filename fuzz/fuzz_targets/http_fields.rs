//! Single fields and targets: range, conditions, dates, negotiation, paths, and values written into
//! responses.
//!
//! Not here: whole heads (`http_head`). Invariants: each function is total, and its result must satisfy the
//! invariants of its module.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::conditional::{
    ETag, Precondition, Validators, etag_matches_strong, etag_matches_weak, evaluate, range_applies,
};
use plimsoll_wire::http::date::{DATE_BYTES, parse_date, to_whole_seconds, write_date};
use plimsoll_wire::http::head::{Field, HeadLimits, parse_head};
use plimsoll_wire::http::multipart::{body_len, close, part_head};
use plimsoll_wire::http::negotiate::{Quality, accepts_encoding, choose};
use plimsoll_wire::http::range::{ContentRange, Resolved, parse_content_range, parse_range};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{decode_path, encode_path, parse_target};
use plimsoll_wire::limits::RANGES_MAX;

/// The first byte selects the target, so that each keeps its own corpus; the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    match selector % 7 {
        0 => range(bytes),
        1 => target(bytes),
        2 => date(bytes),
        3 => tags(bytes),
        4 => conditions(bytes),
        5 => negotiation(bytes),
        _ => answer(bytes),
    }
});

/// The length comes first in the input, so that the fuzzer finds ranges near every boundary.
fn range(bytes: &[u8]) {
    let Some((length, field)) = bytes.split_first_chunk::<8>() else { return };
    let length = u64::from_be_bytes(*length);
    if let Some(ContentRange::Part { range, length }) = parse_content_range(field) {
        assert!(range.start < range.end && range.end <= length);
        let written = ContentRange::Part { range, length };
        assert_eq!(parse_content_range(written.to_string().as_bytes()), Some(written));
    }
    let Ok(set) = parse_range(field) else { return };
    let Resolved::Ranges(ranges) = set.resolve(length) else { return };
    let ranges = ranges.as_slice();
    assert!(!ranges.is_empty() && ranges.len() <= RANGES_MAX);
    assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
    let total: u128 = ranges.iter().map(|range| u128::from(range.end - range.start)).sum();
    assert!(total <= u128::from(length));
    let mut heads = Vec::new();
    for range in ranges {
        part_head(b"boundary", "text/plain", range, length, &mut heads);
    }
    close(b"boundary", &mut heads);
    let expected = (heads.len() as u128 + total).min(u128::from(u64::MAX));
    assert_eq!(u128::from(body_len(b"boundary", "text/plain", ranges, length)), expected);
}

fn target(bytes: &[u8]) {
    let mut path = Vec::new();
    if let Ok(target) = parse_target(bytes) {
        assert!(target.path.starts_with(b"/") || target.path == b"*");
        assert!(!target.path.contains(&b'?'));
        let _ = decode_path(target.path, &mut path);
    }
    if decode_path(bytes, &mut path).is_err() {
        assert!(path.is_empty());
        return;
    }
    assert!(path.starts_with(b"/") && !path.contains(&0));
    assert!(path.split(|&byte| byte == b'/').all(|segment| segment != b"." && segment != b".."));
    assert!(!path.windows(2).any(|pair| pair == b"//"));
    let names = |bytes: &[u8]| bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).count();
    assert_eq!(names(bytes), names(&path), "no separator that was not one");
    let (mut encoded, mut again) = (Vec::new(), Vec::new());
    encode_path(&path, &mut encoded);
    assert_eq!(parse_target(&encoded).unwrap().path, encoded);
    decode_path(&encoded, &mut again).unwrap();
    assert_eq!(again, path);
}

fn date(bytes: &[u8]) {
    let mut out = [0; DATE_BYTES];
    if let Some(time) = parse_date(bytes) {
        write_date(time, &mut out);
        assert_eq!(parse_date(&out), Some(time));
    }
    if let Some((seconds, _)) = bytes.split_first_chunk::<8>() {
        // Limits the time to the range of a `SystemTime` on every platform.
        let time = UNIX_EPOCH + Duration::from_secs(u64::from_be_bytes(*seconds) >> 2);
        write_date(time, &mut out);
        assert_eq!(parse_date(&out), Some(to_whole_seconds(time)));
    }
}

fn tags(bytes: &[u8]) {
    let Some((len, bytes)) = bytes.split_first() else { return };
    let (tag, list) = bytes.split_at(usize::from(*len).min(bytes.len()));
    let (strong, weak) = (etag_matches_strong(list, tag), etag_matches_weak(list, tag));
    assert!(weak || !strong, "a strong match is a weak one");
    if let Some(parsed) = ETag::parse(tag) {
        assert!(etag_matches_weak(tag, tag));
        assert_eq!(etag_matches_strong(tag, tag), !parsed.weak);
        let joined = [b"\"other\" , ", tag, b", \"third\""].concat();
        assert!(etag_matches_weak(&joined, tag));
    }
}

fn conditions(bytes: &[u8]) {
    let block = [b"GET / HTTP/1.1\r\nHost: a\r\n", bytes, b"\r\n\r\n"].concat();
    let Ok(Some(head)) = parse_head(&block, &HeadLimits::default()) else { return };
    let modified = UNIX_EPOCH + Duration::from_millis(784_111_777_500);
    let current = Validators { etag: b"\"now\"", modified: Some(modified) };
    let reading = evaluate(&head, &block, Some(&current), true);
    let writing = evaluate(&head, &block, Some(&current), false);
    assert_ne!(writing, Precondition::NotModified, "only reading is answered so");
    if reading == Precondition::Failed {
        assert_eq!(writing, Precondition::Failed);
    }
    let creating = evaluate(&head, &block, None, false);
    assert_eq!(creating == Precondition::Failed, head.field(&block, Field::IfMatch).is_some());
    let applies = range_applies(&head, &block, &current);
    assert!(applies || head.field(&block, Field::IfRange).is_some());
}

fn negotiation(bytes: &[u8]) {
    for coding in ["gzip", "br", "identity"] {
        assert!(accepts_encoding(bytes, coding.as_bytes()) <= Quality::FULL);
    }
    let offers = ["application/json", "text/html"];
    if let Some(chosen) = choose(bytes, &offers) {
        assert!(offers.contains(&chosen));
        assert_eq!(choose(bytes, &[chosen]), Some(chosen));
    } else {
        assert!(offers.iter().all(|offer| choose(bytes, &[offer]).is_none()));
    }
}

fn answer(bytes: &[u8]) {
    let mut out = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    AnswerHead::begin(&mut out, Status::OK).field("X", bytes).field_display("Y", text).finish();
    assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 4);
    assert_eq!(out.windows(2).filter(|pair| pair == b"\r\n").count(), 4);
    assert_eq!(out.iter().filter(|&&byte| byte == b'\r').count(), 4);
}
