//! Headers of the PROXY protocol, and the fields in which proxies name clients.
//!
//! What must hold: a header is decided at the same byte however the bytes arrive, and for good; the last
//! hops of a field do not depend on what a client has written before them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::forwarded::{HOPS_MAX, Node, last_to_first, parse_forwarded, parse_node};
use plimsoll_wire::proxy::{HEADER_BYTES_MAX, parse};

/// The first byte says which, so that the corpus of one does not dilute the others; the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    match which % 2 {
        0 => header(bytes),
        _ => fields(bytes),
    }
});

fn header(bytes: &[u8]) {
    let mut decided = None;
    for end in 0..=bytes.len() {
        let now = parse(&bytes[..end]);
        if let Some(decided) = decided {
            assert_eq!(now, decided);
        } else if now != Ok(None) {
            decided = Some(now);
        }
        match now {
            Ok(Some(header)) => assert!(header.len <= end && header.len <= HEADER_BYTES_MAX),
            Ok(None) => assert!(end < HEADER_BYTES_MAX),
            Err(_) => {}
        }
    }
}

fn fields(bytes: &[u8]) {
    let address = "192.0.2.1".parse().unwrap();
    let line = [bytes, b", 192.0.2.1"].concat();
    let last = last_to_first([&line[..]].into_iter()).next().map(parse_node);
    assert_eq!(last, Some(Ok(Node::Ip(address))));
    let own = &b"for=192.0.2.1"[..];
    if let Ok(hops) = parse_forwarded([bytes].into_iter()) {
        assert!(hops.len() <= HOPS_MAX);
        if hops.len() < HOPS_MAX {
            // What a proxy adds, on a line of its own or behind the client's, is a hop of its own.
            let joined = [bytes, b",", own].concat();
            for lines in [&[bytes, own][..], &[&joined[..]]] {
                let more = parse_forwarded(lines.iter().copied()).unwrap();
                assert_eq!(more[..hops.len()], hops[..]);
                assert_eq!(more[hops.len()].client, Node::Ip(address));
            }
        }
    }
}
