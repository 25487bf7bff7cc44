//! The fields in which proxies name their clients.

use core::net::IpAddr;

use plimsoll_wire::http::forwarded::{
    Hop, Malformed, Node, forwarded_hosts, last_to_first, parse_forwarded, parse_node,
};
use plimsoll_wire::limits::FORWARDED_HOPS_MAX;
use proptest::prelude::*;

fn ip(text: &str) -> Node {
    Node::Ip(text.parse().unwrap())
}

fn hop<'a>(client: Node, host: Option<&'a str>, proto: Option<&'a str>) -> Hop<'a> {
    Hop { client, host: host.map(str::as_bytes), proto: proto.map(str::as_bytes) }
}

#[test]
fn a_forwarded_node_is_an_address_or_hidden() {
    for (value, node) in [
        ("192.0.2.43", ip("192.0.2.43")),
        ("192.0.2.43:47011", ip("192.0.2.43")),
        ("192.0.2.43:_port", ip("192.0.2.43")),
        ("2001:db8::17", ip("2001:db8::17")),
        ("[2001:db8::17]", ip("2001:db8::17")),
        ("[2001:db8::17]:47011", ip("2001:db8::17")),
        ("::ffff:192.0.2.43", ip("192.0.2.43")),
        ("unknown", Node::Hidden),
        ("Unknown", Node::Hidden),
        ("_hidden", Node::Hidden),
        ("_SEVKISEK:_1", Node::Hidden),
        ("unix:", Node::Hidden),
    ] {
        assert_eq!(parse_node(value.as_bytes()), Ok(node), "{value}");
    }
    for value in [
        "",
        "_",
        "192.0.2",
        "192.0.2.43:",
        "192.0.2.43:x",
        "192.0.2.43:999999",
        "[192.0.2.43]",
        "[::1",
        "::1]",
        "host.example",
        "192.0.2.43 ",
        "[::1]:80:80",
        "192.0.2.043",
        "\"192.0.2.43\"",
        "_a b",
        "é",
    ] {
        assert_eq!(parse_node(value.as_bytes()), Err(Malformed), "{value}");
    }
}

#[test]
fn hops_of_several_field_lines_are_in_order() {
    let lines = [
        &b"for=192.0.2.43, , For=\"[2001:db8:cafe::17]:4711\";proto=http; host=\"files.example:8443\""[..],
        b"",
        b"by=203.0.113.43;proto=https;ext=\"a;b,c\\\"d\"",
    ];
    let hops = parse_forwarded(lines.into_iter());
    // A value with an escape is refused even in an unused parameter: no node contains one.
    assert_eq!(hops, Err(Malformed));
    let lines = [lines[0], lines[1], b"by=203.0.113.43;proto=https;ext=\"a;b,c\";"];
    assert_eq!(
        parse_forwarded(lines.into_iter()).unwrap(),
        [
            hop(ip("192.0.2.43"), None, None),
            hop(ip("2001:db8:cafe::17"), Some("files.example:8443"), Some("http")),
            hop(Node::Hidden, None, Some("https")),
        ]
    );
}

#[test]
fn a_malformed_forwarded_field_is_rejected_as_a_whole() {
    for line in [
        "for",
        "=a",
        "for=",
        "for=192.0.2.43;for=192.0.2.44",
        "for=::1",
        "for=\"::1",
        "for=\"192.0.2.43\"x",
        "for=\"evil, for=192.0.2.43",
        "for=\"x, for=\"[::1]\"",
        "host=\"a/b\"",
        "host=a;HOST=b",
        "f or=192.0.2.43",
        "for = 192.0.2.43",
        "for=192.0.2.43 proto=http",
        "for=\"192.0.2\\.43\"",
    ] {
        assert_eq!(parse_forwarded([line.as_bytes()].into_iter()), Err(Malformed), "{line}");
    }
    let many = |hops: usize| vec!["for=192.0.2.43"; hops].join(",");
    assert_eq!(
        parse_forwarded([many(FORWARDED_HOPS_MAX).as_bytes()].into_iter()).unwrap().len(),
        FORWARDED_HOPS_MAX
    );
    assert_eq!(parse_forwarded([many(FORWARDED_HOPS_MAX + 1).as_bytes()].into_iter()), Err(Malformed));
}

#[test]
fn x_forwarded_for_elements_iterate_from_last_to_first() {
    let lines = [&b"198.51.100.9"[..], b"not an address,, 192.0.2.1 ,192.0.2.2"];
    let elements: Vec<_> = last_to_first(lines.into_iter()).collect();
    assert_eq!(elements, [&b"198.51.100.9"[..], b"192.0.2.2", b"192.0.2.1", b"not an address"]);
    let hosts: Vec<_> = forwarded_hosts(b"files.example, a/b, [::1]:80").collect();
    assert_eq!(hosts, [&b"files.example"[..], b"[::1]:80"]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse_node(&bytes);
        let _ = parse_forwarded([&bytes[..], &bytes].into_iter());
        prop_assert!(last_to_first([&bytes[..]].into_iter()).all(|element| !element.contains(&b',')));
    }

    #[test]
    fn a_forwarded_address_parses_behind_any_earlier_hop(
        address: IpAddr,
        port: u16,
        before in "[a-z0-9.=;]{0,20}",
    ) {
        let written = match address {
            IpAddr::V4(ip) => format!("{ip}:{port}"),
            IpAddr::V6(ip) => format!("[{ip}]:{port}"),
        };
        let node = Node::Ip(address.to_canonical());
        prop_assert_eq!(parse_node(written.as_bytes()), Ok(node));
        let line = format!("{before}, {written}");
        let last = last_to_first([line.as_bytes()].into_iter()).next().map(parse_node);
        prop_assert_eq!(last, Some(Ok(node)));
        let line = format!("for=\"{written}\"");
        prop_assert_eq!(parse_forwarded([line.as_bytes()].into_iter()).unwrap()[0].client, node);
    }

    #[test]
    fn every_prefix_of_forwarded_parses_or_is_rejected_and_keeps_complete_hops(cut in 0..70_usize) {
        let line = b"for=192.0.2.43;host=a.example, for=\"[2001:db8::17]:4711\", for=198.51.100.9";
        let whole = parse_forwarded([&line[..]].into_iter()).unwrap();
        if let Ok(hops) = parse_forwarded([&line[..cut]].into_iter()) {
            // The last hop of a prefix may be truncated; those before it are unchanged.
            let complete = hops.len().saturating_sub(1);
            prop_assert_eq!(&hops[..complete], &whole[..complete]);
        }
    }
}
