//! Response heads, parsed for a client: no bytes may be a valid head and have a second reading.
//!
//! Not here: bodies (`http_chunked`). Invariants: an accepted head has only CRLF line ends and no control
//! byte, and one length. The result does not depend on how the input is split. Each limit is enforced.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::head::{Field, HeadLimits, Method, find_head_end};
use plimsoll_wire::http::response::{BadResponse, Framing, ResponseHead, parse_response};

/// Small limits, so that the fuzzer reaches them.
const LIMITS: HeadLimits = HeadLimits { bytes_max: 400, fields_max: 8, target_bytes_max: 0 };

fuzz_target!(|bytes: &[u8]| {
    let whole = parse_response(bytes, Method::Get, &LIMITS);
    arrives_alike(bytes, whole);
    match whole {
        Ok(Some(head)) => accepted(bytes, &head),
        Ok(None) => assert!(bytes.len() < LIMITS.bytes_max, "waits beyond the limit"),
        Err(bad) => assert!(!bad.detail().is_empty()),
    }
});

/// Checks that a valid head is accepted exactly from its last byte on, and that no prefix of a refused head
/// is accepted.
fn arrives_alike(bytes: &[u8], whole: Result<Option<ResponseHead>, BadResponse>) {
    for cut in 0..=bytes.len() {
        let part = parse_response(&bytes[..cut], Method::Get, &LIMITS);
        match whole {
            Ok(Some(head)) if cut >= head.len() => assert_eq!(part, whole),
            Ok(_) => assert_eq!(part, Ok(None)),
            Err(_) => assert!(!matches!(part, Ok(Some(_)))),
        }
    }
    if let Ok(Some(head)) = whole {
        assert_eq!(find_head_end(bytes, 0), Some(head.len()));
    }
}

fn accepted(bytes: &[u8], head: &ResponseHead) {
    assert!(head.len() <= bytes.len() && head.len() <= LIMITS.bytes_max);
    let block = &bytes[..head.len()];
    assert!(block.starts_with(b"HTTP/1.") && block.ends_with(b"\r\n\r\n"));
    for (at, &byte) in block.iter().enumerate() {
        match byte {
            b'\r' => assert_eq!(block[at + 1], b'\n'),
            b'\n' => assert!(at > 0 && block[at - 1] == b'\r'),
            _ => assert!(byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
        }
    }
    assert!(head.fields(block).count() <= LIMITS.fields_max);
    framing_agrees(block, head);
    let to_head = parse_response(bytes, Method::Head, &LIMITS).unwrap().unwrap();
    assert_eq!(to_head.framing(), Framing::None);
}

fn framing_agrees(block: &[u8], head: &ResponseHead) {
    let values = |name: &str| {
        let named = head.fields(block).filter(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| value.to_vec()).collect::<Vec<_>>()
    };
    let (lengths, codings) = (values("Content-Length"), values("Transfer-Encoding"));
    assert!(lengths.len() + codings.len() <= 1);
    assert_eq!(head.field(block, Field::ContentLength), lengths.first().map(Vec::as_slice));
    match head.framing() {
        Framing::None => assert!(head.status().is_bodiless()),
        Framing::Length(length) => {
            let text = std::str::from_utf8(&lengths[0]).unwrap();
            assert_eq!(text.parse::<u64>(), Ok(length));
            assert!(text.bytes().all(|byte| byte.is_ascii_digit()));
        }
        Framing::Chunked => assert!(codings[0].eq_ignore_ascii_case(b"chunked")),
        Framing::UntilClose => {
            assert!(lengths.is_empty() && codings.is_empty() && !head.keeps_alive());
        }
    }
}
