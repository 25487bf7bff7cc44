//! Data of the data connection: listings of any names, text conversion, and patterns for names.
//!
//! Not here: files. Invariants: one entry is one line; text conversion does not depend on how it is split,
//! and is reversible; a pattern matches as an exhaustive search does, and in bounded time.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::ftp::ascii::{FromNetwork, ToNetwork};
use plimsoll_wire::ftp::facts::{Facts, mlst_line, push_mlsd};
use plimsoll_wire::ftp::glob::matches;
use plimsoll_wire::ftp::listing::{Entry, EntryKind, Rights, push_list, push_name};

// The first byte selects the target, so that each keeps its own corpus; the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    match selector % 3 {
        0 => listing(bytes),
        1 => text(bytes),
        _ => pattern(bytes),
    }
});

fn listing(bytes: &[u8]) {
    let Some((numbers, name)) = bytes.split_first_chunk::<17>() else { return };
    let number = |at: usize| u64::from_le_bytes(numbers[at..at + 8].try_into().unwrap());
    let has = |bit: u8| numbers[16] & 1 << bit != 0;
    let entry = Entry {
        name,
        kind: if has(0) { EntryKind::File } else { EntryKind::Folder },
        size: number(0),
        modified: Duration::from_secs(number(8)),
        unique: (number(0), number(8)),
        rights: Rights { read: has(1), write: has(2), remove: has(3) },
    };
    let is_line = !name.iter().any(|byte| b"\r\n".contains(byte));
    let mut out = Vec::new();
    push_list(&mut out, &entry, &String::from_utf8_lossy(name), Duration::from_secs(number(0)));
    assert!(is_one_line(&out));
    let mut out = Vec::new();
    assert_eq!(push_name(&mut out, b"docs/", name), is_line);
    assert!(if is_line { is_one_line(&out) } else { out.is_empty() });
    let mut out = Vec::new();
    assert_eq!(push_mlsd(&mut out, &entry, Facts::parse(name)), is_line);
    assert!(if is_line { is_one_line(&out) } else { out.is_empty() });
    let line = mlst_line(&entry, Facts::default());
    let space = line.iter().position(|&byte| byte == b' ').unwrap();
    assert_eq!(&line[space + 1..], name);
}

fn is_one_line(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\r\n") && bytes.iter().filter(|byte| b"\r\n".contains(byte)).count() == 2
}

fn text(bytes: &[u8]) {
    let middle = usize::from(bytes.first().copied().unwrap_or_default()) % (bytes.len() + 1);
    let (first, second) = bytes.split_at(middle);
    let network = sent(&[bytes]);
    assert_eq!(network, sent(&[first, second]));
    assert_eq!(network, sent(&bytes.chunks(1).collect::<Vec<_>>()));
    assert_eq!(network, sent(&[&network]), "once is as good as twice");
    let back = stored(&[&network]);
    assert_eq!(back, stored(&network.chunks(1).collect::<Vec<_>>()));
    if !bytes.windows(2).any(|pair| pair == b"\r\n") {
        assert_eq!(back, bytes);
    }
    assert_eq!(stored(&[bytes]), stored(&[first, second]));
}

fn sent(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut to, mut measuring) = (ToNetwork::default(), ToNetwork::default());
    let (mut out, mut len) = (Vec::new(), 0);
    for piece in pieces {
        to.convert(piece, &mut out);
        len += measuring.measure(piece);
        assert_eq!(len, out.len() as u64);
    }
    out
}

fn stored(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut from, mut out) = (FromNetwork::default(), Vec::new());
    for piece in pieces {
        from.convert(piece, &mut out);
    }
    from.finish(&mut out);
    out
}

fn pattern(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'/').unwrap_or(bytes.len());
    let (pattern, name) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let name = &name[..name.len().min(255)];
    let is_match = matches(pattern, name);
    let is_plain = !pattern.iter().any(|byte| b"[\\".contains(byte)) && bytes.is_ascii();
    let stars = pattern.iter().filter(|&&byte| byte == b'*').count();
    if is_plain && stars <= 3 && name.len() <= 32 {
        assert_eq!(is_match, plainly(pattern, name));
    }
    assert!(matches(&[b"*", pattern].concat(), name) || !is_match);
    let escaped: Vec<u8> = String::from_utf8_lossy(name).chars().flat_map(escape).collect();
    assert!(matches(&escaped, String::from_utf8_lossy(name).as_bytes()));
}

fn escape(character: char) -> Vec<u8> {
    format!("\\{character}").into_bytes()
}

/// Matches by exhaustive search, as the reference.
fn plainly(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], _) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| plainly(rest, &name[at..])),
        ([b'?', rest @ ..], [_, others @ ..]) => plainly(rest, others),
        ([one, rest @ ..], [first, others @ ..]) => one == first && plainly(rest, others),
        (_, []) => false,
    }
}
