//! Finds the client of a request from a trusted proxy: the right-most address that is not itself trusted.
//!
//! Fields of a peer that is not trusted are not read. Invariant: a client cannot choose its own address by a
//! field that its proxy passes on unchanged.

use plimsoll_io::{Networks, Peer};
use plimsoll_wire::http::forwarded::{
    Malformed, Node, forwarded_hosts, last_to_first, parse_forwarded, parse_node,
};
use plimsoll_wire::http::head::Head;

const FORWARDED: &str = "Forwarded";
const FORWARDED_FOR: &str = "X-Forwarded-For";
const FORWARDED_HOST: &str = "X-Forwarded-Host";
const FORWARDED_PROTO: &str = "X-Forwarded-Proto";

/// The reason why the client of a request is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownClient {
    /// A field violates its grammar.
    Malformed,
    /// The two fields name different clients: the proxy writes one, and the client wrote the other.
    Disagreement,
}

impl UnknownClient {
    /// Returns the text for the client.
    #[must_use]
    pub(super) fn detail(self) -> &'static str {
        match self {
            UnknownClient::Malformed => "Forwarded or X-Forwarded-For is malformed.",
            UnknownClient::Disagreement => {
                "Forwarded and X-Forwarded-For name different clients. Send neither; the proxy has to remove \
                 the one that it does not write."
            }
        }
    }
}

impl From<Malformed> for UnknownClient {
    fn from(_: Malformed) -> UnknownClient {
        UnknownClient::Malformed
    }
}

/// Returns the client of a request from `proxy`, which is trusted. It is the proxy itself if no field names
/// another.
///
/// # Errors
/// The fields do not name one client.
pub(super) fn client(
    head: &Head,
    block: &[u8],
    proxy: &Peer,
    trusted: &Networks,
) -> Result<Peer, UnknownClient> {
    let (forwarded, forwarded_for) = (lines(head, block, FORWARDED), lines(head, block, FORWARDED_FOR));
    let by_forwarded = if forwarded.is_empty() {
        None
    } else {
        let hops = parse_forwarded(forwarded.into_iter())?;
        last_untrusted(hops.iter().rev().map(|hop| Ok(hop.client)), proxy, trusted)?
    };
    let elements = last_to_first(forwarded_for.into_iter().rev());
    let by_forwarded_for = last_untrusted(elements.map(parse_node), proxy, trusted)?;
    match (by_forwarded, by_forwarded_for) {
        (None, None) => Ok(proxy.clone()),
        (Some(client), None) | (None, Some(client)) => Ok(client),
        (Some(one), Some(other)) if one == other => Ok(one),
        (Some(_), Some(_)) => Err(UnknownClient::Disagreement),
    }
}

/// Whether a request from a trusted proxy came to it over HTTPS. A field that proxies append to has
/// several values; all of them count, because the first ones may be the client's. If both fields report a
/// scheme, both count.
pub(super) fn is_https(head: &Head, block: &[u8], trusted: &Networks) -> bool {
    let is_https = |value: &[u8]| value.eq_ignore_ascii_case(b"https");
    let schemes = lines(head, block, FORWARDED_PROTO);
    let of_field = (!schemes.is_empty()).then(|| {
        schemes.iter().flat_map(|line| line.split(|byte| *byte == b',')).all(|one| is_https(one.trim_ascii()))
    });
    let hops = parse_forwarded(lines(head, block, FORWARDED).into_iter()).unwrap_or_default();
    // The hop that names the client is the one that received the request from it.
    let of_client = hops.iter().rev().find(|hop| match hop.client {
        Node::Ip(ip) => !trusted.contain(&Peer::Ip(ip, 0)),
        Node::Hidden => true,
    });
    let of_hop = of_client.or(hops.first()).and_then(|hop| hop.proto).map(is_https);
    (of_field.is_some() || of_hop.is_some()) && of_field.unwrap_or(true) && of_hop.unwrap_or(true)
}

/// Whether a field reports a hop without HTTPS, or is malformed. A request without such fields reports
/// nothing.
pub(super) fn reports_plain(head: &Head, block: &[u8]) -> bool {
    let is_https = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"https");
    let schemes = lines(head, block, FORWARDED_PROTO);
    let mut schemes = schemes.iter().flat_map(|line| line.split(|byte| *byte == b','));
    let hops = parse_forwarded(lines(head, block, FORWARDED).into_iter());
    let is_plain_hop =
        hops.map_or(true, |hops| hops.iter().any(|hop| hop.proto.is_some_and(|it| !is_https(it))));
    is_plain_hop || schemes.any(|scheme| !is_https(scheme))
}

/// Walks from the last hop to the first while these are trusted. A hop that hides its client is taken for the
/// client. `None` if there are no hops.
fn last_untrusted(
    hops: impl Iterator<Item = Result<Node, Malformed>>,
    proxy: &Peer,
    trusted: &Networks,
) -> Result<Option<Peer>, UnknownClient> {
    let mut client = None;
    for hop in hops {
        let Node::Ip(ip) = hop? else { return Ok(Some(client.unwrap_or_else(|| proxy.clone()))) };
        let hop = Peer::Ip(ip, 0);
        let is_trusted = trusted.contain(&hop);
        client = Some(hop);
        if !is_trusted {
            break;
        }
    }
    Ok(client)
}

fn lines<'a>(head: &Head, block: &'a [u8], name: &str) -> Vec<&'a [u8]> {
    let of_name = head.fields(block).filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
    of_name.map(|(_, value)| value).filter(|value| !value.is_empty()).collect()
}

/// Returns the authorities that clients used, as trusted proxies report them: `X-Forwarded-Host`, and `host`
/// of `Forwarded`.
pub(super) fn hosts<'a>(head: &Head, block: &'a [u8]) -> Vec<&'a [u8]> {
    let hops = parse_forwarded(lines(head, block, FORWARDED).into_iter()).unwrap_or_default();
    let of_hops = hops.into_iter().filter_map(|hop| hop.host);
    of_hops.chain(lines(head, block, FORWARDED_HOST).into_iter().flat_map(forwarded_hosts)).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http::head::{HeadLimits, parse_head};

    use super::*;

    fn client_of(fields: &str) -> Result<String, UnknownClient> {
        let block = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let trusted = Networks::from(vec!["127.0.0.1".parse().unwrap(), "10.0.0.0/8".parse().unwrap()]);
        let proxy = Peer::Ip([127, 0, 0, 1].into(), 40_000);
        client(&head, block.as_bytes(), &proxy, &trusted).map(|peer| peer.to_string())
    }

    #[test]
    fn the_right_most_untrusted_address_is_the_client() {
        for (fields, client) in [
            ("", "127.0.0.1"),
            ("X-Forwarded-For:\r\n", "127.0.0.1"),
            ("X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"),
            ("X-Forwarded-For: 203.0.113.9, 192.0.2.1\r\n", "192.0.2.1"),
            ("X-Forwarded-For: 203.0.113.9, 192.0.2.1, 10.1.2.3\r\n", "192.0.2.1"),
            ("X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"),
            ("X-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 10.1.2.3\r\n", "192.0.2.1"),
            ("X-Forwarded-For: nonsense, 192.0.2.1\r\n", "192.0.2.1"),
            ("X-Forwarded-For: 10.9.9.9, 10.1.2.3\r\n", "10.9.9.9"),
            ("X-Forwarded-For: unknown\r\n", "127.0.0.1"),
            ("X-Forwarded-For: 192.0.2.1, unknown, 10.1.2.3\r\n", "10.1.2.3"),
            ("Forwarded: for=203.0.113.9, for=\"[2001:db8::1]:80\";host=h, for=10.1.2.3\r\n", "2001:db8::1"),
            ("Forwarded: proto=https\r\n", "127.0.0.1"),
            ("Forwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.1:99\r\n", "192.0.2.1"),
        ] {
            assert_eq!(client_of(fields).as_deref(), Ok(client), "{fields}");
        }
    }

    #[test]
    fn an_ambiguous_or_malformed_client_address_is_refused() {
        for (fields, reason) in [
            ("X-Forwarded-For: 192.0.2.1, nonsense\r\n", UnknownClient::Malformed),
            ("Forwarded: for=\"x, for=192.0.2.1\r\n", UnknownClient::Malformed),
            ("Forwarded: for=203.0.113.9\r\nX-Forwarded-For: 192.0.2.1\r\n", UnknownClient::Disagreement),
            ("Forwarded: for=unknown\r\nX-Forwarded-For: 192.0.2.1\r\n", UnknownClient::Disagreement),
        ] {
            assert_eq!(client_of(fields), Err(reason), "{fields}");
        }
    }

    #[test]
    fn a_request_came_over_https_only_if_every_field_with_a_scheme_says_so() {
        for (fields, expected) in [
            ("", false),
            ("X-Forwarded-Proto: https\r\n", true),
            ("X-Forwarded-Proto: HTTPS\r\n", true),
            ("X-Forwarded-Proto: http\r\n", false),
            ("X-Forwarded-Proto: https, http\r\n", false),
            ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n", false),
            ("X-Forwarded-Proto:\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=https\r\n", true),
            ("Forwarded: for=192.0.2.1;proto=http\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=https, for=10.1.2.3;proto=http\r\n", true),
            ("Forwarded: for=203.0.113.9;proto=https, for=192.0.2.1;proto=http\r\n", false),
            ("Forwarded: for=10.1.2.3;proto=https\r\n", true),
            ("Forwarded: for=192.0.2.1\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=https\r\nX-Forwarded-Proto: http\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=\"x\r\n", false),
        ] {
            let block = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
            let trusted = Networks::from(vec!["10.0.0.0/8".parse().unwrap()]);
            assert_eq!(is_https(&head, block.as_bytes(), &trusted), expected, "{fields}");
        }
    }

    #[test]
    fn a_request_is_reported_as_plain_by_any_hop_without_https() {
        for (fields, expected) in [
            ("", false),
            ("X-Forwarded-For: 192.0.2.1\r\nVia: 1.1 proxy\r\n", false),
            ("X-Forwarded-Proto:\r\n", false),
            ("X-Forwarded-Proto: https\r\n", false),
            ("X-Forwarded-Proto: http\r\n", true),
            ("X-Forwarded-Proto: HTTPS, http\r\n", true),
            ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n", true),
            ("Forwarded: for=192.0.2.1\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=https\r\n", false),
            ("Forwarded: for=192.0.2.1;proto=https, for=10.1.2.3;proto=http\r\n", true),
            ("Forwarded: for=192.0.2.1;proto=\"x\r\n", true),
        ] {
            let block = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let head = parse_head(block.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
            assert_eq!(reports_plain(&head, block.as_bytes()), expected, "{fields}");
        }
    }

    #[test]
    fn hosts_come_from_forwarded_and_x_forwarded_host() {
        let block = b"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-Host: a.example, b.example:1\r\n\
                      Forwarded: for=_x;host=c.example\r\n\r\n";
        let head = parse_head(block, &HeadLimits::default()).unwrap().unwrap();
        assert_eq!(hosts(&head, block), [&b"c.example"[..], b"a.example", b"b.example:1"]);
    }
}
