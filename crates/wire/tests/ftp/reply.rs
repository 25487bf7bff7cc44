//! Writing of replies: no text leaves its line.

use plimsoll_wire::ftp::reply::{push_line, push_lines, quoted};
use plimsoll_wire::ftp::reply_parser::ReplyParser;
use proptest::prelude::*;

fn line(code: u16, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_line(&mut out, code, text);
    out
}

#[test]
fn a_single_line_reply_has_a_code_a_space_and_a_text() {
    let mut out = Vec::new();
    push_line(&mut out, 200, "Done.");
    push_line(&mut out, 257, &quoted(b"/a"));
    assert_eq!(out, b"200 Done.\r\n257 \"/a\"\r\n");
    assert_eq!(line(331, b""), b"331 \r\n");
}

#[test]
fn a_multiline_reply_is_bracketed_by_its_code_and_indented() {
    let mut out = Vec::new();
    push_lines(&mut out, 211, "Features:", ["UTF8", "211 End"], "End");
    assert_eq!(out, b"211-Features:\r\n UTF8\r\n 211 End\r\n211 End\r\n");
    let mut out = Vec::new();
    push_lines(&mut out, 250, "Facts:", [b"type=file; a".to_vec()], "End");
    assert_eq!(out, b"250-Facts:\r\n type=file; a\r\n250 End\r\n");
    let mut out = Vec::new();
    push_lines(&mut out, 250, "None:", Vec::<&str>::new(), "End");
    assert_eq!(out, b"250-None:\r\n250 End\r\n");
}

#[test]
fn names_in_replies_cannot_end_a_line_or_start_a_telnet_command() {
    assert_eq!(line(550, b"a\r\n226 Done.\0"), b"550 a??226 Done.?\r\n");
    assert_eq!(line(550, b"\xff\xf4"), b"550 \xff\xff\xf4\r\n");
    let mut out = Vec::new();
    push_lines(&mut out, 212, "a\n", [&b"b\r\n212 End\xff"[..]], "c\r");
    assert_eq!(out, b"212-a?\r\n b??212 End\xff\xff\r\n212 c?\r\n");
}

#[test]
fn quotes_in_a_path_are_doubled() {
    assert_eq!(quoted(b"/usr/dm/foo\"bar"), b"\"/usr/dm/foo\"\"bar\"");
    assert_eq!(quoted(b""), b"\"\"");
    assert_eq!(quoted(b"\"\""), b"\"\"\"\"\"\"");
}

proptest! {
    #[test]
    fn a_written_reply_parses_as_one_reply(
        text in any::<Vec<u8>>(),
        middle in proptest::collection::vec(any::<Vec<u8>>(), 0..5),
    ) {
        let shown = |text: &[u8]| -> Vec<u8> {
            text.iter().map(|byte| if b"\r\n\0".contains(byte) { b'?' } else { *byte }).collect()
        };
        let mut out = Vec::new();
        push_lines(&mut out, 212, &text, &middle, &text);
        let (consumed, reply) = ReplyParser::default().take(&out);
        prop_assert_eq!(consumed, out.len());
        let reply = reply.unwrap().unwrap();
        prop_assert_eq!(reply.code, 212);
        prop_assert_eq!(reply.lines.len(), middle.len() + 2);
        prop_assert_eq!(&reply.lines[0], &shown(&text));
        prop_assert_eq!(reply.text(), &shown(&text)[..]);
        for (read, written) in reply.lines[1..].iter().zip(&middle) {
            prop_assert_eq!(read, &[b" ", &shown(written)[..]].concat());
        }
    }
}
