//! The PROXY protocol's header as a specification.
// Clippy recognises tests by their attribute, and so not the helper functions.
#![allow(clippy::unwrap_used)]

use plimsoll_wire::limits::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX};
use plimsoll_wire::proxy::{BadHeader, Header, Version, parse, write};
use proptest::prelude::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Returns a header of version 2.
fn binary(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, payload].concat()
}

/// The addresses of TCP over IPv4: 192.0.2.7:40000 to 198.51.100.1:443.
const V4: &[u8] = &[192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 0x01, 0xbb];

fn v6() -> Vec<u8> {
    let ip = |text: &str| text.parse::<core::net::Ipv6Addr>().unwrap().octets();
    [&ip("2001:db8::7")[..], &ip("2001:db8::1"), &[0x9c, 0x40, 0x01, 0xbb]].concat()
}

/// A header that reports no encryption.
fn plain(source: Option<core::net::SocketAddr>, len: usize) -> Header {
    Header { source, is_encrypted: false, len }
}

#[test]
fn a_client_is_connected_by_tls_where_a_whole_field_of_version_2_says_so() {
    let tls = [0x20, 0, 5, 1, 0, 0, 0, 0];
    let other = [0x04, 0, 2, 0x20, 1];
    let clear = [0x20, 0, 5, 0b110, 0, 0, 0, 0];
    for (command, fields, is_encrypted) in [
        (0x21, [&tls[..], &other].concat(), true),
        (0x21, [&other[..], &tls].concat(), true),
        (0x21, clear.to_vec(), false),
        (0x21, other.to_vec(), false),
        (0x21, tls[..7].to_vec(), false),
        (0x21, vec![0x20, 0, 0], false),
        (0x21, [&[0x04, 0xff, 0xff][..], &tls].concat(), false),
        (0x20, tls.to_vec(), false),
    ] {
        let header = parse(&binary(command, 0x11, &[V4, &fields].concat())).unwrap().unwrap();
        assert_eq!(header.is_encrypted, is_encrypted, "{fields:?}");
    }
    assert!(!parse(b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n").unwrap().unwrap().is_encrypted);
}

fn valid() -> Vec<(Vec<u8>, Option<&'static str>)> {
    let with_extensions = [V4, &[0x04, 0, 3, 1, 2, 3], &[0x20, 0, 5, 1, 0, 0, 0, 0]].concat();
    vec![
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n".to_vec(), Some("192.0.2.7:40000")),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 40000 443\r\n".to_vec(), Some("[2001:db8::7]:40000")),
        (b"PROXY TCP6 ::ffff:192.0.2.7 ::1 0 443\r\n".to_vec(), Some("192.0.2.7:0")),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), None),
        (binary(0x21, 0x11, V4), Some("192.0.2.7:40000")),
        (binary(0x21, 0x11, &with_extensions), Some("192.0.2.7:40000")),
        (binary(0x21, 0x21, &v6()), Some("[2001:db8::7]:40000")),
        (binary(0x21, 0x00, b""), None),
        (binary(0x21, 0x12, V4), None),
        (binary(0x21, 0x31, &[b'x'; 216]), None),
        (binary(0x20, 0x00, b""), None),
        (binary(0x20, 0x11, V4), None),
    ]
}

#[test]
fn a_proxy_header_names_the_client_or_none() {
    for (bytes, source) in valid() {
        let expected = (source.map(|at| at.parse().unwrap()), bytes.len());
        let header = parse(&bytes).unwrap().unwrap();
        assert_eq!((header.source, header.len), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_proxy_header_ends_at_its_last_byte_whatever_follows() {
    for (bytes, _) in valid() {
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Ok(None), "{}", bytes[..end].escape_ascii());
        }
        let whole = parse(&bytes);
        for follows in [&b"GET / HTTP/1.1\r\n"[..], b"\n", b"\r\n", b"PROXY "] {
            assert_eq!(parse(&[&bytes, follows].concat()), whole, "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn bytes_that_are_not_a_proxy_header_are_rejected() {
    let too_long = |start: &[u8]| [start, &vec![b' '; PROXY_LINE_BYTES_MAX - start.len()]].concat();
    for bytes in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"\r\n\r\nGET".to_vec(),
        b"proxy TCP4 192.0.2.7 198.51.100.1 40000 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 443 \r\n".to_vec(),
        b"PROXY TCP4  192.0.2.7 198.51.100.1 40000 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 40000\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 040 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 -1 443\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.007 198.51.100.1 1 443\r\n".to_vec(),
        b"PROXY TCP4 2001:db8::7 2001:db8::1 1 443\r\n".to_vec(),
        b"PROXY TCP6 192.0.2.7 198.51.100.1 1 443\r\n".to_vec(),
        b"PROXY UDP4 192.0.2.7 198.51.100.1 1 443\r\n".to_vec(),
        b"PROXY \r\n".to_vec(),
        too_long(b"PROXY UNKNOWN"),
        binary(0x22, 0x11, V4),
        binary(0x11, 0x11, V4),
        binary(0x21, 0x41, V4),
        binary(0x21, 0x13, V4),
        binary(0x21, 0x11, &V4[1..]),
        binary(0x21, 0x21, V4),
        binary(0x21, 0x31, &[0; 215]),
        binary(0x21, 0x11, &vec![0; PROXY_HEADER_BYTES_MAX]),
        [SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat(),
    ] {
        assert_eq!(parse(&bytes), Err(BadHeader), "{}", bytes.escape_ascii());
    }
}

#[test]
fn the_longest_proxy_headers_have_the_sizes_of_the_limits() {
    let line = [&b"PROXY UNKNOWN "[..], &[b'x'; 91], b"\r\n"].concat();
    assert_eq!(
        (line.len(), parse(&line).unwrap().unwrap().len),
        (PROXY_LINE_BYTES_MAX, PROXY_LINE_BYTES_MAX)
    );
    let longest = binary(0x21, 0x11, &[V4, &vec![0; PROXY_HEADER_BYTES_MAX - 16 - V4.len()]].concat());
    assert_eq!(parse(&longest).unwrap().unwrap().len, PROXY_HEADER_BYTES_MAX);
}

/// Generates bytes that begin like headers more often than random ones would.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let from = (0..valid().len()).prop_map(|index| valid().swap_remove(index).0);
    (from, proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3), 0..300_usize)
        .prop_map(|(mut bytes, changes, len)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(len);
            bytes
        })
}

proptest! {
    #[test]
    fn a_decision_on_a_prefix_holds_for_every_continuation(bytes in bytes()) {
        let mut decided = None;
        for end in 0..=bytes.len() {
            let now = parse(&bytes[..end]);
            if let Some(decided) = decided {
                prop_assert_eq!(now, decided);
            } else if now != Ok(None) {
                decided = Some(now);
            }
            if let Ok(Some(header)) = now {
                prop_assert!(header.len <= end && header.len <= PROXY_HEADER_BYTES_MAX);
            }
        }
    }

    #[test]
    fn a_written_header_parses_to_its_source(from: core::net::SocketAddr, to: core::net::SocketAddr) {
        let canonical = core::net::SocketAddr::new(from.ip().to_canonical(), from.port());
        let is_one_family = canonical.is_ipv4() == to.ip().to_canonical().is_ipv4();
        for version in [Version::Line, Version::Binary] {
            let mut bytes = Vec::new();
            write(version, Some(from), Some(to), &mut bytes);
            let source = is_one_family.then_some(canonical);
            prop_assert_eq!(parse(&bytes), Ok(Some(plain(source, bytes.len()))));
        }
    }

    #[test]
    fn every_source_address_parses_as_it_was_written(ip: core::net::IpAddr, from: u16, to: u16) {
        let source = core::net::SocketAddr::new(ip.to_canonical(), from);
        let line = match ip {
            core::net::IpAddr::V4(ip) => format!("PROXY TCP4 {ip} 127.0.0.1 {from} {to}\r\n"),
            core::net::IpAddr::V6(ip) => format!("PROXY TCP6 {ip} ::1 {from} {to}\r\n"),
        };
        prop_assert_eq!(parse(line.as_bytes()).unwrap().unwrap().source, Some(source));
    }
}

#[test]
fn a_header_for_an_unknown_client_is_written_in_both_versions() {
    for (version, bytes) in
        [(Version::Line, b"PROXY UNKNOWN\r\n".to_vec()), (Version::Binary, binary(0x20, 0, &[]))]
    {
        let mut out = Vec::new();
        write(version, None, None, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(parse(&out), Ok(Some(plain(None, out.len()))));
    }
}
