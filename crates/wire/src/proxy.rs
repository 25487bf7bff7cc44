//! The PROXY protocol's header, versions 1 and 2: how a proxy that copies bytes reports its client's address
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).
//!
//! Not here: which peers may send one. Invariants: a header has one reading only, and the result does not
//! depend on how the input is split.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::decimal::decimal;
use crate::limits::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const LINE_START: &[u8; 6] = b"PROXY ";
/// Signature, version and command, family and protocol, length.
const FIXED_BYTES: usize = 16;

/// A parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The client's address and port. None if the proxy speaks for itself (LOCAL), does not know (UNKNOWN),
    /// or names a family other than TCP over IPv4 or IPv6. The connection's own peer address applies then.
    pub source: Option<SocketAddr>,
    /// Whether the client's connection to the proxy is encrypted by TLS, as a field of version 2 reports it.
    pub is_encrypted: bool,
    /// Length of the header in bytes; the proxied protocol begins after it.
    pub len: usize,
}

/// Bytes that are not a PROXY protocol header, or a header longer than the accepted maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a header of the PROXY protocol, version 1 or 2")]
pub struct BadHeader;

/// A version of the header's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    Line,
    /// Binary.
    Binary,
}

/// Appends a header for a connection from `source` to `destination`. Without both addresses, or if they are
/// of different families, the header states that the client is unknown.
pub fn write(
    version: Version,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    out: &mut Vec<u8>,
) {
    let canonical = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
    let both = source.map(canonical).zip(destination.map(canonical));
    let both = both.filter(|(source, to)| source.is_ipv4() == to.is_ipv4());
    match version {
        Version::Line => write_line(both, out),
        Version::Binary => write_binary(both, out),
    }
}

fn write_line(addresses: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    out.extend_from_slice(LINE_START);
    let line = addresses.map_or_else(
        || "UNKNOWN\r\n".to_owned(),
        |(source, to)| {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            format!("{family} {} {} {} {}\r\n", source.ip(), to.ip(), source.port(), to.port())
        },
    );
    out.extend_from_slice(line.as_bytes());
}

fn write_binary(addresses: Option<(SocketAddr, SocketAddr)>, out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    let mut ip = Vec::with_capacity(36);
    for at in addresses.into_iter().flat_map(|(source, to)| [source, to]) {
        match at.ip() {
            IpAddr::V4(at) => ip.extend_from_slice(&at.octets()),
            IpAddr::V6(at) => ip.extend_from_slice(&at.octets()),
        }
    }
    for at in addresses.into_iter().flat_map(|(source, to)| [source, to]) {
        ip.extend_from_slice(&at.port().to_be_bytes());
    }
    // Version 2 and the command: PROXY, or LOCAL for an unknown client, with no family.
    let (command, family) = match addresses {
        None => (0x20, 0x00),
        Some((source, _)) if source.is_ipv4() => (0x21, 0x11),
        Some(_) => (0x21, 0x21),
    };
    out.extend_from_slice(&[command, family]);
    out.extend_from_slice(&u16::try_from(ip.len()).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(&ip);
}

/// Parses a header from the first bytes of a connection. `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// [`BadHeader`], as soon as no continuation of `bytes` could be a header.
pub fn parse(bytes: &[u8]) -> Result<Option<Header>, BadHeader> {
    let may_begin = |with: &[u8]| bytes.iter().zip(with).all(|(byte, wanted)| byte == wanted);
    if may_begin(LINE_START) {
        parse_line(bytes)
    } else if may_begin(SIGNATURE) {
        parse_binary(bytes)
    } else {
        Err(BadHeader)
    }
}

fn parse_line(bytes: &[u8]) -> Result<Option<Header>, BadHeader> {
    let within = bytes.get(..PROXY_LINE_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = within.iter().position(|&byte| byte == b'\n') else {
        return if within.len() == PROXY_LINE_BYTES_MAX { Err(BadHeader) } else { Ok(None) };
    };
    let line =
        within.get(LINE_START.len()..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(BadHeader)?;
    Ok(Some(Header { source: source_of(line)?, is_encrypted: false, len: end + 1 }))
}

/// Parses the source address in a version 1 line, passed without `PROXY ` and CRLF.
fn source_of(line: &[u8]) -> Result<Option<SocketAddr>, BadHeader> {
    let line = core::str::from_utf8(line).map_err(|_| BadHeader)?;
    let mut words = line.split(' ');
    let family = words.next();
    if family == Some("UNKNOWN") {
        // "the receiver must ignore anything presented before the CRLF is found" (section 2.1).
        return Ok(None);
    }
    let mut word = || words.next().ok_or(BadHeader);
    let (from, to, from_port, to_port) = (word()?, word()?, word()?, word()?);
    let ip = |text: &str| -> Result<IpAddr, BadHeader> {
        match family {
            Some("TCP4") => text.parse().map(IpAddr::V4).map_err(|_| BadHeader),
            Some("TCP6") => text.parse().map(IpAddr::V6).map_err(|_| BadHeader),
            _ => Err(BadHeader),
        }
    };
    let (from, _) = (ip(from)?, ip(to)?);
    let (from_port, _) = (port(from_port)?, port(to_port)?);
    if words.next().is_some() {
        return Err(BadHeader);
    }
    Ok(Some(SocketAddr::new(from.to_canonical(), from_port)))
}

/// Parses a port without leading zeros.
fn port(text: &str) -> Result<u16, BadHeader> {
    let is_plain = text == "0" || !text.starts_with('0');
    let number = decimal(text.as_bytes()).filter(|_| is_plain).ok_or(BadHeader)?;
    u16::try_from(number).map_err(|_| BadHeader)
}

fn parse_binary(bytes: &[u8]) -> Result<Option<Header>, BadHeader> {
    let rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    let is_proxied = match rest.first() {
        None => return Ok(None),
        Some(0x20) => false,
        Some(0x21) => true,
        Some(_) => return Err(BadHeader),
    };
    let Some(&family) = rest.get(1) else { return Ok(None) };
    let Some(address_bytes) = address_bytes(family) else { return Err(BadHeader) };
    let Some(length) = rest.get(2..4).and_then(|length| length.try_into().ok()) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(length));
    let len = FIXED_BYTES + length;
    if len > PROXY_HEADER_BYTES_MAX || (is_proxied && length < address_bytes) {
        return Err(BadHeader);
    }
    let Some(addresses) = bytes.get(FIXED_BYTES..len) else { return Ok(None) };
    let source = if is_proxied { binary_source(family, addresses) } else { None };
    let fields = addresses.get(address_bytes..).unwrap_or_default();
    Ok(Some(Header { source, is_encrypted: is_proxied && has_tls(fields), len }))
}

/// Whether the fields behind the addresses report a client that is connected by TLS: `PP2_TYPE_SSL` with
/// `PP2_CLIENT_SSL` (section 2.2.5). Fields behind a malformed one are not read.
fn has_tls(mut fields: &[u8]) -> bool {
    const TYPE_TLS: u8 = 0x20;
    const CLIENT_TLS: u8 = 0x01;
    while let Some((&[kind, high, low], rest)) = fields.split_first_chunk() {
        let Some((value, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low]))) else {
            return false;
        };
        if kind == TYPE_TLS {
            return value.first().is_some_and(|client| client & CLIENT_TLS != 0);
        }
        fields = rest;
    }
    false
}

/// Returns the length of the addresses of a family and protocol in bytes, or None if the specification
/// rejects the value.
fn address_bytes(family: u8) -> Option<usize> {
    match family {
        0x00 => Some(0),
        0x11 | 0x12 => Some(12),
        0x21 | 0x22 => Some(36),
        0x31 | 0x32 => Some(216),
        _ => None,
    }
}

/// Returns the source address of TCP over IPv4 or IPv6.
fn binary_source(family: u8, addresses: &[u8]) -> Option<SocketAddr> {
    let port = |at: usize| addresses.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let (ip, port) = match family {
        0x11 => (IpAddr::V4(Ipv4Addr::from(*addresses.first_chunk::<4>()?)), port(8)?),
        0x21 => (IpAddr::V6(Ipv6Addr::from(*addresses.first_chunk::<16>()?)), port(32)?),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}
