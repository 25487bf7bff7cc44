//! All known shapes of request smuggling, by which a proxy and a server read different requests. Each must
//! be refused for its own reason.

use plimsoll_wire::http::head::{HeadLimits, Refusal, parse_head};
use plimsoll_wire::http::target::BadTarget;

/// Checks the refusal of a whole head, and that none of its prefixes is accepted.
fn refused(block: &[u8], refusal: Refusal, status: u16) {
    let limits = HeadLimits::default();
    let shown = String::from_utf8_lossy(block);
    assert_eq!(parse_head(block, &limits), Err(refusal), "{shown:?}");
    assert_eq!(refusal.status().code(), status, "{shown:?}");
    assert!(refusal.detail().ends_with('.'), "a sentence: {:?}", refusal.detail());
    for cut in 0..block.len() {
        let early = parse_head(&block[..cut], &limits);
        assert!(!matches!(early, Ok(Some(_))), "{shown:?} cut at {cut}");
    }
}

/// Returns a PUT with these field lines after its Host.
fn with_fields(fields: &str) -> Vec<u8> {
    format!("PUT /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

fn fields_refused(fields: &str, refusal: Refusal) {
    refused(&with_fields(fields), refusal, 400);
}

#[test]
fn content_length_with_transfer_encoding_is_rejected() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "content-length:5\r\ntransfer-encoding:identity\r\n",
    ] {
        fields_refused(fields, Refusal::LengthAndCoding);
    }
}

#[test]
fn several_content_lengths_are_rejected_even_if_equal() {
    fields_refused("Content-Length: 5\r\nContent-Length: 5\r\n", Refusal::LengthRepeated);
    fields_refused("Content-Length: 5\r\nX: y\r\ncontent-length: 6\r\n", Refusal::LengthRepeated);
}

#[test]
fn a_content_length_that_is_not_one_decimal_is_rejected() {
    for length in [
        "+5",
        "-1",
        "5,5",
        "5, 5",
        "5 5",
        "0x5",
        "5.0",
        "1e3",
        "",
        "five",
        "\"5\"",
        "5;",
        "18446744073709551616",
        "99999999999999999999999999999999",
    ] {
        fields_refused(&format!("Content-Length: {length}\r\n"), Refusal::LengthBad);
    }
}

#[test]
fn a_transfer_coding_other_than_chunked_is_rejected() {
    for coding in [
        "xchunked",
        "chunkedx",
        "chunked, chunked",
        "gzip, chunked, chunked",
        "chunked, gzip",
        "chunked,",
        ",chunked",
        "gzip,,chunked",
        "\"chunked\"",
        "chunked;q=1",
        "chunked ;x",
        "chun ked",
        "identity",
        "gzip",
        "",
    ] {
        fields_refused(&format!("Transfer-Encoding: {coding}\r\n"), Refusal::CodingBad);
    }
}

#[test]
fn a_chunked_body_with_a_further_coding_gets_501() {
    for coding in ["gzip, chunked", "foo,chunked", "identity , Chunked"] {
        refused(&with_fields(&format!("Transfer-Encoding: {coding}\r\n")), Refusal::CodingUnknown, 501);
    }
}

#[test]
fn several_transfer_encodings_are_rejected() {
    fields_refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Refusal::CodingRepeated);
    fields_refused("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Refusal::CodingRepeated);
}

#[test]
fn a_transfer_encoding_in_http_1_0_is_rejected() {
    for fields in ["", "Content-Length: 5\r\n"] {
        let block = format!("PUT /x HTTP/1.0\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
        refused(block.as_bytes(), Refusal::CodingInHttp10, 400);
    }
}

#[test]
fn folded_field_lines_are_rejected() {
    fields_refused("X: a\r\n b\r\n", Refusal::Folded);
    fields_refused("X: a\r\n\tb\r\n", Refusal::Folded);
    fields_refused("X:\r\n b\r\n", Refusal::Folded);
    fields_refused(" Content-Length: 5\r\n", Refusal::Folded);
    refused(b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", Refusal::Folded, 400);
    refused(b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", Refusal::Folded, 400);
}

#[test]
fn a_bare_line_feed_is_rejected() {
    for block in [
        &b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nX: y\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: y \nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nX:\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\n\n",
        b"GET / HTTP/1.0\n\r\n",
        b"GET / HTTP/1.0\r\n\n",
        b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        refused(block, Refusal::LineEnd, 400);
    }
}

#[test]
fn a_bare_carriage_return_is_rejected() {
    for block in [
        &b"GET / HTTP/1.1\rHost: a\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\r\n",
        b"GET / HTTP/1.1\r\nX:\rHost: a\r\n\r\n",
        b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        refused(block, Refusal::LineEnd, 400);
    }
}

#[test]
fn control_bytes_in_a_value_are_rejected() {
    for byte in (0..=0x1f).chain([0x7f]).filter(|byte| !b"\t\r\n".contains(byte)) {
        for place in ["Cookie: a@b\r\n", "Cookie: @\r\n", "Cookie:@b\r\n", "Transfer-Encoding: @chunked\r\n"]
        {
            let fields = place.replace('@', &char::from(byte).to_string());
            fields_refused(&fields, Refusal::FieldValue);
        }
    }
}

#[test]
fn field_names_that_are_not_tokens_are_rejected() {
    for fields in [
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        ": 5\r\n",
        "Content Length: 5\r\n",
        "Content-Length\0: 5\r\n",
        "X(y): 5\r\n",
        "no colon\r\n",
        "nocolon\r\n",
        "X\u{e9}: 5\r\n",
    ] {
        fields_refused(fields, Refusal::FieldName);
    }
}

#[test]
fn two_hosts_or_none_are_rejected() {
    refused(b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HostRepeated, 400);
    refused(b"GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", Refusal::HostRepeated, 400);
    refused(b"GET / HTTP/1.1\r\n\r\n", Refusal::HostMissing, 400);
    refused(b"GET http://a/ HTTP/1.1\r\n\r\n", Refusal::HostMissing, 400);
}

#[test]
fn malformed_hosts_are_rejected() {
    for host in [
        "", "a b", "a, b", "a/b", "u@a", "a:port", "a:99999", "a:80:80", "[::1", "::1", ":80", "\u{e9}",
        "a?b", "a#b", "a\\b", "http://a",
    ] {
        let block = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        refused(block.as_bytes(), Refusal::HostBad, 400);
    }
    refused(b"GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n", Refusal::HostBad, 400);
}

#[test]
fn malformed_request_lines_are_rejected() {
    for line in [
        "G(T / HTTP/1.1",
        "GE\u{e9} / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET  / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET /",
        "GET",
        "\0GET / HTTP/1.1",
        "/ HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "GET /\x7f HTTP/1.1",
        "GET /\t HTTP/1.1",
        "\u{16}\u{3}\u{1}",
    ] {
        let block = format!("{line}\r\nHost: a\r\n\r\n");
        let refusal = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap_err();
        assert_eq!(refusal.status().code(), 400, "{line:?} {refusal:?}");
        assert!(matches!(refusal, Refusal::RequestLine | Refusal::Version), "{line:?} {refusal:?}");
    }
}

#[test]
fn unsupported_versions_are_rejected() {
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "HTTP/3.0", "HTTP/9.9"] {
        let block = format!("GET / {version}\r\nHost: a\r\n\r\n");
        refused(block.as_bytes(), Refusal::VersionUnknown, 505);
    }
    refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::VersionUnknown, 505);
    for version in [
        "http/1.1",
        "HTTP/1,1",
        "HTTP/11",
        "HTTP/1",
        "HTTP 1.1",
        "HTTP/x.y",
        "FTP/1.1",
        "HTTP/",
        "a HTTP/1.1",
    ] {
        let block = format!("GET / {version}\r\nHost: a\r\n\r\n");
        refused(block.as_bytes(), Refusal::Version, 400);
    }
    for version in ["HTTP/1.1 ", "HTTP/1.10", "HTTP/1.1x"] {
        let block = format!("GET / {version}\r\nHost: a\r\n\r\n");
        refused(block.as_bytes(), Refusal::LineEnd, 400);
    }
}

#[test]
fn a_version_rejected_early_is_rejected_alike() {
    let limits = HeadLimits::default();
    for (text, refusal) in
        [("GET / HTTP/2.0\r\n", Refusal::VersionUnknown), ("GET / http/1.1\r\n", Refusal::Version)]
    {
        for cut in 0..text.len() {
            let early = parse_head(&text.as_bytes()[..cut], &limits);
            assert!(early == Ok(None) || early == Err(refusal), "{text:?} at {cut}: {early:?}");
        }
    }
}

#[test]
fn more_than_one_leading_empty_line_is_rejected() {
    refused(b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::EmptyLines, 400);
    refused(b"\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::EmptyLines, 400);
}

#[test]
fn a_target_form_that_does_not_fit_the_method_is_rejected() {
    for line in [
        "GET *",
        "GET x",
        "GET a:80",
        "GET //",
        "GET http:///x",
        "GET ftp://a/",
        "GET http://u@a/",
        "OPTIONS **",
        "CONNECT /",
        "CONNECT http://a/",
        "GET http://a b/",
        "GET ?x",
    ] {
        let block = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        let parsed = parse_head(block.as_bytes(), &HeadLimits::default());
        match line {
            "GET //" => assert!(parsed.is_ok(), "a path, for the service to redirect"),
            "GET http://a b/" => assert_eq!(parsed, Err(Refusal::Version)),
            _ => assert_eq!(parsed, Err(Refusal::Target(BadTarget::Form)), "{line}"),
        }
    }
}
