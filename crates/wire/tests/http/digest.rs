//! Digest fields.

use plimsoll_wire::http::digest::{
    BadDigest, Digests, content_md5, parse_content_md5, parse_digests, sha256_digest, wants_sha256,
};
use proptest::prelude::*;

/// The SHA-256 of `{"hello": "world"}` and a line feed, from RFC 9530.
const SHA256: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";

fn parse(line: &str) -> Result<Digests, BadDigest> {
    parse_digests([line.as_bytes()])
}

#[test]
fn an_md5_is_base64_of_16_bytes() {
    assert_eq!(parse_content_md5(b"Q2hlY2sgSW50ZWdyaXR5IQ=="), Ok(*b"Check Integrity!"));
    assert_eq!(content_md5(b"Check Integrity!"), b"Q2hlY2sgSW50ZWdyaXR5IQ==");
    for bad in ["", "Q2hlY2sgSW50ZWdyaXR5", "Q2hlY2sgSW50ZWdyaXR5ISE=", "not base64", "436865636b"] {
        assert_eq!(parse_content_md5(bad.as_bytes()), Err(BadDigest), "{bad}");
    }
}

#[test]
fn known_digest_algorithms_parse_and_unknown_ones_are_skipped() {
    let sha256 = parse(SHA256).unwrap().sha256.unwrap();
    assert_eq!(sha256[..4], [0x44, 0xaf, 0xf4, 0xab]);
    assert_eq!(sha256_digest(&sha256), SHA256.as_bytes());
    let md5 = "md5=:Q2hlY2sgSW50ZWdyaXR5IQ==:";
    for line in [
        format!("{SHA256}, {md5}"),
        format!("{md5},{SHA256}"),
        format!("unknown=:AA==:, {SHA256};a=1;b=\"c,d\" , {md5}"),
        format!("crc32c=5, flag, s=\"a,b;c\", {md5}, {SHA256}"),
    ] {
        let digests = parse(&line).unwrap();
        assert_eq!((digests.sha256, digests.md5), (Some(sha256), Some(*b"Check Integrity!")), "{line}");
        assert_eq!(digests.sha512, None);
    }
    let lines = parse_digests([SHA256.as_bytes(), md5.as_bytes()]).unwrap();
    assert!(lines.sha256.is_some() && lines.md5.is_some(), "on two lines");
    let long = format!("sha-512=:{}==:", "A".repeat(86));
    assert_eq!(parse(&long).unwrap().sha512, Some([0; 64]));
    let twice = parse(&format!("sha-256=:{}=:, {SHA256}", "A".repeat(43)));
    assert_eq!(twice.unwrap().sha256, Some(sha256), "the last one counts");
    assert_eq!(parse(""), Ok(Digests::default()));
    assert_eq!(parse("unixsum=:AA==:"), Ok(Digests::default()));
}

#[test]
fn a_malformed_digest_is_an_error_and_not_absent() {
    for bad in [
        "sha-256",
        "sha-256=",
        "sha-256=::",
        "sha-256=:AAAA:",
        "sha-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=",
        "sha-256=\"RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=\"",
        "sha-256 =:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
        "sha-256=:RK_0qy18MlBSVnWgjwz6lZEWjP_lF5HF9bvEF8FabDg=:",
        "SHA-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
        "md5=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
        ",",
        "=:AA==:",
        "1a=:AA==:",
    ] {
        assert_eq!(parse(bad), Err(BadDigest), "{bad}");
    }
    assert_eq!(parse(&format!("{SHA256},")), Err(BadDigest), "a comma at the end");
}

#[test]
fn sha_256_is_wanted_unless_excluded() {
    for (line, wanted) in [
        ("sha-256=1", true),
        ("sha-256=10", true),
        ("sha-512=3, sha-256=10, unixsum=0", true),
        ("sha-256=3;a", true),
        ("sha-256=0", false),
        ("sha-256=5, sha-256=0", false),
        ("sha-256=0, sha-256=5", true),
        ("sha-512=3", false),
        ("sha-256=11", false),
        ("sha-256=-1", false),
        ("sha-256=1.5", false),
        ("sha-256", false),
        ("sha-256=1,", false),
        ("", false),
    ] {
        assert_eq!(wants_sha256([line.as_bytes()]), wanted, "{line}");
    }
    assert!(!wants_sha256([]));
}

proptest! {
    #[test]
    fn a_written_digest_parses_to_the_same(digest in any::<[u8; 32]>()) {
        let value = sha256_digest(&digest);
        prop_assert_eq!(parse_digests([&value[..]]).unwrap().sha256, Some(digest));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (parse_digests([&bytes[..]]), parse_content_md5(&bytes), wants_sha256([&bytes[..]]));
    }
}
