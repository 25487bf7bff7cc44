//! Decides whether a request is from a program on this machine: such programs read metrics, are not
//! redirected to HTTPS, and present passwords over TCP without encryption.
//!
//! Invariant: a request with any sign of a proxy never counts as local. A proxy on this machine that is not
//! trusted is the peer of all of its clients, wherever they are.

use plimsoll_io::Peer;
use plimsoll_wire::host::is_loopback;
use plimsoll_wire::http::head::{Head, Version};

use super::request::Arrival;

/// Fields that proxies add to requests. A client gains nothing by sending one itself.
const PROXY_FIELDS: [&str; 11] = [
    "Forwarded",
    "Via",
    "X-Real-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Original-Forwarded-For",
    "X-ProxyUser-Ip",
    "Client-IP",
    "True-Client-IP",
    "CF-Connecting-IP",
    "Fastly-Client-IP",
];
/// The prefix of further such fields: `X-Forwarded-For`, `-Host`, `-Proto` and others.
const PROXY_FIELDS_START: &[u8] = b"x-forwarded-";

/// Whether a request is from a program on this machine, and passed no proxy.
///
/// nginx adds no field by default, but speaks HTTP/1.0. Other proxies pass on the host name that their client
/// used, which does not name the loopback interface. The check of the name also stops DNS rebinding: a
/// foreign page in a browser on this machine.
pub(super) fn is_local_request(peer: &Peer, arrival: Arrival, head: &Head, block: &[u8]) -> bool {
    peer.is_local()
        && arrival == Arrival::Direct
        && head.version() == Version::Http11
        && head.authority(block).is_some_and(is_loopback_name)
        && !head.fields(block).any(|(name, _)| is_proxy_field(name))
}

fn is_proxy_field(name: &[u8]) -> bool {
    let start = name.get(..PROXY_FIELDS_START.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PROXY_FIELDS_START))
        || PROXY_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

/// Whether an authority, with or without a port, names the loopback interface.
fn is_loopback_name(authority: &[u8]) -> bool {
    host_of(authority).is_some_and(is_loopback)
}

/// Returns an authority without its port.
pub(super) fn host_of(authority: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(authority).ok()?;
    Some(match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http::head::{HeadLimits, parse_head};

    use super::*;

    fn is_local(peer: &str, arrival: Arrival, text: &str) -> bool {
        let block = format!("{text}\r\n\r\n");
        let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let peer = peer.parse().map_or(Peer::Unix, |ip| Peer::Ip(ip, 40_000));
        is_local_request(&peer, arrival, &head, block.as_bytes())
    }

    #[test]
    fn only_a_direct_request_without_a_sign_of_a_proxy_is_local() {
        const PLAIN: &str = "GET / HTTP/1.1\r\nHost: localhost:8080";
        for peer in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "unix"] {
            assert!(is_local(peer, Arrival::Direct, PLAIN), "{peer}");
            assert!(!is_local(peer, Arrival::Proxied, PLAIN), "{peer} behind a trusted proxy");
            for text in [
                "GET / HTTP/1.0\r\nHost: localhost:8080",
                "GET / HTTP/1.0",
                "GET / HTTP/1.1\r\nHost: files.example.org",
                "GET http://files.example.org/ HTTP/1.1\r\nHost: localhost",
            ] {
                assert!(!is_local(peer, Arrival::Direct, text), "{peer}: {text}");
            }
            for name in PROXY_FIELDS.iter().chain(&["via", "X-Forwarded-For", "x-forwarded-proto"]) {
                let text = format!("{PLAIN}\r\n{name}: x");
                assert!(!is_local(peer, Arrival::Direct, &text), "{peer}: {name}");
            }
        }
        for peer in ["192.0.2.1", "10.0.0.1", "2001:db8::1"] {
            assert!(!is_local(peer, Arrival::Direct, PLAIN), "{peer}");
        }
    }

    #[test]
    fn only_loopback_names_and_addresses_count_as_local() {
        for authority in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.8.0.1:80", "[::1]", "[::1]:8080"] {
            assert!(is_loopback_name(authority.as_bytes()), "{authority}");
        }
        for authority in ["files.example", "localhost.example", "192.0.2.1:80", "[2001:db8::1]", "test", ""] {
            assert!(!is_loopback_name(authority.as_bytes()), "{authority}");
        }
    }
}
