//! The fields in which proxies report a request's client: `Forwarded` (RFC 7239), `X-Forwarded-For` and
//! `X-Forwarded-Host`.
//!
//! Not here: which proxies are trusted. Invariant: each proxy appends its hop, so a reader that must find
//! its own proxies walks from the end and meets them first.

use core::net::{IpAddr, SocketAddr};

use super::grammar::{is_host, is_tchar, list, split_unquoted, trim_ows};
use crate::limits::FORWARDED_HOPS_MAX;

/// A party to a request, in a proxy's notation (RFC 7239, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// An address. The port, if any, is ignored.
    Ip(IpAddr),
    /// The proxy does not know or does not reveal the address: `unknown`, an obfuscated identifier such as
    /// `_hidden`, or nginx's `unix:`.
    Hidden,
}

/// One element of `Forwarded`, added by one proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop<'a> {
    /// The `for` parameter: the peer that sent the request to the proxy. Hidden if absent.
    pub client: Node,
    /// The `host` parameter: the Host field that the proxy received.
    pub host: Option<&'a [u8]>,
    /// The `proto` parameter: the scheme by which the proxy received the request.
    pub proto: Option<&'a [u8]>,
}

/// A field that violates its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a field in which proxies name their client is malformed")]
pub struct Malformed;

/// Parses the values of all lines of `Forwarded`, in order.
///
/// # Errors
/// [`Malformed`], also for more than [`FORWARDED_HOPS_MAX`] hops.
pub fn parse_forwarded<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Hop<'a>>, Malformed> {
    let mut hops = Vec::new();
    for element in lines.flat_map(list) {
        if hops.len() == FORWARDED_HOPS_MAX {
            return Err(Malformed);
        }
        hops.push(hop(element)?);
    }
    Ok(hops)
}

/// `forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )` (section 4).
fn hop(element: &[u8]) -> Result<Hop<'_>, Malformed> {
    let (mut client, mut host, mut proto) = (None, None, None);
    for pair in split_unquoted(element, b';').filter(|pair| !pair.is_empty()) {
        let equals = pair.iter().position(|&byte| byte == b'=').ok_or(Malformed)?;
        let (name, value) = (&pair[..equals], plain(&pair[equals + 1..])?);
        if name.is_empty() || !name.iter().copied().all(is_tchar) {
            return Err(Malformed);
        }
        // "Each parameter MUST NOT occur more than once per field-value" (section 4), which is per element.
        let is_repeated = if name.eq_ignore_ascii_case(b"for") {
            client.replace(parse_node(value)?).is_some()
        } else if name.eq_ignore_ascii_case(b"host") {
            let value = Some(value).filter(|value| is_host(value)).ok_or(Malformed)?;
            host.replace(value).is_some()
        } else if name.eq_ignore_ascii_case(b"proto") {
            proto.replace(value).is_some()
        } else {
            false
        };
        if is_repeated {
            return Err(Malformed);
        }
    }
    Ok(Hop { client: client.unwrap_or(Node::Hidden), host, proto })
}

/// Parses a token or a quoted string and returns it without quotes. No node and no host needs a backslash.
fn plain(value: &[u8]) -> Result<&[u8], Malformed> {
    let quoted = value.strip_prefix(b"\"").map(|rest| rest.strip_suffix(b"\"").ok_or(Malformed));
    let (text, is_byte): (_, fn(u8) -> bool) = match quoted {
        Some(text) => (text?, |byte| byte != b'"' && byte != b'\\'),
        None => (value, is_tchar),
    };
    let is_token = quoted.is_some() || !text.is_empty();
    if is_token && text.iter().copied().all(is_byte) { Ok(text) } else { Err(Malformed) }
}

/// Parses a node of `Forwarded` or an element of `X-Forwarded-For`: an address, bare or in brackets, with
/// or without a port, or a word that hides it.
///
/// # Errors
/// [`Malformed`]
pub fn parse_node(value: &[u8]) -> Result<Node, Malformed> {
    if value.eq_ignore_ascii_case(b"unknown") || value.starts_with(b"unix:") || is_obfuscated(value) {
        return Ok(Node::Hidden);
    }
    let text = core::str::from_utf8(value).map_err(|_| Malformed)?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match (text.parse::<IpAddr>(), bare) {
        (Ok(ip), _) => ip,
        (Err(_), Some(bare)) => IpAddr::V6(bare.parse().map_err(|_| Malformed)?),
        (Err(_), None) => with_port(text)?,
    };
    Ok(Node::Ip(ip.to_canonical()))
}

/// Parses a node with `node-port = port / obfport`.
fn with_port(text: &str) -> Result<IpAddr, Malformed> {
    let (node, port) = text.rsplit_once(':').ok_or(Malformed)?;
    let port = if is_obfuscated(port.as_bytes()) { "0" } else { port };
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let at: SocketAddr = format!("{node}:{port}").parse().map_err(|_| Malformed)?;
    if is_port { Ok(at.ip()) } else { Err(Malformed) }
}

/// Matches `obfnode = "_" 1*( ALPHA / DIGIT / "." / "_" / "-")`, with an optional port.
fn is_obfuscated(value: &[u8]) -> bool {
    let is_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-:".contains(byte);
    matches!(value, [b'_', rest @ ..] if !rest.is_empty() && rest.iter().all(is_byte))
}

/// Iterates over the elements of `X-Forwarded-For` from the last to the first. `lines` must be in that
/// order too. Elements are not validated: those that clients wrote themselves need not be addresses.
pub fn last_to_first<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let elements = |line: &'a [u8]| line.rsplit(|&byte| byte == b',').map(trim_ows);
    lines.flat_map(elements).filter(|element| !element.is_empty())
}

/// Iterates over the hosts of a line of `X-Forwarded-Host`. Invalid hosts are skipped.
pub fn forwarded_hosts(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    list(line).filter(|host| is_host(host))
}
