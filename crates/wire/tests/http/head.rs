//! Valid request heads, and the limits on them.

use plimsoll_wire::http::head::{
    Field, Framing, Head, HeadLimits, Method, Refusal, Version, find_head_end, parse_head,
};
use plimsoll_wire::limits::HEAD_FIELDS_MAX;
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 16 << 10, fields_max: 64, target_bytes_max: 8 << 10 };

fn parse(text: &str) -> Result<Option<Head>, Refusal> {
    parse_head(text.as_bytes(), &LIMITS)
}

fn good(text: &str) -> Head {
    parse(text).unwrap().unwrap()
}

/// Valid heads of all shapes; each is also split at every byte.
const GOOD: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "PUT /files/a%20b?x=1 HTTP/1.1\r\nhost:a.example:8080\r\nContent-Length: 12\r\n\
     Expect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tChunked \t\r\n\r\n",
    "GET http://b.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
    "PROPFIND /\u{fc} HTTP/1.1\r\nHost: [::1]:80\r\nDepth: 1\r\nEmpty:\r\nSpaces:   \r\nAccept: */*\r\n\r\n",
];

#[test]
fn a_partial_head_needs_more_bytes_and_is_never_rejected() {
    for text in GOOD {
        for cut in 0..text.len() {
            let part = &text.as_bytes()[..cut];
            assert_eq!(parse_head(part, &LIMITS), Ok(None), "{:?}", String::from_utf8_lossy(part));
        }
        assert_eq!(good(text).len(), text.len());
    }
}

#[test]
fn bytes_behind_a_head_do_not_change_it() {
    for text in GOOD {
        for tail in ["x", "\r\n", "\n", "GET / HTTP/1.1\r\n", "\0"] {
            assert_eq!(good(&format!("{text}{tail}")), good(text));
        }
    }
}

#[test]
fn the_end_of_a_head_is_found_however_it_is_split() {
    for text in GOOD {
        let bytes = text.as_bytes();
        let mut from = 0;
        for come in 0..bytes.len() {
            assert_eq!(find_head_end(&bytes[..come], from), None, "{text:?} at {come}");
            from = come;
        }
        for from in 0..=bytes.len() {
            if find_head_end(&bytes[..from], 0).is_none() {
                assert_eq!(find_head_end(bytes, from), Some(bytes.len()), "{text:?} from {from}");
            }
        }
    }
    assert_eq!(find_head_end(b"GET / HTTP/1.1\n\nx", 0), Some(16), "to be refused rather than waited for");
    assert_eq!(find_head_end(b"abc", 100), None);
}

#[test]
fn a_parsed_head_is_small_enough_to_copy() {
    assert!(size_of::<Head>() < 250, "{}", size_of::<Head>());
}

#[test]
fn the_request_line_yields_method_target_and_version() {
    let block = "MKCOL /a/b?q HTTP/1.0\r\nHost: h\r\n\r\n";
    let head = good(block);
    assert_eq!(head.method(), Method::Mkcol);
    assert_eq!(head.method_bytes(block.as_bytes()), b"MKCOL");
    assert_eq!(head.target(block.as_bytes()), b"/a/b?q");
    assert_eq!(head.version(), Version::Http10);
}

#[test]
fn methods_are_case_sensitive_and_unknown_ones_are_preserved() {
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MKCOL", "MOVE", "COPY"] {
        assert_eq!(good(&format!("{method} / HTTP/1.0\r\n\r\n")).method().as_str(), method);
    }
    let block = "get / HTTP/1.0\r\n\r\n";
    assert_eq!(good(block).method(), Method::Other);
    assert_eq!(good(block).method_bytes(block.as_bytes()), b"get");
}

#[test]
fn fields_are_found_in_any_case_and_their_values_trimmed() {
    let block =
        b"GET / HTTP/1.1\r\nhOsT:h\r\nACCEPT: \t a b \t\r\nReferer:\r\nX-Own: 1\r\ncookie:   \r\n\r\n";
    let head = parse_head(block, &LIMITS).unwrap().unwrap();
    assert_eq!(head.field(block, Field::Host), Some(&b"h"[..]));
    assert_eq!(head.field(block, Field::Accept), Some(&b"a b"[..]));
    assert_eq!(head.field(block, Field::Referer), Some(&b""[..]));
    assert_eq!(head.field(block, Field::Cookie), Some(&b""[..]));
    assert_eq!(head.field(block, Field::Range), None);
    assert_eq!(head.named(block, "x-own"), Some(&b"1"[..]));
    let fields: Vec<_> = head.fields(block).collect();
    assert_eq!(fields[1], (&b"ACCEPT"[..], &b"a b"[..]));
    assert_eq!(fields.len(), 5);
}

#[test]
fn every_known_field_has_an_index_of_its_own() {
    for field in Field::ALL {
        let value = match field {
            Field::Host | Field::ContentLength => "7",
            Field::TransferEncoding => "chunked",
            _ => "some value",
        };
        let host = if field == Field::Host { "" } else { "Host: h\r\n" };
        let block = format!("GET / HTTP/1.1\r\n{host}{}: {value}\r\n\r\n", field.name().to_lowercase());
        let head = good(&block);
        for other in Field::ALL {
            let expected = if other == field { Some(value) } else { (other == Field::Host).then_some("h") };
            assert_eq!(
                head.field(block.as_bytes(), other),
                expected.map(str::as_bytes),
                "{field:?} {other:?}"
            );
        }
    }
}

#[test]
fn a_repeated_field_yields_all_its_lines() {
    let block = b"GET / HTTP/1.1\r\nHost: h\r\nIf-Match: \"a\"\r\nCookie: c\r\nif-match: \"b\"\r\n\r\n";
    let head = parse_head(block, &LIMITS).unwrap().unwrap();
    assert!(head.repeated(Field::IfMatch));
    assert!(!head.repeated(Field::Cookie));
    assert_eq!(head.field(block, Field::IfMatch), Some(&b"\"a\""[..]));
    assert_eq!(head.all(block, Field::IfMatch).collect::<Vec<_>>(), [b"\"a\"", b"\"b\""]);
    assert_eq!(head.all(block, Field::Cookie).collect::<Vec<_>>(), [b"c"]);
    assert_eq!(head.all(block, Field::Range).count(), 0);
}

#[test]
fn a_request_body_is_delimited_by_one_field() {
    let of = |fields: &str| good(&format!("PUT / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).framing();
    assert_eq!(of(""), Framing::None);
    assert_eq!(of("Content-Length: 0\r\n"), Framing::Length(0));
    assert_eq!(of("Content-Length: 18446744073709551615\r\n"), Framing::Length(u64::MAX));
    assert_eq!(of("transfer-encoding: CHUNKED\r\n"), Framing::Chunked);
}

#[test]
fn keep_alive_follows_version_and_connection_options() {
    let keeps = |version: &str, fields: &str| {
        good(&format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n")).keeps_alive()
    };
    assert!(keeps("1.1", ""));
    assert!(!keeps("1.1", "Connection: close\r\n"));
    assert!(!keeps("1.1", "Connection: TE, Close\r\n"));
    assert!(!keeps("1.1", "Connection: keep-alive\r\nConnection: close\r\n"), "close wins");
    assert!(keeps("1.1", "Connection: closed\r\n"));
    assert!(!keeps("1.1", "Connection: \"x, close\r\n"), "a quote hides nothing");
    assert!(!keeps("1.0", ""));
    assert!(keeps("1.0", "Connection: Keep-Alive\r\n"));
    assert!(!keeps("1.0", "Connection: keep-alive, close\r\n"));
}

#[test]
fn expect_100_continue_applies_only_to_http_1_1_with_a_body() {
    let expects = |version: &str, fields: &str| {
        good(&format!("PUT / HTTP/{version}\r\nHost: h\r\nExpect: 100-Continue\r\n{fields}\r\n"))
            .expects_continue()
    };
    assert!(expects("1.1", "Content-Length: 1\r\n"));
    assert!(expects("1.1", "Transfer-Encoding: chunked\r\n"));
    assert!(!expects("1.1", "Content-Length: 0\r\n"));
    assert!(!expects("1.1", ""));
    assert!(!expects("1.0", "Content-Length: 1\r\n"));
}

#[test]
fn the_authority_of_the_target_overrides_host() {
    let authority = |line: &str, fields: &str| {
        let block = format!("{line}\r\n{fields}\r\n");
        good(&block).authority(block.as_bytes()).map(|host| String::from_utf8(host.to_vec()).unwrap())
    };
    assert_eq!(authority("GET http://b:81/ HTTP/1.1", "Host: a\r\n").as_deref(), Some("b:81"));
    assert_eq!(authority("GET HTTPS://b?q HTTP/1.1", "Host:\r\n").as_deref(), Some("b"));
    assert_eq!(authority("GET / HTTP/1.1", "Host: a\r\n").as_deref(), Some("a"));
    assert_eq!(authority("CONNECT b:443 HTTP/1.1", "Host: b:443\r\n").as_deref(), Some("b:443"));
    assert_eq!(authority("GET / HTTP/1.0", ""), None);
    assert_eq!(authority("OPTIONS * HTTP/1.1", "Host:\r\n"), None);
}

#[test]
fn a_head_above_the_limit_is_rejected() {
    let limits = HeadLimits { bytes_max: 100, ..LIMITS };
    let of_len = |len: usize| {
        let start = "GET / HTTP/1.0\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(len - start.len() - 4))
    };
    assert_eq!(parse_head(of_len(100).as_bytes(), &limits).unwrap().unwrap().len(), 100);
    assert_eq!(parse_head(of_len(101).as_bytes(), &limits), Err(Refusal::HeadTooLong));
    let endless = of_len(400);
    assert_eq!(parse_head(&endless.as_bytes()[..99], &limits), Ok(None));
    assert_eq!(parse_head(&endless.as_bytes()[..100], &limits), Err(Refusal::HeadTooLong));
    assert_eq!(Refusal::HeadTooLong.status().code(), 431);
}

#[test]
fn configured_limits_are_capped_at_the_range_of_a_span() {
    let limits = HeadLimits { bytes_max: usize::MAX, ..LIMITS };
    let block = format!("GET / HTTP/1.0\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert_eq!(parse_head(block.as_bytes(), &limits), Err(Refusal::HeadTooLong));
}

#[test]
fn a_head_with_more_fields_than_the_limit_is_rejected() {
    for (limit, most) in [(3, 3), (64, 64), (100, 100), (1000, HEAD_FIELDS_MAX)] {
        let limits = HeadLimits { fields_max: limit, ..LIMITS };
        let of = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "X: y\r\n".repeat(count));
        assert!(parse_head(of(most).as_bytes(), &limits).unwrap().is_some());
        assert_eq!(parse_head(of(most + 1).as_bytes(), &limits), Err(Refusal::FieldsTooMany));
    }
    assert_eq!(Refusal::FieldsTooMany.status().code(), 431);
}

#[test]
fn a_target_above_the_limit_is_rejected() {
    let limits = HeadLimits { target_bytes_max: 10, ..LIMITS };
    let of = |len: usize| format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(len - 1));
    assert!(parse_head(of(10).as_bytes(), &limits).unwrap().is_some());
    assert_eq!(parse_head(of(11).as_bytes(), &limits), Err(Refusal::TargetTooLong));
    assert_eq!(parse_head(b"GET /xxxxxxxxxx", &limits), Err(Refusal::TargetTooLong), "before it ends");
    assert_eq!(parse_head(b"GET /xxxxxxxxx", &limits), Ok(None));
    assert_eq!(Refusal::TargetTooLong.status().code(), 414);
}

#[test]
fn a_head_used_with_another_buffer_does_not_panic() {
    let block = b"GET /long/enough HTTP/1.1\r\nHost: h\r\nCookie: a\r\nCookie: b\r\n\r\n";
    let head = parse_head(block, &LIMITS).unwrap().unwrap();
    for other in [&b""[..], b"x", b"\n\n\n:\n", &[b'\n'; 70]] {
        let _ = (head.target(other), head.field(other, Field::Host), head.fields(other).count());
        let _ = (head.all(other, Field::Cookie).count(), head.authority(other), head.method_bytes(other));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_head(&bytes, &LIMITS);
        let _ = find_head_end(&bytes, bytes.len() / 2);
    }

    #[test]
    fn a_head_with_any_byte_changed_parses_or_is_rejected(
        which in 0..GOOD.len(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = GOOD[which].as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Some(head)) = parse_head(&bytes, &LIMITS) {
            prop_assert_eq!(find_head_end(&bytes, 0), Some(head.len()));
            let block = &bytes[..head.len()];
            let feeds = block.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(block.windows(2).filter(|pair| pair == b"\r\n").count(), feeds);
            prop_assert!(head.fields(block).count() + 2 <= feeds);
        }
    }
}
