//! Lines of the control connection: independent of how the input is split, with Telnet's bytes removed.

use plimsoll_wire::ftp::line::{Lines, TooLong};
use proptest::prelude::*;

const LIMIT: usize = 16;

type LineResult = Result<Vec<u8>, TooLong>;

/// Returns the lines of `bytes`, fed in pieces that end at the given positions, and whether nothing is left
/// over.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<LineResult>, bool) {
    let mut lines = Lines::default();
    let (mut found, mut at) = (Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            let (consumed, line) = lines.take(&bytes[at..cut], LIMIT);
            assert!(consumed > 0 && (line.is_some() || at + consumed == cut));
            at += consumed;
            found.extend(line);
        }
    }
    (found, lines.is_empty())
}

fn whole(bytes: &[u8]) -> Vec<LineResult> {
    feed(bytes, [bytes.len()]).0
}

/// Input bytes, and the lines in them.
const GOOD: &[(&[u8], &[&[u8]])] = &[
    (b"NOOP\r\n", &[b"NOOP"]),
    (b"NOOP\n", &[b"NOOP"]),
    (b"\r\n\n", &[b"", b""]),
    (b"USER a\r\nPASS b\nPWD\r\n", &[b"USER a", b"PASS b", b"PWD"]),
    (b"CWD  a b \r\n", &[b"CWD  a b "]),
    (b"CWD a\r\0b\r\n", &[b"CWD a\rb"]),
    (b"CWD a\rb\r\n", &[b"CWD a\rb"]),
    (b"CWD a\r\r\n", &[b"CWD a\r"]),
    (b"CWD a\r\0\r\n", &[b"CWD a\r"]),
    (b"CWD a\0b\r\n", &[b"CWD a\0b"]),
    (b"CWD \xc3\xa4\r\n", &[b"CWD \xc3\xa4"]),
    (b"CWD \xff\xff\r\n", &[b"CWD \xff"]),
    (b"\xff\xf4\xff\xf2ABOR\r\n", &[b"ABOR"]),
    (b"NO\xff\xf1OP\r\xff\xf1\n", &[b"NOOP"]),
    (b"\xff\xfb\x01\xff\xfd\xffNOOP\r\n", &[b"NOOP"]),
    (b"\xff\xfa\x18\0a\r\n\xff\xff\xff\xf0NOOP\r\n", &[b"NOOP"]),
    (b"CWD a\xf2\r\n", &[b"CWD a\xf2"]),
];

#[test]
fn lines_parse_alike_whole_split_and_byte_by_byte() {
    for (bytes, lines) in GOOD {
        let expected: Vec<LineResult> = lines.iter().map(|line| Ok(line.to_vec())).collect();
        assert_eq!(whole(bytes), expected, "{}", bytes.escape_ascii());
        assert_eq!(feed(bytes, 1..=bytes.len()), (expected.clone(), true), "{}", bytes.escape_ascii());
        for cut in 0..bytes.len() {
            let cuts = [cut, bytes.len()];
            assert_eq!(feed(bytes, cuts), (expected.clone(), true), "{} at {cut}", bytes.escape_ascii());
        }
    }
}

#[test]
fn abor_parses_without_its_urgent_byte() {
    // The kernel takes the urgent byte out of the stream: the last one that was sent as such.
    for bytes in [&b"\xff\xf4\xffABOR\r\n"[..], b"\xff\xf4\xf2ABOR\r\n", b"\xff\xf2ABOR\r\n", b"\xf2ABOR\r\n"]
    {
        assert_eq!(whole(bytes), [Ok(b"ABOR".to_vec())], "{}", bytes.escape_ascii());
    }
}

#[test]
fn bytes_behind_a_line_are_not_consumed() {
    let mut lines = Lines::default();
    assert_eq!(lines.take(b"NOOP\r\nQUIT\r\n", LIMIT), (6, Some(Ok(b"NOOP".to_vec()))));
    assert!(lines.is_empty());
}

#[test]
fn a_line_counts_as_started_from_its_first_byte() {
    for begun in [&b"N"[..], b"\r", b"\xff", b"\xff\xfd", b"\xff\xfa", &[b'x'; 2 * LIMIT]] {
        let mut lines = Lines::default();
        assert!(lines.is_empty());
        assert_eq!(lines.take(begun, LIMIT), (begun.len(), None));
        assert!(!lines.is_empty(), "{}", begun.escape_ascii());
    }
    let mut lines = Lines::default();
    assert_eq!(lines.take(b"\xff\xf1\xff\xfd\x01", LIMIT), (5, None));
    assert!(lines.is_empty(), "Telnet's commands are no line");
}

#[test]
fn a_line_above_the_limit_is_rejected() {
    for end in ["\r\n", "\n"] {
        let most = "x".repeat(LIMIT);
        assert_eq!(whole(format!("{most}{end}").as_bytes()), [Ok(most.clone().into_bytes())]);
        for more in [LIMIT + 1, 10 * LIMIT] {
            let bytes = format!("{}{end}NOOP{end}", "x".repeat(more)).into_bytes();
            let expected = vec![Err(TooLong), Ok(b"NOOP".to_vec())];
            assert_eq!(whole(&bytes), expected, "reported once, and the next one is a line again");
            assert_eq!(feed(&bytes, 1..=bytes.len()), (expected, true));
        }
    }
    // Neither the line end nor Telnet's bytes count; a CR that is part of the line does.
    let telnet = [&b"x\xff\xf1".repeat(LIMIT)[..], b"\r\n"].concat();
    assert_eq!(whole(&telnet), [Ok(vec![b'x'; LIMIT])]);
    let kept = format!("{}\r\0\n", "x".repeat(LIMIT));
    assert_eq!(whole(kept.as_bytes()), [Err(TooLong)]);
}

proptest! {
    #[test]
    fn any_bytes_yield_the_same_lines_whole_and_byte_by_byte(
        bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(0), 240u8..=255, Just(255)],
            0..80,
        ),
        cut in any::<prop::sample::Index>(),
    ) {
        let expected = feed(&bytes, [bytes.len()]);
        prop_assert_eq!(&expected, &feed(&bytes, 1..=bytes.len()));
        let cut = cut.index(bytes.len() + 1);
        prop_assert_eq!(&expected, &feed(&bytes, [cut, bytes.len()]));
        for line in expected.0.into_iter().flatten() {
            prop_assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
        }
    }
}
