//! Request targets and the paths in them.

use plimsoll_wire::http::target::{
    BadTarget, Target, decode_path, encode_path, has_adjacent_slashes, parse_target,
};
use proptest::prelude::*;

fn decode(path: &str) -> Result<String, BadTarget> {
    let mut out = b"what was there before".to_vec();
    decode_path(path.as_bytes(), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn a_target_is_split_into_path_and_query() {
    let target = |path: &'static str, query: Option<&'static str>, authority: Option<&'static str>| {
        let bytes = str::as_bytes;
        Ok(Target { path: bytes(path), query: query.map(bytes), authority: authority.map(bytes) })
    };
    assert_eq!(parse_target(b"/"), target("/", None, None));
    assert_eq!(parse_target(b"/a/b?"), target("/a/b", Some(""), None));
    assert_eq!(parse_target(b"/a?b?c"), target("/a", Some("b?c"), None));
    assert_eq!(parse_target(b"*"), target("*", None, None));
    assert_eq!(parse_target(b"http://h:8/a?q"), target("/a", Some("q"), Some("h:8")));
    assert_eq!(parse_target(b"HTTPS://h"), target("/", None, Some("h")));
    assert_eq!(parse_target(b"http://h?q"), target("/", Some("q"), Some("h")));
}

#[test]
fn a_target_of_an_unknown_form_is_rejected() {
    for target in
        ["", "a", "**", "h:443", "ftp://h/", "http://", "http:///a", "http:/a", "http://u:p@h/", "?q"]
    {
        assert_eq!(parse_target(target.as_bytes()), Err(BadTarget::Form), "{target}");
    }
    for target in ["/a b", "/a#b", "/#", "/a\0", "/\r\n", "/\x7f", "http://h/#a"] {
        assert_eq!(parse_target(target.as_bytes()), Err(BadTarget::Byte), "{target}");
    }
}

#[test]
fn percent_encoding_is_decoded_once() {
    for (path, decoded) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/", "/a/"),
        ("/a%20b", "/a b"),
        ("/%41%7a", "/Az"),
        ("/%C3%a9", "/\u{e9}"),
        ("/\u{e9}", "/\u{e9}"),
        ("/%2541", "/%41"),
        ("/%23%3F%25", "/#?%"),
        ("/a\\..\\b", "/a\\..\\b"),
        ("/%5C", "/\\"),
        ("/...", "/..."),
        ("/.hidden", "/.hidden"),
        ("/a..b/..c/d..", "/a..b/..c/d.."),
        ("/a+b;c=d&e", "/a+b;c=d&e"),
        ("//", "/"),
        ("//a", "/a"),
        ("/a//b", "/a/b"),
        ("/a//", "/a/"),
        ("///a////%2e%2e.//", "/a/.../"),
    ] {
        assert_eq!(has_adjacent_slashes(path.as_bytes()), path.contains("//"), "{path}");
        assert_eq!(decode(path).as_deref(), Ok(decoded), "{path}");
    }
}

#[test]
fn an_ambiguous_path_is_rejected() {
    for (path, bad) in [
        ("", BadTarget::NotRooted),
        ("a", BadTarget::NotRooted),
        ("*", BadTarget::NotRooted),
        ("%2Fa", BadTarget::NotRooted),
        ("/%", BadTarget::Escape),
        ("/%4", BadTarget::Escape),
        ("/%4g", BadTarget::Escape),
        ("/%%41", BadTarget::Escape),
        ("/%u0041", BadTarget::Escape),
        ("/%+1", BadTarget::Escape),
        ("/a%00", BadTarget::EncodedNul),
        ("/a%2fb", BadTarget::EncodedSlash),
        ("/a%2F", BadTarget::EncodedSlash),
        ("/.", BadTarget::DotSegment),
        ("/..", BadTarget::DotSegment),
        ("/a/../b", BadTarget::DotSegment),
        ("/a/./b", BadTarget::DotSegment),
        ("/a/..", BadTarget::DotSegment),
        ("/a/../", BadTarget::DotSegment),
        ("/%2e", BadTarget::DotSegment),
        ("/%2E%2e/x", BadTarget::DotSegment),
        ("/.%2e/x", BadTarget::DotSegment),
        ("//..", BadTarget::DotSegment),
        ("/a//../b", BadTarget::DotSegment),
        ("/%2F/a", BadTarget::EncodedSlash),
        ("/a b", BadTarget::Byte),
        ("/a#b", BadTarget::Byte),
        ("/a?b", BadTarget::Byte),
        ("/a\nb", BadTarget::Byte),
        ("/a\0", BadTarget::Byte),
    ] {
        assert_eq!(decode(path), Err(bad), "{path:?}");
        assert_eq!(bad.status().code(), 400);
    }
}

#[test]
fn a_rejected_path_leaves_the_output_empty() {
    let mut out = b"old".to_vec();
    assert!(decode_path(b"/secret/..", &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn a_path_is_percent_encoded_for_links() {
    let mut out = b"<a href=".to_vec();
    encode_path("/a b/\u{e9}\"'<>&%?#\r\n~-._".as_bytes(), &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "<a href=/a%20b/%C3%A9%22%27%3C%3E%26%25%3F%23%0D%0A~-._");
}

proptest! {
    #[test]
    fn an_encoded_path_decodes_to_itself(
        segments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..6),
    ) {
        let keep = |byte: &u8| *byte != b'/' && *byte >= b' ' && *byte != 0x7f;
        let mut path = Vec::new();
        for segment in segments {
            let name: Vec<u8> = segment.into_iter().filter(keep).collect();
            path.push(b'/');
            path.push(b'n');
            path.extend(name);
        }
        path.push(b'/');
        let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
        encode_path(&path, &mut encoded);
        let target = parse_target(&encoded).unwrap();
        prop_assert_eq!(target.path, &encoded[..]);
        decode_path(target.path, &mut decoded).unwrap();
        prop_assert_eq!(decoded, path);
    }

    #[test]
    fn no_decoded_path_has_dot_dot_segments(path in "/([./%]|2[eEfF]|[a-z]|00){0,20}") {
        let mut out = Vec::new();
        if decode_path(path.as_bytes(), &mut out).is_ok() {
            prop_assert!(out.starts_with(b"/"));
            prop_assert!(!out.contains(&0));
            prop_assert!(!out.windows(2).any(|pair| pair == b"//"));
            prop_assert!(out.split(|&byte| byte == b'/').all(|segment| segment != b"." && segment != b".."));
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = parse_target(&bytes);
        let _ = decode_path(&bytes, &mut Vec::new());
    }
}
