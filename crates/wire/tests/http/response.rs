//! Response heads: valid ones however the input is split, and no ambiguity about the end of a response.

use plimsoll_wire::http::head::{Field, HeadLimits, Method, Version, find_head_end};
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::{BadResponse, Framing, ResponseHead, parse_response};
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 16 << 10, fields_max: 64, target_bytes_max: 0 };

fn parse(text: &str) -> Result<Option<ResponseHead>, BadResponse> {
    parse_response(text.as_bytes(), Method::Get, &LIMITS)
}

fn good(text: &str) -> ResponseHead {
    parse(text).unwrap().unwrap()
}

/// Valid heads of all shapes, and how their bodies are delimited.
const GOOD: &[(&str, Framing, bool)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", Framing::Length(12), true),
    ("HTTP/1.1 200 OK\r\ncontent-length:0\r\nConnection: Close\r\n\r\n", Framing::Length(0), false),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", Framing::Chunked, true),
    ("HTTP/1.1 200 OK\r\n\r\n", Framing::UntilClose, false),
    ("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n", Framing::Length(1), true),
    ("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n", Framing::Length(1), true),
    ("HTTP/1.0 404 Not Found\r\nContent-Length: 1\r\n\r\n", Framing::Length(1), false),
    ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n", Framing::Length(1), true),
    ("HTTP/1.1 100 Continue\r\n\r\n", Framing::None, true),
    ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", Framing::None, true),
    ("HTTP/1.1 204 No Content\r\n\r\n", Framing::None, true),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", Framing::None, true),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Framing::None, false),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::None, false),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: x\r\nContent-Length: y\r\n\r\n", Framing::None, false),
    ("HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n", Framing::None, false),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 70\r\nETag: \"a\"\r\n\r\n", Framing::None, true),
    ("HTTP/1.1 460 Checksum Mismatch\r\nEmpty:\r\nContent-Length: 0\r\n\r\n", Framing::Length(0), true),
];

#[test]
fn a_response_body_is_delimited_by_status_and_one_field() {
    for (text, framing, keeps_alive) in GOOD {
        let head = good(text);
        assert_eq!((head.framing(), head.keeps_alive()), (*framing, *keeps_alive), "{text:?}");
        assert_eq!(head.len(), text.len());
    }
}

#[test]
fn a_response_to_head_has_no_body_whatever_its_fields() {
    for (text, _, keeps_alive) in GOOD {
        let head = parse_response(text.as_bytes(), Method::Head, &LIMITS).unwrap().unwrap();
        assert_eq!(head.framing(), Framing::None, "{text:?}");
        // Keep-alive is preserved; a response delimited by the end of the connection may gain it.
        assert!(head.keeps_alive() || !keeps_alive || head.version() == Version::Http10, "{text:?}");
    }
}

#[test]
fn a_partial_head_needs_more_bytes_and_is_never_rejected() {
    for (text, ..) in GOOD {
        let mut from = 0;
        for cut in 0..text.len() {
            assert_eq!(parse(&text[..cut]), Ok(None), "{:?}", &text[..cut]);
            assert_eq!(find_head_end(&text.as_bytes()[..cut], from), None);
            from = cut;
        }
        assert_eq!(find_head_end(text.as_bytes(), from), Some(text.len()));
    }
}

#[test]
fn bytes_behind_a_head_do_not_change_it() {
    for (text, ..) in GOOD {
        for tail in ["x", "\r\n", "\n", "HTTP/1.1 200 OK\r\n", "\0"] {
            assert_eq!(good(&format!("{text}{tail}")), good(text));
        }
    }
}

#[test]
fn a_response_head_yields_status_version_and_fields() {
    let text = "HTTP/1.0 401 \u{fc}\r\nWWW-Authenticate: Basic\r\nX-One: \t a \r\nx-one: b\r\n\
        Content-Length: 3\r\n\r\n";
    let (head, block) = (good(text), text.as_bytes());
    assert_eq!((head.status().code(), head.version()), (401, Version::Http10));
    assert_eq!(head.field(block, Field::ContentLength), Some(&b"3"[..]));
    assert_eq!(head.named(block, "x-ONE"), Some(&b"a"[..]));
    assert_eq!(head.named(block, "X-Two"), None);
    assert_eq!(head.fields(block).count(), 4);
    assert_eq!(head.named(b"", "X-One"), None, "of another block: nonsense, but no panic");
}

#[test]
fn an_interim_response_is_followed_by_another() {
    for (code, is_interim) in [(100, true), (102, true), (103, true), (101, false), (200, false)] {
        assert_eq!(good(&format!("HTTP/1.1 {code} x\r\n\r\n")).is_interim(), is_interim, "{code}");
    }
}

#[test]
fn an_ambiguous_response_head_is_rejected() {
    for (text, bad) in [
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", BadResponse::StatusLine),
        ("\nHTTP/1.1 200 OK\r\n\r\n", BadResponse::StatusLine),
        ("GET / HTTP/1.1\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.2 200 OK\r\n\r\n", BadResponse::StatusLine),
        ("http/1.1 200 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 600 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1  200 OK\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 200 \x01\r\n\r\n", BadResponse::StatusLine),
        ("HTTP/1.1 200 OK\n\r\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\n\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", BadResponse::LineEnd),
        ("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", BadResponse::FieldValue),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", BadResponse::FieldName),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", BadResponse::FieldName),
        ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", BadResponse::FieldName),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", BadResponse::Length),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", BadResponse::Length),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", BadResponse::Length),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", BadResponse::Length),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: x\r\n\r\n", BadResponse::Length),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", BadResponse::Coding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", BadResponse::Coding),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            BadResponse::Coding,
        ),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", BadResponse::Coding),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            BadResponse::LengthAndCoding,
        ),
    ] {
        assert_eq!(parse(text), Err(bad), "{text:?}");
        for cut in 0..text.len() {
            // It may be refused early, but must not be accepted first.
            assert!(!matches!(parse(&text[..cut]), Ok(Some(_))), "{:?}", &text[..cut]);
        }
        assert!(!bad.detail().is_empty());
    }
    assert!(BadResponse::Chunk(Refusal::ChunkSize).detail().contains("chunks"));
}

#[test]
fn a_response_head_above_the_limits_is_rejected() {
    let of = |len: usize| format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(len - 24));
    assert_eq!(good(&of(LIMITS.bytes_max)).len(), LIMITS.bytes_max);
    assert_eq!(parse(&of(LIMITS.bytes_max + 1)), Err(BadResponse::HeadTooLong));
    let endless = &of(LIMITS.bytes_max + 100)[..LIMITS.bytes_max];
    assert_eq!(parse(endless), Err(BadResponse::HeadTooLong), "before it ends");
    assert_eq!(parse(&endless[1..]), Err(BadResponse::StatusLine));
    let of = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(parse(&of(LIMITS.fields_max)).is_ok());
    assert_eq!(parse(&of(LIMITS.fields_max + 1)), Err(BadResponse::FieldsTooMany));
}

proptest! {
    #[test]
    fn a_head_with_any_byte_changed_parses_or_is_rejected(
        which in 0..GOOD.len(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = GOOD[which].0.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Some(head)) = parse_response(&bytes, Method::Get, &LIMITS) {
            prop_assert_eq!(find_head_end(&bytes, 0), Some(head.len()));
            let block = &bytes[..head.len()];
            let feeds = block.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(block.windows(2).filter(|pair| pair == b"\r\n").count(), feeds);
        }
    }
}
