//! HASH: algorithm names and the reply.

use plimsoll_wire::ftp::hash::Algorithm;

#[test]
fn digest_names_parse_in_any_case() {
    for algorithm in Algorithm::ALL {
        let name = algorithm.name();
        assert_eq!(Algorithm::parse(name.as_bytes()), Some(algorithm));
        assert_eq!(Algorithm::parse(name.to_lowercase().as_bytes()), Some(algorithm));
    }
    for other in ["", "CRC-37", "SHA", "SHA256", "SHA-256 ", "MD5*"] {
        assert_eq!(Algorithm::parse(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn feat_marks_the_selected_digest() {
    assert_eq!(Algorithm::default().feature(), "HASH SHA-256*;SHA-1;MD5;");
    assert_eq!(Algorithm::Md5.feature(), "HASH SHA-256;SHA-1;MD5*;");
}

#[test]
fn a_hash_reply_has_the_range_the_digest_and_the_path() {
    let text = Algorithm::Sha1.reply_text(256, &[0x80, 0xbc, 0x05], b"a b\xff");
    assert_eq!(text, b"SHA-1 0-255 80bc05 a b\xff");
    assert_eq!(Algorithm::Md5.reply_text(0, &[0xd4], b"a"), b"MD5 0-0 d4 a");
}
