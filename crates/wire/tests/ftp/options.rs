//! Arguments that are neither paths nor addresses.

use std::time::Duration;

use plimsoll_wire::ftp::facts::Facts;
use plimsoll_wire::ftp::hash::Algorithm;
use plimsoll_wire::ftp::options::{
    Announced, BadArgument, Opts, Type, parse_allo, parse_mfmt, parse_mode, parse_opts, parse_rest,
    parse_structure, parse_type,
};
use proptest::prelude::*;

use BadArgument::{Form, Unsupported};

#[test]
fn only_ascii_and_image_types_are_accepted() {
    for (argument, expected) in [
        ("A", Ok(Type::Ascii)),
        ("a", Ok(Type::Ascii)),
        ("A N", Ok(Type::Ascii)),
        ("a n", Ok(Type::Ascii)),
        ("I", Ok(Type::Image)),
        ("i", Ok(Type::Image)),
        ("L 8", Ok(Type::Image)),
        ("l 8", Ok(Type::Image)),
        ("A T", Err(Unsupported)),
        ("A C", Err(Unsupported)),
        ("E", Err(Unsupported)),
        ("E N", Err(Unsupported)),
        ("L 7", Err(Unsupported)),
        ("L 36", Err(Unsupported)),
        ("", Err(Form)),
        ("L", Err(Form)),
        ("L x", Err(Form)),
        ("AN", Err(Form)),
        ("A ", Err(Form)),
        ("A  N", Err(Form)),
        ("I N", Err(Form)),
        ("X", Err(Form)),
    ] {
        assert_eq!(parse_type(argument.as_bytes()), expected, "{argument}");
    }
    assert_eq!((Form.code(), Unsupported.code()), (501, 504));
}

#[test]
fn only_file_structure_and_stream_mode_are_accepted() {
    for (argument, expected) in [
        ("F", Ok(())),
        ("f", Ok(())),
        ("R", Err(Unsupported)),
        ("P", Err(Unsupported)),
        ("", Err(Form)),
        ("FF", Err(Form)),
        ("S", Err(Form)),
    ] {
        assert_eq!(parse_structure(argument.as_bytes()), expected, "{argument}");
    }
    for (argument, expected) in [
        ("S", Ok(())),
        ("s", Ok(())),
        ("B", Err(Unsupported)),
        ("c", Err(Unsupported)),
        ("Z", Err(Unsupported)),
        ("", Err(Form)),
        ("F", Err(Form)),
    ] {
        assert_eq!(parse_mode(argument.as_bytes()), expected, "{argument}");
    }
}

#[test]
fn offsets_and_sizes_are_decimal_numbers() {
    assert_eq!((parse_rest(b"0"), parse_rest(b"18446744073709551615")), (Ok(0), Ok(u64::MAX)));
    for bad in ["", "-1", "+1", "1 ", " 1", "0x10", "18446744073709551616", "1,2"] {
        assert_eq!(parse_rest(bad.as_bytes()), Err(Form), "{bad}");
    }
    for good in ["1000", "1000 R 80", "1000 r 0"] {
        assert_eq!(parse_allo(good.as_bytes()), Ok(1000), "{good}");
    }
    for bad in ["", "R 80", "1000 R", "1000 R ", "1000 R x", "1000 80", "1000  R 80", "1000 R 80 "] {
        assert_eq!(parse_allo(bad.as_bytes()), Err(Form), "{bad}");
    }
}

#[test]
fn mfmt_has_a_time_and_a_path() {
    let time = Duration::from_secs(1_767_225_600);
    assert_eq!(parse_mfmt(b"20260101000000 a b "), Ok((time, &b"a b "[..])));
    assert_eq!(parse_mfmt(b"20260101000000.5  a"), Ok((time + Duration::from_millis(500), &b" a"[..])));
    for bad in
        ["", "20260101000000", "20260101000000 ", " 20260101000000 a", "2026 a", "20260230000000 a", "a"]
    {
        assert_eq!(parse_mfmt(bad.as_bytes()), Err(Form), "{bad}");
    }
}

#[test]
fn opts_accepts_utf8_mlst_hash_and_stor() {
    for (argument, expected) in [
        ("UTF8 ON", Opts::Utf8(true)),
        ("utf8 on", Opts::Utf8(true)),
        ("UTF8", Opts::Utf8(true)),
        ("UTF-8 ON", Opts::Utf8(true)),
        ("UTF8 OFF", Opts::Utf8(false)),
        ("MLST", Opts::Mlst(Facts::parse(b""))),
        ("mlst type;size;", Opts::Mlst(Facts::parse(b"type;size;"))),
        ("HASH", Opts::Hash(None)),
        ("HASH sha-1", Opts::Hash(Some(Algorithm::Sha1))),
        ("STOR SIZE 12", Opts::Stor(Announced::Size(12))),
        (
            "stor md5 D41D8CD98F00B204E9800998ECF8427e",
            Opts::Stor(Announced::Digest(
                Algorithm::Md5,
                b"\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e".to_vec(),
            )),
        ),
    ] {
        assert_eq!(parse_opts(argument.as_bytes()), Ok(expected), "{argument}");
    }
    for bad in ["", "UTF8 MAYBE", "HASH CRC-37", "MLSD type;", " UTF8 ON", "RETR"] {
        assert_eq!(parse_opts(bad.as_bytes()), Err(Form), "{bad}");
    }
    for bad in ["STOR", "STOR SIZE", "STOR SIZE -1", "STOR MD5 d41d8cd9", "STOR MD5", "STOR CRC 00"] {
        assert_eq!(parse_opts(bad.as_bytes()), Err(Form), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in any::<Vec<u8>>()) {
        let _ = (parse_type(&bytes), parse_structure(&bytes), parse_mode(&bytes), parse_rest(&bytes));
        let _ = (parse_allo(&bytes), parse_mfmt(&bytes), parse_opts(&bytes));
    }
}
