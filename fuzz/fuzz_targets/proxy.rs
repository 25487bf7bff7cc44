//! Headers of the PROXY protocol, and the fields in which proxies name clients.
//!
//! Invariants: a header is decided at the same byte however the input is split, and the decision is never
//! revised. The last hops of a field do not depend on the client's own elements before them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::forwarded::{Node, last_to_first, parse_forwarded, parse_node};
use plimsoll_wire::limits::{FORWARDED_HOPS_MAX, PROXY_HEADER_BYTES_MAX};
use plimsoll_wire::proxy::parse;

/// The first byte selects the target, so that each keeps its own corpus; the rest is the input.
fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    match selector % 2 {
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
            Ok(Some(header)) => assert!(header.len <= end && header.len <= PROXY_HEADER_BYTES_MAX),
            Ok(None) => assert!(end < PROXY_HEADER_BYTES_MAX),
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
        assert!(hops.len() <= FORWARDED_HOPS_MAX);
        if hops.len() < FORWARDED_HOPS_MAX {
            // A proxy's element, on a line of its own or appended to the client's, is a hop of its own.
            let joined = [bytes, b",", own].concat();
            for lines in [&[bytes, own][..], &[&joined[..]]] {
                let more = parse_forwarded(lines.iter().copied()).unwrap();
                assert_eq!(more[..hops.len()], hops[..]);
                assert_eq!(more[hops.len()].client, Node::Ip(address));
            }
        }
    }
}
