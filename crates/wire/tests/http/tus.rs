//! The fields of tus.

use plimsoll_wire::http::tus::{
    BadTus, Checksum, Concat, VERSION, check_version, parse_checksum, parse_concat, parse_length,
    parse_metadata, parse_offset, write_metadata,
};
use plimsoll_wire::limits::{UPLOAD_METADATA_KEYS_MAX, UPLOAD_PARTS_MAX};
use proptest::prelude::*;

#[test]
fn only_tus_version_1_0_0_is_accepted() {
    assert_eq!(check_version(Some(VERSION.as_bytes())), Ok(()));
    for other in [None, Some(&b"1.0"[..]), Some(b"0.2.2"), Some(b"1.0.0, 2.0.0"), Some(b"")] {
        assert_eq!(check_version(other), Err(BadTus::Version));
    }
    assert_eq!(BadTus::Version.status().code(), 412);
}

#[test]
fn lengths_and_offsets_are_decimal_numbers() {
    assert_eq!((parse_length(b"0"), parse_offset(b"100")), (Ok(0), Ok(100)));
    assert_eq!(parse_length(b"18446744073709551615"), Ok(u64::MAX));
    for bad in ["", "-1", "+1", "1.0", "0x10", "1 ", "1,1", "18446744073709551616"] {
        assert_eq!(parse_length(bad.as_bytes()), Err(BadTus::Length), "{bad}");
        assert_eq!(parse_offset(bad.as_bytes()), Err(BadTus::Offset), "{bad}");
        assert_eq!(BadTus::Offset.status().code(), 400);
    }
}

#[test]
fn upload_metadata_has_pairs_of_a_key_and_base64() {
    let value = b"filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential,empty , path YS9i";
    let metadata = parse_metadata(value).unwrap();
    assert_eq!(metadata.get("filename").unwrap(), b"world_domination_plan.pdf");
    assert_eq!(metadata.get("is_confidential").unwrap(), b"");
    assert_eq!(metadata.get("empty").unwrap(), b"");
    assert_eq!(metadata.get("path").unwrap(), b"a/b");
    assert_eq!((metadata.get("Path"), metadata.get("file"), metadata.get("")), (None, None, None));
    assert_eq!(metadata.as_sent(), value);
    assert_eq!(parse_metadata(b"").unwrap().get("path"), None);
    for bad in ["a b c", "a not-base64", "a  YQ==", ",", "a YQ==,", " ,a", "a YQ==,a Yg==", "\u{e9} YQ=="] {
        assert_eq!(parse_metadata(bad.as_bytes()), Err(BadTus::Metadata), "{bad}");
    }
}

#[test]
fn upload_metadata_above_the_key_limit_is_rejected() {
    let of = |count: usize| (0..count).map(|key| format!("k{key} YQ==")).collect::<Vec<_>>().join(",");
    assert!(parse_metadata(of(UPLOAD_METADATA_KEYS_MAX).as_bytes()).is_ok());
    assert_eq!(parse_metadata(of(UPLOAD_METADATA_KEYS_MAX + 1).as_bytes()), Err(BadTus::MetadataKeys));
}

#[test]
fn upload_concat_is_partial_or_lists_its_parts() {
    assert_eq!(parse_concat(b"partial"), Ok(Concat::Partial));
    let parts = Ok(Concat::Final(vec![b"a", b"b"]));
    for value in
        ["final;/uploads/a /uploads/b", "final; http://host/uploads/a  https://host/x/b", "final;a b"]
    {
        assert_eq!(parse_concat(value.as_bytes()), parts, "{value}");
    }
    for bad in
        ["", "Partial", "partial ", "final", "final;", "final; ", "final;/uploads/", "final,/uploads/a"]
    {
        assert_eq!(parse_concat(bad.as_bytes()), Err(BadTus::Concat), "{bad}");
    }
    let of = |count: usize| format!("final;{}", "/uploads/a ".repeat(count));
    assert!(parse_concat(of(UPLOAD_PARTS_MAX).as_bytes()).is_ok());
    assert_eq!(parse_concat(of(UPLOAD_PARTS_MAX + 1).as_bytes()), Err(BadTus::Parts));
}

#[test]
fn a_checksum_has_an_algorithm_and_base64_of_matching_length() {
    assert_eq!(
        parse_checksum(b"sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=").map(|sum| match sum {
            Checksum::Sha1(sum) => sum[0],
            _ => 0,
        }),
        Ok(0x2a)
    );
    assert_eq!(parse_checksum(b"md5 Q2hlY2sgSW50ZWdyaXR5IQ=="), Ok(Checksum::Md5(*b"Check Integrity!")));
    let long = format!("sha256 {}=", "A".repeat(43));
    assert_eq!(parse_checksum(long.as_bytes()), Ok(Checksum::Sha256([0; 32])));
    for (bad, why) in [
        ("", BadTus::Checksum),
        ("sha1", BadTus::Checksum),
        ("sha1 ", BadTus::Checksum),
        ("sha1 AAAA", BadTus::Checksum),
        ("md5 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", BadTus::Checksum),
        ("sha1  Kq5sNclPz7QV2+lfQIuc6R7oRu0=", BadTus::Checksum),
        ("SHA1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", BadTus::ChecksumAlgorithm),
        ("crc32 AAAA", BadTus::ChecksumAlgorithm),
    ] {
        assert_eq!(parse_checksum(bad.as_bytes()), Err(why), "{bad}");
    }
}

proptest! {
    #[test]
    fn written_metadata_parses_to_the_same(one in any::<Vec<u8>>(), two in any::<Vec<u8>>()) {
        let mut value = Vec::new();
        write_metadata("one", &one, &mut value);
        write_metadata("two", &two, &mut value);
        let metadata = parse_metadata(&value).unwrap();
        prop_assert_eq!((metadata.get("one"), metadata.get("two")), (Some(one), Some(two)));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (parse_metadata(&bytes), parse_checksum(&bytes), parse_length(&bytes));
        let _ = parse_concat(&bytes);
    }
}
