//! Responses: one line each, parsed as they were written.

use plimsoll_wire::classic::{Answer, BadAnswer};
use plimsoll_wire::limits::CLASSIC_LINE_BYTES_MAX;
use proptest::prelude::*;

fn written(answer: &Answer) -> Vec<u8> {
    let mut out = Vec::new();
    answer.write(&mut out);
    out
}

#[test]
fn a_response_is_one_line() {
    assert_eq!(written(&Answer::Done), b"ok\n");
    assert_eq!(written(&Answer::File(1024)), b"ok 1024\n");
    assert_eq!(written(&Answer::Refused(b"not found".to_vec())), b"error: not found\n");
    assert_eq!(written(&Answer::Refused(b"two\r\nlines".to_vec())), b"error: two  lines\n");
    let long = written(&Answer::Refused(vec![b'x'; 2 * CLASSIC_LINE_BYTES_MAX]));
    assert_eq!(long.len(), CLASSIC_LINE_BYTES_MAX + 1);
}

#[test]
fn a_line_that_is_not_a_response_is_rejected() {
    for line in ["", "o", "okay", "ok ", "ok -1", "ok 1 ", "ok 18446744073709551616", "error", "error:", "OK"]
    {
        assert_eq!(Answer::parse(line.as_bytes()), Err(BadAnswer), "{line}");
    }
}

proptest! {
    #[test]
    fn a_written_message_parses_to_the_same(size: u64, reason in "[a-z :]{0,80}") {
        for answer in [Answer::Done, Answer::File(size), Answer::Refused(reason.into_bytes())] {
            let line = written(&answer);
            prop_assert_eq!(Answer::parse(&line[..line.len() - 1]), Ok(answer));
        }
    }
}
