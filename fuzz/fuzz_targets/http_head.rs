//! Request heads: no bytes may be a valid head and have a second reading.
//!
//! Not here: single fields (`http_fields`). Invariants: an accepted head has only CRLF line ends and no
//! control byte, one length and one host. The result does not depend on how the input is split. Each limit
//! is enforced.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::head::{
    Field, Framing, Head, HeadLimits, Method, Refusal, find_head_end, parse_head,
};
use plimsoll_wire::http::target::parse_target;

/// Small limits, so that the fuzzer reaches them.
const LIMITS: HeadLimits = HeadLimits { bytes_max: 400, fields_max: 8, target_bytes_max: 100 };

fuzz_target!(|bytes: &[u8]| {
    let whole = parse_head(bytes, &LIMITS);
    arrives_alike(bytes, whole);
    match whole {
        Ok(Some(head)) => accepted(bytes, &head),
        Ok(None) => assert!(bytes.len() < LIMITS.bytes_max, "waits beyond the limit"),
        Err(refusal) => assert!(refusal.status().code() >= 400 && !refusal.detail().is_empty()),
    }
});

/// Checks that a valid head is accepted exactly from its last byte on, and that no prefix of a refused head
/// is accepted.
fn arrives_alike(bytes: &[u8], whole: Result<Option<Head>, Refusal>) {
    let mut from = 0;
    let mut found = None;
    for cut in 0..=bytes.len() {
        let part = parse_head(&bytes[..cut], &LIMITS);
        match whole {
            Ok(Some(head)) if cut >= head.len() => assert_eq!(part, whole),
            Ok(_) => assert_eq!(part, Ok(None)),
            Err(_) => assert!(!matches!(part, Ok(Some(_)))),
        }
        found = found.or_else(|| find_head_end(&bytes[..cut], from));
        from = cut;
    }
    assert_eq!(found, find_head_end(bytes, 0));
    if let Ok(Some(head)) = whole {
        assert_eq!(found, Some(head.len()));
    }
}

fn accepted(bytes: &[u8], head: &Head) {
    assert!(head.len() <= bytes.len() && head.len() <= LIMITS.bytes_max);
    let block = &bytes[..head.len()];
    assert!(block.ends_with(b"\r\n\r\n"));
    for (at, &byte) in block.iter().enumerate() {
        match byte {
            b'\r' => assert_eq!(block[at + 1], b'\n'),
            b'\n' => assert!(at > 0 && block[at - 1] == b'\r'),
            _ => assert!(byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
        }
    }
    fields_agree(block, head);
    framing_agrees(block, head);
    target_agrees(block, head);
}

/// Checks that the table of fields and the slow path agree.
fn fields_agree(block: &[u8], head: &Head) {
    let all: Vec<_> = head.fields(block).collect();
    assert!(all.len() <= LIMITS.fields_max);
    for (name, value) in &all {
        assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_whitespace));
        assert!(!value.starts_with(b" ") && !value.ends_with(b" "));
    }
    for field in Field::ALL {
        let named = |(name, _): &&(&[u8], &[u8])| name.eq_ignore_ascii_case(field.name().as_bytes());
        let values: Vec<_> = all.iter().filter(named).map(|(_, value)| *value).collect();
        assert_eq!(head.field(block, field), values.first().copied());
        assert_eq!(head.repeated(field), values.len() > 1);
        assert!(head.all(block, field).eq(values.iter().copied()));
    }
}

fn framing_agrees(block: &[u8], head: &Head) {
    let length = head.field(block, Field::ContentLength);
    let coding = head.field(block, Field::TransferEncoding);
    match head.framing() {
        Framing::None => assert!(length.is_none() && coding.is_none()),
        Framing::Length(len) => {
            let digits = std::str::from_utf8(length.unwrap()).unwrap();
            assert_eq!(digits.trim_start_matches('0'), len.to_string().trim_start_matches('0'));
            assert!(coding.is_none() && !head.repeated(Field::ContentLength));
        }
        Framing::Chunked => {
            assert!(coding.unwrap().eq_ignore_ascii_case(b"chunked"));
            assert!(length.is_none() && !head.repeated(Field::TransferEncoding));
        }
    }
}

fn target_agrees(block: &[u8], head: &Head) {
    assert!(!head.repeated(Field::Host));
    let target = head.target(block);
    assert!(!target.is_empty() && target.len() <= LIMITS.target_bytes_max);
    if head.method() == Method::Connect {
        return;
    }
    if let Ok(parsed) = parse_target(target) {
        let expected = parsed.authority.or(head.field(block, Field::Host));
        assert_eq!(head.authority(block), expected.filter(|host| !host.is_empty()));
    }
}
