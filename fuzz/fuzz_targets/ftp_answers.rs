//! FTP replies: parsing for a client, and writing for a server.
//!
//! Not here: which reply a command gets. Invariants: the replies do not depend on how the bytes are split;
//! a reply with any texts parses as exactly that reply.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::ftp::address::{epsv_text, parse_epsv_text, parse_pasv_text, pasv_text};
use plimsoll_wire::ftp::reply::{push_line, push_lines, quoted};
use plimsoll_wire::ftp::reply_parser::{BadReply, Reply, ReplyParser};

fuzz_target!(|bytes: &[u8]| {
    let whole = feed(bytes, [bytes.len()]);
    assert_eq!(whole, feed(bytes, 1..=bytes.len()), "byte by byte");
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    assert_eq!(whole, feed(bytes, [middle, bytes.len()]), "in two pieces");
    for reply in whole.into_iter().flatten() {
        assert!((100..=999).contains(&reply.code) && !reply.lines.is_empty());
        assert!(reply.lines.iter().all(|line| !line.contains(&b'\n')));
        addresses(reply.text());
    }
    one_line(bytes);
    several_lines(bytes);
});

fn feed(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Vec<Result<Reply, BadReply>> {
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
                assert_eq!(replies.take(b"200 Ok\r\n"), (0, found.last().cloned()), "stays so");
                return found;
            }
        }
    }
    found
}

fn addresses(text: &[u8]) {
    if let Some(address) = parse_pasv_text(text) {
        assert_eq!(parse_pasv_text(pasv_text(address).as_bytes()), Some(address));
    }
    if let Some(port) = parse_epsv_text(text) {
        assert_eq!(parse_epsv_text(epsv_text(port).as_bytes()), Some(port));
    }
}

fn without_line_ends(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if b"\r\n\0".contains(byte) { b'?' } else { *byte }).collect()
}

fn read(written: &[u8]) -> Reply {
    let (consumed, reply) = ReplyParser::default().take(written);
    assert_eq!(consumed, written.len());
    reply.unwrap().unwrap()
}

fn one_line(path: &[u8]) {
    let mut out = Vec::new();
    push_line(&mut out, 257, &quoted(path));
    let reply = read(&out);
    assert_eq!((reply.code, reply.lines.len()), (257, 1));
    let inside = reply.text().strip_prefix(b"\"").unwrap().strip_suffix(b"\"").unwrap();
    let halves: Vec<_> = inside.split(|&byte| byte == b'"').collect();
    // Each doubled quote leaves an empty part.
    assert!(halves.iter().skip(1).step_by(2).all(|between| between.is_empty()));
    let unquoted: Vec<_> = halves.iter().step_by(2).copied().collect();
    assert_eq!(unquoted.join(&b'"'), without_line_ends(path));
}

fn several_lines(bytes: &[u8]) {
    let lines: Vec<_> = bytes.chunks(9).collect();
    let mut out = Vec::new();
    push_lines(&mut out, 211, bytes, &lines, bytes);
    let reply = read(&out);
    assert_eq!(reply.lines.len(), lines.len() + 2);
    for (read, written) in reply.lines[1..].iter().zip(lines) {
        assert_eq!(read[1..], without_line_ends(written));
    }
}
