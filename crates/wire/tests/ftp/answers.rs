//! Parsing of answers: independent of how the input is split, and bounded.

use plimsoll_wire::ftp::answers::{
    ANSWER_BYTES_MAX, ANSWER_LINE_BYTES_MAX, Answer, Answers, BadAnswer, LINE_COST_BYTES,
};
use proptest::prelude::*;

type Read = Result<Answer, BadAnswer>;

/// Returns the answers in `bytes`, fed in pieces that end at the given positions, up to the first error.
fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Vec<Read> {
    let mut answers = Answers::default();
    let (mut found, mut at) = (Vec::new(), 0);
    for cut in cuts {
        while at < cut {
            let (consumed, answer) = answers.take(&bytes[at..cut]);
            at += consumed;
            assert!(answer.is_some() || at == cut);
            let is_bad = matches!(answer, Some(Err(_)));
            found.extend(answer);
            if is_bad {
                assert_eq!(answers.take(b"200 Ok\r\n"), (0, found.last().cloned()), "and stays so");
                return found;
            }
        }
    }
    found
}

fn whole(bytes: &[u8]) -> Vec<Read> {
    feed(bytes, [bytes.len()])
}

fn answer(code: u16, lines: &[&str]) -> Read {
    Ok(Answer { code, lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect() })
}

#[test]
fn answers_are_the_same_in_one_piece_in_two_and_byte_by_byte() {
    let good = [
        ("220 Hello.\r\n", vec![answer(220, &["Hello."])]),
        ("220 \r\n221\r\n", vec![answer(220, &[""]), answer(221, &[""])]),
        ("331 a\n230 b\r\n", vec![answer(331, &["a"]), answer(230, &["b"])]),
        (
            "211-Features:\r\n UTF8\r\n 211 not yet\r\n212 nor this\r\n211 End\r\n200 Ok\r\n",
            vec![
                answer(211, &["Features:", " UTF8", " 211 not yet", "212 nor this", "End"]),
                answer(200, &["Ok"]),
            ],
        ),
        ("230-a\r\n230-b\r\n\r\n230 c\r\n", vec![answer(230, &["a", "b", "", "c"])]),
        (
            "123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n123 The last line\r\n",
            vec![answer(
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
fn the_text_is_the_last_line() {
    assert_eq!(whole(b"230-a\r\n230 b\r\n")[0].as_ref().unwrap().text(), b"b");
    assert_eq!(whole(b"257 \"/\"\r\n")[0].as_ref().unwrap().text(), b"\"/\"");
}

#[test]
fn what_does_not_begin_with_a_code_is_no_answer() {
    for text in
        ["\r\n", "ok\r\n", "22 a\r\n", "2200 a\r\n", "220_a\r\n", "099 a\r\n", " 220 a\r\n", "2a0 b\r\n"]
    {
        assert_eq!(whole(text.as_bytes()), [Err(BadAnswer::Code)], "{text:?}");
        assert_eq!(feed(text.as_bytes(), 1..=text.len()), [Err(BadAnswer::Code)], "{text:?}");
    }
    assert_eq!(whole(b"220 a\r\nb\r\n"), [answer(220, &["a"]), Err(BadAnswer::Code)]);
}

#[test]
fn an_answer_is_as_long_as_its_limits_and_no_longer() {
    let of = |len: usize| format!("220 {}\r\n", "x".repeat(len - 4));
    assert!(whole(of(ANSWER_LINE_BYTES_MAX).as_bytes())[0].is_ok());
    assert_eq!(whole(of(ANSWER_LINE_BYTES_MAX + 1).as_bytes()), [Err(BadAnswer::TooLong)]);
    let most = ANSWER_BYTES_MAX / (LINE_COST_BYTES + 4);
    let of = |lines: usize| format!("220-\r\n{}220 \r\n", "abcd\r\n".repeat(lines - 2));
    assert!(whole(of(most).as_bytes())[0].is_ok());
    assert_eq!(whole(of(most + 1).as_bytes()), [Err(BadAnswer::TooLong)]);
}

proptest! {
    #[test]
    fn any_bytes_come_to_the_same_whole_and_byte_by_byte(
        text in "([12]2[0-3][ -]|\r\n|\r|\n|x|[^a]){0,40}",
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(whole(bytes), feed(bytes, 1..=bytes.len()));
    }
}
