//! The fields that a proxy removes, replaces or adds (RFC 9110, section 7.6).
//!
//! It does not know targets or bodies. Invariants: a field that concerns one connection only is never
//! forwarded. A client that is not a trusted proxy cannot claim another address. A name that some origins
//! take for another, because a gateway writes both with `_`, is treated as that other.

use core::net::IpAddr;

use plimsoll_io::Peer;
use plimsoll_wire::http::forwarded::{Node, last_to_first, parse_forwarded, parse_node};
use plimsoll_wire::http::head::{Framing, Head};
use plimsoll_wire::http::is_token;
use plimsoll_wire::limits::FORWARDED_HOPS_MAX;

use crate::cache::policy::FieldBlock;
use crate::scheme::Scheme;

/// Fields that concern one connection only. "Intermediaries SHOULD remove or replace fields that are known
/// to require removal before forwarding, whether or not they appear as a connection-option" (RFC 9110,
/// section 7.6.1). The credentials for a proxy end here (section 11.7.2).
const HOP_BY_HOP: [&[u8]; 9] = [
    b"connection",
    b"proxy-connection",
    b"keep-alive",
    b"te",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
    b"proxy-authenticate",
    b"proxy-authorization",
];

/// Fields of a request that the proxy writes itself.
const REWRITTEN: [&[u8]; 4] = [b"host", b"content-length", b"expect", b"max-forwards"];

/// A field of a request that some programs take for a setting of their own: `HTTP_PROXY` of the common
/// gateway interface.
const PROXY: &[u8] = b"proxy";

/// Fields that make a request conditional, or about a part. A request for the cache has its own.
const CONDITIONAL: [&[u8]; 4] = [b"if-none-match", b"if-modified-since", b"if-range", b"range"];

/// Fields by which proxies name their clients, beside those that begin with [`FORWARDED_START`].
const CLIENT_NAMES: [&[u8]; 3] = [b"forwarded", b"x-real-ip", b"x-client-ip"];
const FORWARDED_START: &[u8] = b"x-forwarded-";

/// Fields that must not be in a trailer section, because they frame, route or authenticate a message (RFC
/// 9110, section 6.5.1).
const NOT_IN_TRAILERS: [&[u8]; 19] = [
    b"age",
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-length",
    b"content-range",
    b"content-type",
    b"cookie",
    b"date",
    b"expires",
    b"host",
    b"if-match",
    b"if-unmodified-since",
    b"location",
    b"set-cookie",
    b"trailer",
    b"vary",
    b"via",
    b"www-authenticate",
];

/// The operator's choice of the fields that requests may have.
#[derive(Clone, Debug, Default)]
pub struct FieldRules {
    /// Whether names with other characters than letters, digits and hyphens are forwarded.
    pub keeps_unusual_names: bool,
    /// The names of the fields that are removed.
    pub removed: Vec<String>,
}

impl FieldRules {
    /// Whether fields with this name are removed from requests.
    pub(crate) fn remove(&self, name: &[u8]) -> bool {
        let is_listed = self.removed.iter().any(|removed| is_name(name, removed.as_bytes()));
        is_listed || !(self.keeps_unusual_names || is_usual_name(name))
    }
}

/// Returns the fields of a request that an origin gets, but for those that the proxy writes itself. The cache
/// selects by them: a field that ends here must not select a response.
pub(crate) fn forwarded_fields(
    head: &Head,
    block: &[u8],
    is_trusted: bool,
    rules: &FieldRules,
) -> FieldBlock {
    let options = ConnectionOptions::of(head.fields(block));
    let mut fields = FieldBlock::default();
    for (name, value) in head.fields(block) {
        // Forwarding fields are kept even if Connection names them: without its own address, the client would
        // have its request counted as the trusted proxy's.
        let ends_here = match is_client_name(name) {
            true => !is_trusted,
            false => is_hop_by_hop(name, &options) || is_rewritten(name),
        };
        // Without chunks there are no trailers.
        let is_void = is_name(name, b"trailer") && head.framing() != Framing::Chunked;
        if !ends_here && !is_void && !rules.remove(name) {
            fields.push(name, value);
        }
    }
    fields
}

/// The fields that the Connection fields of a message list.
pub(crate) struct ConnectionOptions<'a>(Vec<&'a [u8]>);

impl<'a> ConnectionOptions<'a> {
    /// Gathers the options of all Connection fields among `fields`.
    pub(crate) fn of(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> ConnectionOptions<'a> {
        let lines = fields.filter(|(name, _)| is_name(name, b"connection")).map(|(_, value)| value);
        ConnectionOptions(lines.flat_map(list).collect())
    }

    /// Whether a field is among the options.
    pub(crate) fn contain(&self, name: &[u8]) -> bool {
        self.0.iter().any(|option| is_name(option, name))
    }
}

/// Whether a field concerns one connection only.
pub(crate) fn is_hop_by_hop(name: &[u8], options: &ConnectionOptions<'_>) -> bool {
    is_among(name, &HOP_BY_HOP) || options.contain(name)
}

/// Whether the proxy writes a request's field itself, or removes it.
pub(crate) fn is_rewritten(name: &[u8]) -> bool {
    is_among(name, &REWRITTEN) || is_name(name, PROXY)
}

/// Whether a field names the client of a request.
pub(crate) fn is_client_name(name: &[u8]) -> bool {
    let start = name.get(..FORWARDED_START.len());
    start.is_some_and(|start| is_name(start, FORWARDED_START)) || is_among(name, &CLIENT_NAMES)
}

/// Whether a field makes a request conditional, or about a part.
pub(crate) fn is_conditional(name: &[u8]) -> bool {
    is_among(name, &CONDITIONAL)
}

/// Whether a response may vary by a field: an origin gets the client's value. Host is part of the key of a
/// stored response.
pub(crate) fn may_select(name: &[u8]) -> bool {
    is_token(name)
        && !is_among(name, &HOP_BY_HOP)
        && (!is_rewritten(name) || is_name(name, b"host"))
        && !is_client_name(name)
        && !is_conditional(name)
        && !is_name(name, b"via")
}

/// Whether a field may be forwarded in a trailer section.
pub(crate) fn may_be_trailer(name: &[u8], options: &ConnectionOptions<'_>) -> bool {
    !is_hop_by_hop(name, options)
        && !is_among(name, &NOT_IN_TRAILERS)
        && !is_rewritten(name)
        && !is_client_name(name)
        && !is_conditional(name)
}

/// Whether a name has only letters, digits and hyphens. A gateway may read another as a name with hyphens.
pub(crate) fn is_usual_name(name: &[u8]) -> bool {
    name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether a field has this name, as a gateway reads it: every character but letters and digits becomes the
/// same.
pub(crate) fn is_name(name: &[u8], other: &[u8]) -> bool {
    let canonical = |byte: u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    name.len() == other.len()
        && name.iter().zip(other).all(|(&byte, &other)| canonical(byte) == canonical(other))
}

fn is_among(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|other| is_name(name, other))
}

/// Iterates over the members of a comma-separated list of tokens.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Appends a field line.
pub(crate) fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a Via field for a message of this version (RFC 9110, section 7.6.3).
pub(crate) fn write_via(version: &[u8], pseudonym: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Via: ");
    out.extend_from_slice(version);
    out.push(b' ');
    out.extend_from_slice(pseudonym.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The hop of this proxy, as Forwarded and X-Forwarded-* report it.
pub(crate) struct Hop<'a> {
    /// The peer from which the request came.
    pub(crate) peer: &'a Peer,
    /// The host that the client used.
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) scheme: Scheme,
}

impl Hop<'_> {
    /// Appends the fields of this hop: RFC 7239, and the older ones that most origins read. `forwarded_for`
    /// are the values of earlier hops, of a trusted proxy.
    pub(crate) fn write(&self, earlier: &Earlier<'_>, out: &mut Vec<u8>) {
        let address = match self.peer {
            Peer::Ip(ip, _) => Some(ip.to_canonical()),
            Peer::Unix => None,
        };
        let node = plain(address);
        let (before, after) = if address.is_some_and(|ip| ip.is_ipv6()) { ("\"[", "]\"") } else { ("", "") };
        out.extend_from_slice(b"Forwarded: ");
        out.extend_from_slice(&earlier.forwarded());
        for part in ["for=", before, &node, after, ";proto=", self.scheme.name()] {
            out.extend_from_slice(part.as_bytes());
        }
        if let Some(host) = self.host {
            // A host has no byte that would need a backslash, but may have a colon.
            out.extend_from_slice(b";host=\"");
            out.extend_from_slice(host);
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\nX-Forwarded-For: ");
        out.extend_from_slice(&earlier.forwarded_for());
        out.extend_from_slice(node.as_bytes());
        out.extend_from_slice(b"\r\n");
        if !earlier.has_proto {
            write_field(b"X-Forwarded-Proto", self.scheme.name().as_bytes(), out);
        }
        if let Some(host) = self.host.filter(|_| !earlier.has_host) {
            write_field(b"X-Forwarded-Host", host, out);
        }
    }
}

/// The fields of earlier hops, if the peer is trusted to report them.
#[derive(Default)]
pub(crate) struct Earlier<'a> {
    forwarded: Vec<&'a [u8]>,
    forwarded_for: Vec<&'a [u8]>,
    has_proto: bool,
    has_host: bool,
}

impl<'a> Earlier<'a> {
    /// Takes a field that [names the client](is_client_name). Returns whether it is forwarded as it is.
    pub(crate) fn take(&mut self, name: &[u8], value: &'a [u8]) -> bool {
        if is_name(name, b"forwarded") {
            self.forwarded.push(value);
            return false;
        }
        if is_name(name, b"x-forwarded-for") {
            self.forwarded_for.push(value);
            return false;
        }
        self.has_proto |= is_name(name, b"x-forwarded-proto");
        self.has_host |= is_name(name, b"x-forwarded-host");
        true
    }

    /// Returns the hops before this one for Forwarded, each followed by a comma. If the trusted proxy writes
    /// X-Forwarded-For only, as most do, the hops of that field are copied into Forwarded (RFC 7239, section
    /// 7.4): otherwise the two fields would name different clients to the origin.
    fn forwarded(&self) -> Vec<u8> {
        if !self.forwarded.is_empty() {
            return joined(&self.forwarded);
        }
        let last_to_first = last_to_first(self.forwarded_for.iter().rev().copied());
        // Those that a client wrote need not be addresses.
        let nodes = last_to_first.map(|node| address_of(parse_node(node).unwrap_or(Node::Hidden)));
        let mut last: Vec<_> = nodes.take(FORWARDED_HOPS_MAX - 1).collect();
        last.reverse();
        last.into_iter().flat_map(|address| format!("for={}, ", quoted(address)).into_bytes()).collect()
    }

    /// Returns the hops before this one for X-Forwarded-For, in the same way.
    fn forwarded_for(&self) -> Vec<u8> {
        if !self.forwarded_for.is_empty() {
            return joined(&self.forwarded_for);
        }
        let hops = parse_forwarded(self.forwarded.iter().copied()).unwrap_or_default();
        let nodes = hops.into_iter().map(|hop| format!("{}, ", plain(address_of(hop.client))));
        nodes.flat_map(String::into_bytes).collect()
    }
}

fn address_of(node: Node) -> Option<IpAddr> {
    match node {
        Node::Ip(ip) => Some(ip),
        Node::Hidden => None,
    }
}

/// Returns a node of X-Forwarded-For.
fn plain(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "unknown".to_owned(), |ip| ip.to_string())
}

/// Returns a node of Forwarded (RFC 7239, section 6).
fn quoted(address: Option<IpAddr>) -> String {
    match address {
        Some(ip) if ip.is_ipv6() => format!("\"[{ip}]\""),
        _ => plain(address),
    }
}

/// Joins the lines of a list, each followed by a comma.
fn joined(lines: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        joined.extend_from_slice(line);
        joined.extend_from_slice(b", ");
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options<'a>(lines: &[&'a str]) -> ConnectionOptions<'a> {
        ConnectionOptions::of(lines.iter().map(|line| (&b"Connection"[..], line.as_bytes())))
    }

    #[test]
    fn fields_of_one_connection_are_those_of_the_list_and_of_the_connection_options() {
        let options = options(&["close, X-Own", "x-other ,"]);
        for name in ["Connection", "TE", "Keep-Alive", "transfer_encoding", "X-Own", "X-OTHER", "x_own"] {
            assert!(is_hop_by_hop(name.as_bytes(), &options), "{name}");
        }
        for name in ["Content-Type", "Trailer", "X-Owner", "Date"] {
            assert!(!is_hop_by_hop(name.as_bytes(), &options), "{name}");
        }
    }

    #[test]
    fn names_with_underscores_are_those_with_hyphens() {
        for name in ["X-Forwarded-For", "x_forwarded_for", "X-Forwarded_Anything", "Forwarded", "X.Real_IP"] {
            assert!(is_client_name(name.as_bytes()), "{name}");
        }
        assert!(is_rewritten(b"Content_Length") && is_rewritten(b"Proxy") && !is_rewritten(b"Proxying"));
    }

    #[test]
    fn a_hop_is_appended_to_the_earlier_ones_of_a_trusted_proxy() {
        let mut earlier = Earlier::default();
        assert!(!earlier.take(b"Forwarded", b"for=192.0.2.1"));
        assert!(!earlier.take(b"X-Forwarded-For", b"192.0.2.1"));
        assert!(earlier.take(b"X-Forwarded-Proto", b"https"));
        let mut out = Vec::new();
        let peer = Peer::Ip("2001:db8::1".parse().unwrap(), 7);
        Hop { peer: &peer, host: Some(b"a.example:80"), scheme: Scheme::Http }.write(&earlier, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Forwarded: for=192.0.2.1, for=\"[2001:db8::1]\";proto=http;host=\"a.example:80\"\r\n\
             X-Forwarded-For: 192.0.2.1, 2001:db8::1\r\nX-Forwarded-Host: a.example:80\r\n"
        );
    }

    #[test]
    fn the_hops_of_one_field_of_a_trusted_proxy_are_in_both() {
        let written = |name: &[u8], value: &[u8]| {
            let (mut earlier, mut out) = (Earlier::default(), Vec::new());
            earlier.take(name, value);
            let peer = Peer::Ip("127.0.0.1".parse().unwrap(), 7);
            Hop { peer: &peer, host: None, scheme: Scheme::Http }.write(&earlier, &mut out);
            String::from_utf8(out).unwrap()
        };
        let forwarded_for = written(b"X-Forwarded-For", b"nonsense,192.0.2.1, 2001:db8::1");
        assert!(
            forwarded_for.starts_with(
                "Forwarded: for=unknown, for=192.0.2.1, for=\"[2001:db8::1]\", for=127.0.0.1;proto=http\r\n\
                 X-Forwarded-For: nonsense,192.0.2.1, 2001:db8::1, 127.0.0.1\r\n"
            ),
            "{forwarded_for}"
        );
        let forwarded = written(b"Forwarded", b"for=_a, for=\"[2001:db8::1]:80\";proto=https");
        assert!(
            forwarded.starts_with(
                "Forwarded: for=_a, for=\"[2001:db8::1]:80\";proto=https, for=127.0.0.1;proto=http\r\n\
                 X-Forwarded-For: unknown, 2001:db8::1, 127.0.0.1\r\n"
            ),
            "{forwarded}"
        );
        let many = written(b"X-Forwarded-For", "192.0.2.1,".repeat(1000).as_bytes());
        let hops = many.lines().next().unwrap().matches("for=").count();
        assert_eq!(hops, FORWARDED_HOPS_MAX);
    }

    #[test]
    fn a_peer_of_a_unix_socket_is_unknown() {
        let mut out = Vec::new();
        Hop { peer: &Peer::Unix, host: None, scheme: Scheme::Https }.write(&Earlier::default(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "Forwarded: for=unknown;proto=https\r\nX-Forwarded-For: unknown\r\nX-Forwarded-Proto: https\r\n"
        );
    }

    #[test]
    fn trailers_that_frame_or_route_a_message_are_not_forwarded() {
        let none = options(&[]);
        for name in ["Content-Length", "Host", "Transfer-Encoding", "Set-Cookie", "X-Forwarded-For"] {
            assert!(!may_be_trailer(name.as_bytes(), &none), "{name}");
        }
        assert!(may_be_trailer(b"Digest", &none) && may_be_trailer(b"Server-Timing", &none));
    }
}
