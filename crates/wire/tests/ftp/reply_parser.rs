//! Parsing of replies: independent of how the input is split, and bounded.

use plimsoll_wire::ftp::reply_parser::{BadReply, Reply, ReplyParser};
use plimsoll_wire::limits::{REPLY_BYTES_MAX, REPLY_LINE_BYTES_MAX, REPLY_LINE_COST_BYTES};
use proptest::prelude::*;

type Read = Result<Reply, BadReply>;

/// Returns the replies in `bytes`, fed in pieces that end at the given positions, up to the first error.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Vec<Read> {
    let mut replies = ReplyParser::default();
    let (mut found, mut at) = (Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            let (consumed, reply) = replies.take(&bytes[at..cut]);
            at += consumed;
            assert!(reply.is_some() || at == cut);
            let is_bad = matches!(reply, Some(Err(_)));
            found.extend(reply);
            if is_bad {
                assert_eq!(replies.take(b"200 Ok\r\n"), (0, found.last().cloned()), "and stays so");
                return found;
            }
        }
    }
    found
}

fn whole(bytes: &[u8]) -> Vec<Read> {
    feed(bytes, [bytes.len()])
}

fn reply(code: u16, lines: &[&str]) -> Read {
    Ok(Reply { code, lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect() })
}

#[test]
fn replies_parse_alike_whole_split_and_byte_by_byte() {
    let good = [
        ("220 Hello.\r\n", vec![reply(220, &["Hello."])]),
        ("220 \r\n221\r\n", vec![reply(220, &[""]), reply(221, &[""])]),
        ("331 a\n230 b\r\n", vec![reply(331, &["a"]), reply(230, &["b"])]),
        (
            "211-Features:\r\n UTF8\r\n 211 not yet\r\n212 nor this\r\n211 End\r\n200 Ok\r\n",
            vec![
                reply(211, &["Features:", " UTF8", " 211 not yet", "212 nor this", "End"]),
                reply(200, &["Ok"]),
            ],
        ),
        ("230-a\r\n230-b\r\n\r\n230 c\r\n", vec![reply(230, &["a", "b", "", "c"])]),
        (
            "123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n123 The last line\r\n",
            vec![reply(
                123,
                &["First line", "Second line", "  234 A line beginning with numbers", "The last line"],
            )],
        ),
    ];
    for (text, expected) in good {
        let bytes = text.as_bytes();
        assert_eq!(whole(bytes), expected, "{text:?}");
        assert_eq!(feed(bytes, 1..=bytes.len()), expected, "{text:?}");
        for cut in 0..bytes.len() {
            assert_eq!(feed(bytes, [cut, bytes.len()]), expected, "{text:?} at {cut}");
            assert!(whole(&bytes[..cut]).len() < expected.len(), "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn the_text_of_a_reply_is_its_last_line() {
    assert_eq!(whole(b"230-a\r\n230 b\r\n")[0].as_ref().unwrap().text(), b"b");
    assert_eq!(whole(b"257 \"/\"\r\n")[0].as_ref().unwrap().text(), b"\"/\"");
}

#[test]
fn a_reply_without_a_leading_code_is_rejected() {
    for text in
        ["\r\n", "ok\r\n", "22 a\r\n", "2200 a\r\n", "220_a\r\n", "099 a\r\n", " 220 a\r\n", "2a0 b\r\n"]
    {
        assert_eq!(whole(text.as_bytes()), [Err(BadReply::Code)], "{text:?}");
        assert_eq!(feed(text.as_bytes(), 1..=text.len()), [Err(BadReply::Code)], "{text:?}");
    }
    assert_eq!(whole(b"220 a\r\nb\r\n"), [reply(220, &["a"]), Err(BadReply::Code)]);
}

#[test]
fn a_reply_above_the_limits_is_rejected() {
    let of = |len: usize| format!("220 {}\r\n", "x".repeat(len - 4));
    assert!(whole(of(REPLY_LINE_BYTES_MAX).as_bytes())[0].is_ok());
    assert_eq!(whole(of(REPLY_LINE_BYTES_MAX + 1).as_bytes()), [Err(BadReply::TooLong)]);
    let most = REPLY_BYTES_MAX / (REPLY_LINE_COST_BYTES + 4);
    let of = |lines: usize| format!("220-\r\n{}220 \r\n", "abcd\r\n".repeat(lines - 2));
    assert!(whole(of(most).as_bytes())[0].is_ok());
    assert_eq!(whole(of(most + 1).as_bytes()), [Err(BadReply::TooLong)]);
}

proptest! {
    #[test]
    fn any_bytes_parse_alike_whole_and_byte_by_byte(
        text in "([12]2[0-3][ -]|\r\n|\r|\n|x|[^a]){0,40}",
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(whole(bytes), feed(bytes, 1..=bytes.len()));
    }
}
