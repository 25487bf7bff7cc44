//! Writes the head of a request for an origin.
//!
//! It decides no route and no framing of its own: the body is framed as the client framed it. Invariants: the
//! head has one target, one Host and one framing, all of them written here. Other lines are the client's,
//! byte for byte, without those that concern its connection.

use plimsoll_io::Peer;
use plimsoll_wire::http::head::{Field, Framing, Head, Method, Version};

use crate::cache::policy::FieldBlock;
use crate::fields::{
    ConnectionOptions, Earlier, Hop, is_client_name, is_conditional, list, write_field, write_via,
};
use crate::route::Route;
use crate::scheme::Scheme;

/// A request of a client, and what the proxy knows about it.
pub(crate) struct ClientRequest<'a> {
    pub(crate) head: &'a Head,
    pub(crate) block: &'a [u8],
    /// The [fields that an origin gets](crate::fields::forwarded_fields).
    pub(crate) fields: &'a FieldBlock,
    /// The peer from which it came.
    pub(crate) peer: &'a Peer,
    /// The scheme of its URL on the connection from that peer.
    pub(crate) scheme: Scheme,
}

/// The requested change of the protocol, if the proxy supports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    None,
    /// To WebSocket (RFC 6455).
    WebSocket,
}

impl ClientRequest<'_> {
    /// Returns the requested change of the protocol. Others than WebSocket are ignored: "A server MAY ignore
    /// a received Upgrade header field if it wishes to continue using the current protocol" (RFC 9110,
    /// section 7.8). Behind an upgrade to HTTP/2, requests would pass unchecked.
    pub(crate) fn upgrade(&self) -> Upgrade {
        let (head, block) = (self.head, self.block);
        let options = ConnectionOptions::of(head.fields(block));
        let is_possible = head.version() == Version::Http11
            && head.method() == Method::Get
            && head.framing() == Framing::None
            && options.contain(b"upgrade");
        let mut wanted = head.all(block, Field::Upgrade).flat_map(list);
        let is_websocket = is_possible
            && wanted.next().is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
            && wanted.next().is_none();
        if is_websocket { Upgrade::WebSocket } else { Upgrade::None }
    }

    /// Whether the client takes trailer fields: `TE: trailers`.
    fn takes_trailers(&self) -> bool {
        let mut codings = self.head.all(self.block, Field::Te).flat_map(list);
        self.head.version() == Version::Http11
            && codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
    }

    /// Writes the head for an origin, whose own authority is `authority`.
    /// `conditions` replace the client's conditions and range, if the response is for the cache.
    pub(crate) fn write(
        &self,
        route: &Route,
        authority: &str,
        pseudonym: &str,
        conditions: Option<&FieldBlock>,
    ) -> Vec<u8> {
        let (head, block) = (self.head, self.block);
        let mut out = Vec::with_capacity(head.len() + 384);
        out.extend_from_slice(head.method_bytes(block));
        out.push(b' ');
        out.extend_from_slice(&route.target);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let host = route.host.as_deref();
        write_field(b"Host", host.unwrap_or(authority.as_bytes()), &mut out);
        let mut earlier = Earlier::default();
        for (name, value) in self.fields.lines().iter() {
            let is_replaced = (is_client_name(name) && !earlier.take(name, value))
                || (conditions.is_some() && is_conditional(name));
            if !is_replaced {
                write_field(name, value, &mut out);
            }
        }
        if let Some(conditions) = conditions {
            out.extend_from_slice(conditions.as_bytes());
        }
        Hop { peer: self.peer, host, scheme: self.scheme }.write(&earlier, &mut out);
        let version: &[u8] = if head.version() == Version::Http10 { b"1.0" } else { b"1.1" };
        write_via(version, pseudonym, &mut out);
        if let Some(number) = route.max_forwards {
            write_field(b"Max-Forwards", number.to_string().as_bytes(), &mut out);
        }
        self.write_connection(&mut out);
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Writes the fields that concern the connection to the origin.
    fn write_connection(&self, out: &mut Vec<u8>) {
        match self.head.framing() {
            Framing::None => {}
            Framing::Length(bytes) => write_field(b"Content-Length", bytes.to_string().as_bytes(), out),
            Framing::Chunked => write_field(b"Transfer-Encoding", b"chunked", out),
        }
        if self.head.expects_continue() {
            write_field(b"Expect", b"100-continue", out);
        }
        if self.upgrade() == Upgrade::WebSocket {
            write_field(b"Upgrade", b"websocket", out);
            write_field(b"Connection", b"upgrade", out);
        } else if self.takes_trailers() {
            write_field(b"TE", b"trailers", out);
            write_field(b"Connection", b"TE", out);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http::head::{HeadLimits, parse_head};

    use super::*;
    use crate::fields::{FieldRules, forwarded_fields};
    use crate::route::Destination;

    fn written(request: &str, is_trusted: bool) -> String {
        with_rules(request, is_trusted, &FieldRules::default())
    }

    fn with_rules(request: &str, is_trusted: bool, rules: &FieldRules) -> String {
        let head = parse_head(request.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let block = request.as_bytes();
        let peer = Peer::Ip([192, 0, 2, 1].into(), 9);
        let (target, host) = (head.target(block).to_vec(), head.authority(block).map(<[u8]>::to_vec));
        let scheme = Scheme::Http;
        let route = Route { to: Destination::Origins, target, scheme, host, max_forwards: None };
        let fields = forwarded_fields(&head, block, is_trusted, rules);
        let client = ClientRequest { head: &head, block, fields: &fields, peer: &peer, scheme: Scheme::Http };
        String::from_utf8(client.write(&route, "origin:80", "p", None)).unwrap()
    }

    const ADDED: &str = "Forwarded: for=192.0.2.1;proto=http;host=\"h\"\r\nX-Forwarded-For: 192.0.2.1\r\n\
                         X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nVia: 1.1 p\r\n";

    #[test]
    fn fields_of_the_clients_connection_end_at_the_proxy() {
        let request = "GET /a?b HTTP/1.1\r\nA: 1\r\nConnection: close, X-Own\r\nHost: h\r\nX-Own: 2\r\n\
                       TE: gzip\r\n\
                       Keep-Alive: 5\r\nProxy-Authorization: x\r\nProxy: evil\r\nB:  2 \r\n\
                       Upgrade: h2c\r\n\r\n";
        assert_eq!(
            written(request, false),
            format!("GET /a?b HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\n{ADDED}\r\n")
        );
    }

    #[test]
    fn names_of_clients_are_replaced_unless_their_sender_is_trusted() {
        let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\n\
                       X_Forwarded_Proto: https\r\n\
                       Forwarded: for=203.0.113.9\r\nX-Real-IP: 203.0.113.9\r\n\r\n";
        assert_eq!(written(request, false), format!("GET / HTTP/1.1\r\nHost: h\r\n{ADDED}\r\n"));
        let trusted = written(request, true);
        assert!(trusted.contains("\r\nX-Forwarded-For: 203.0.113.9, 192.0.2.1\r\n"), "{trusted}");
        assert!(trusted.contains("\r\nForwarded: for=203.0.113.9, for=192.0.2.1;"), "{trusted}");
        assert!(trusted.contains("\r\nX-Real-IP: 203.0.113.9\r\n"), "{trusted}");
    }

    #[test]
    fn a_client_cannot_remove_the_hops_of_a_trusted_proxy() {
        let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\n\
                       Connection: X-Forwarded-For\r\n\r\n";
        let trusted = written(request, true);
        assert!(trusted.contains("\r\nX-Forwarded-For: 203.0.113.9, 192.0.2.1\r\n"), "{trusted}");
    }

    #[test]
    fn fields_with_unusual_names_and_those_that_the_operator_names_are_removed() {
        let request = "GET / HTTP/1.1\r\nHost: h\r\nIf_Match: a\r\nAccept.Language: b\r\nX-Host: c\r\n\
                       A: 1\r\n\r\n";
        assert!(written(request, true).starts_with("GET / HTTP/1.1\r\nHost: h\r\nX-Host: c\r\nA: 1\r\nForw"));
        let rules = FieldRules { keeps_unusual_names: true, removed: vec!["x-host".to_owned()] };
        let kept = with_rules(request, false, &rules);
        let expected = "GET / HTTP/1.1\r\nHost: h\r\nIf_Match: a\r\nAccept.Language: b\r\nA: 1\r\nForw";
        assert!(kept.starts_with(expected), "{kept}");
    }

    #[test]
    fn the_framing_of_a_body_is_written_once() {
        let request = "PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 007\r\nContent_Length: 9\r\n\
                       Transfer_Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
        assert_eq!(
            written(request, false),
            format!("PUT / HTTP/1.1\r\nHost: h\r\n{ADDED}Content-Length: 7\r\nExpect: 100-continue\r\n\r\n")
        );
        let chunked =
            written("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\nTrailer: x\r\n\r\n", false);
        assert!(chunked.contains("\r\nTransfer-Encoding: chunked\r\n") && chunked.contains("Trailer: x\r\n"));
    }

    #[test]
    fn only_an_upgrade_to_websocket_is_forwarded() {
        let upgrade = |fields: &str| written(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"), false);
        let sent = "Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: a\r\n";
        assert!(upgrade(sent).ends_with("Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"));
        for sent in
            ["Upgrade: websocket\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n", "Connection: upgrade\r\n"]
        {
            assert!(!upgrade(sent).contains("pgrade"), "{sent}");
        }
        let both = "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n";
        assert!(!upgrade(both).contains("pgrade"));
    }

    #[test]
    fn a_request_of_http_1_0_without_a_host_gets_that_of_the_origin() {
        let request = written("GET / HTTP/1.0\r\n\r\n", false);
        assert!(request.starts_with("GET / HTTP/1.1\r\nHost: origin:80\r\n"), "{request}");
        assert!(request.contains("\r\nVia: 1.0 p\r\n") && !request.contains("host="), "{request}");
    }
}
