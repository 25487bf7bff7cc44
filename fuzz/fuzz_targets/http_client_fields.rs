//! Fields from a client of the file server: credentials, cookies, digests, and those of tus and WebDAV.
//!
//! Not here: the fields of simple GET requests (`http_fields`). Invariants: each function is total, and its
//! result must satisfy the invariants of its module.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::credentials::{Credentials, cookie, parse_authorization};
use plimsoll_wire::http::dav::{Depth, parse_destination, parse_overwrite};
use plimsoll_wire::http::digest::{
    content_md5, parse_content_md5, parse_digests, sha256_digest, wants_sha256,
};
use plimsoll_wire::http::tus::{parse_checksum, parse_length, parse_metadata, write_metadata};
use plimsoll_wire::limits::AUTHORIZATION_BYTES_MAX;
use plimsoll_wire::limits::UPLOAD_METADATA_KEYS_MAX;

// The first byte selects the target, so that each keeps its own corpus; the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    match selector % 5 {
        0 => credentials(bytes),
        1 => cookies(bytes),
        2 => digests(bytes),
        3 => uploads(bytes),
        _ => destinations(bytes),
    }
});

fn credentials(bytes: &[u8]) {
    let parsed = parse_authorization(bytes);
    if bytes.len() > AUTHORIZATION_BYTES_MAX {
        assert!(parsed.is_err());
    }
    match parsed {
        Ok(Credentials::Basic { name, password }) => {
            assert!(!name.contains(':') && !name.bytes().any(|byte| byte.is_ascii_control()));
            assert!(!password.iter().any(u8::is_ascii_control));
            assert!(bytes.get(..5).unwrap().eq_ignore_ascii_case(b"basic"));
        }
        Ok(Credentials::Bearer(token)) => {
            assert!(!token.is_empty() && token.iter().all(u8::is_ascii_graphic));
            assert!(bytes.ends_with(token));
        }
        Err(bad) => assert!(bad.status().code() == 401 && !bad.detail().is_empty()),
    }
}

fn cookies(bytes: &[u8]) {
    let lines = || bytes.split(|&byte| byte == b'\n');
    let Some(value) = cookie(lines(), "a") else { return };
    assert!(value.iter().all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(byte)));
    // A second cookie of the same name makes it ambiguous.
    assert_eq!(cookie(lines().chain([&b"a=x"[..]]), "a"), None);
}

fn digests(bytes: &[u8]) {
    if let Ok(md5) = parse_content_md5(bytes) {
        assert_eq!(parse_content_md5(&content_md5(&md5)), Ok(md5));
    }
    let lines = || bytes.split(|&byte| byte == b'\n');
    if let Ok(digests) = parse_digests(lines())
        && let Some(sha256) = digests.sha256
    {
        let written = sha256_digest(&sha256);
        assert_eq!(parse_digests([&written[..]]).unwrap().sha256, Some(sha256));
        // A later digest replaces an earlier one.
        let replaced = sha256_digest(&[7; 32]);
        assert_eq!(parse_digests(lines().chain([&replaced[..]])).unwrap().sha256, Some([7; 32]));
    }
    if wants_sha256(lines()) {
        assert!(!wants_sha256(lines().chain([&b"sha-256=0"[..]])));
    }
}

fn uploads(bytes: &[u8]) {
    let _ = parse_checksum(bytes);
    if let Ok(length) = parse_length(bytes) {
        assert!(std::str::from_utf8(bytes).unwrap().parse() == Ok(length));
    }
    if let Ok(metadata) = parse_metadata(bytes) {
        assert!(bytes.iter().filter(|&&byte| byte == b',').count() < UPLOAD_METADATA_KEYS_MAX);
        assert_eq!(metadata.as_sent(), bytes);
        let mut more = bytes.to_vec();
        write_metadata("fuzzed", b"value", &mut more);
        match parse_metadata(&more) {
            Ok(more) => assert_eq!(more.get("fuzzed").as_deref(), Some(&b"value"[..])),
            Err(_) => assert!(metadata.get("fuzzed").is_some() || bytes.contains(&b',')),
        }
    }
}

fn destinations(bytes: &[u8]) {
    let _ = (Depth::parse(bytes), parse_overwrite(bytes));
    if let Ok(destination) = parse_destination(bytes) {
        assert!(destination.path.starts_with(b"/") && !destination.path.contains(&b'?'));
        assert!(destination.is_on(destination.authority));
        assert_eq!(
            destination.is_on(Some(b"another.example")),
            destination
                .authority
                .is_none_or(|authority| { authority.to_ascii_lowercase().starts_with(b"another.example") })
        );
    }
}
