//! Addresses of data connections: the arguments of PORT, EPRT and EPSV, and the texts of the replies to
//! PASV and EPSV.
//!
//! Not here: TCP, and which addresses are allowed, which the conversation checks for each one. Invariants:
//! a written address parses as the same address; an unknown protocol is not reported as a syntax error,
//! because it has a code of its own (522).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use crate::decimal::decimal;

/// The reason why an argument is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// The argument cannot be parsed: 501.
    #[error("The address cannot be understood.")]
    Form,
    /// A protocol other than IPv4 and IPv6: 522, whose text names the known ones (RFC 2428, section 2).
    #[error("Network protocol not supported, use (1,2)")]
    Protocol,
}

impl BadAddress {
    /// Returns the code of the reply.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::Form => 501,
            Self::Protocol => 522,
        }
    }
}

/// Reads PORT's `h1,h2,h3,h4,p1,p2`: "the value of each field is transmitted as a decimal number (in
/// character string representation)" (RFC 959, section 4.1.2).
///
/// # Errors
///
/// [`BadAddress::Form`].
pub fn parse_port(argument: &[u8]) -> Result<SocketAddrV4, BadAddress> {
    let mut fields = argument.split(|&byte| byte == b',').map(octet);
    let mut next = || fields.next().flatten().ok_or(BadAddress::Form);
    let ip = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    let port = u16::from_be_bytes([next()?, next()?]);
    if fields.next().is_some() { Err(BadAddress::Form) } else { Ok(SocketAddrV4::new(ip, port)) }
}

fn octet(field: &[u8]) -> Option<u8> {
    decimal(field).and_then(|number| u8::try_from(number).ok())
}

/// Formats the argument of PORT for an address.
#[must_use]
pub fn port_argument(address: SocketAddrV4) -> String {
    let [a, b, c, d] = address.ip().octets();
    let [high, low] = address.port().to_be_bytes();
    format!("{a},{b},{c},{d},{high},{low}")
}

/// Reads EPRT's `<d><net-prt><d><net-addr><d><tcp-port><d>`, whose delimiter may be any byte of 33 to 126
/// (RFC 2428, section 2). An IPv4-mapped IPv6 address is returned unchanged: compare canonical forms.
///
/// # Errors
///
/// [`BadAddress`].
pub fn parse_eprt(argument: &[u8]) -> Result<SocketAddr, BadAddress> {
    let [protocol, ip, port] = delimited(argument).ok_or(BadAddress::Form)?;
    let ip = match decimal(protocol).ok_or(BadAddress::Form)? {
        1 => text(ip).and_then(|ip| ip.parse::<Ipv4Addr>().ok()).map(IpAddr::V4),
        2 => text(ip).and_then(|ip| ip.parse::<Ipv6Addr>().ok()).map(IpAddr::V6),
        _ => return Err(BadAddress::Protocol),
    };
    let port = decimal(port).and_then(|port| u16::try_from(port).ok());
    Ok(SocketAddr::new(ip.ok_or(BadAddress::Form)?, port.ok_or(BadAddress::Form)?))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Returns the three fields between four delimiters. The first byte is the delimiter.
fn delimited(bytes: &[u8]) -> Option<[&[u8]; 3]> {
    let [delimiter @ 33..=126, fields @ .., end] = bytes else { return None };
    let mut fields = fields.split(|byte| byte == delimiter);
    let three = [fields.next()?, fields.next()?, fields.next()?];
    (end == delimiter && fields.next().is_none()).then_some(three)
}

/// Formats the argument of EPRT for an address.
#[must_use]
pub fn eprt_argument(address: SocketAddr) -> String {
    let protocol = if address.is_ipv4() { 1 } else { 2 };
    format!("|{protocol}|{}|{}|", address.ip(), address.port())
}

/// An argument of EPSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epsv {
    /// The protocol of the control connection.
    Same,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// No connection. The client promises to use no other command to set up data connections: "the server
    /// MUST reject all data connection setup commands other than EPSV" from then on (RFC 2428, section 4).
    All,
}

/// Reads EPSV's argument.
///
/// # Errors
///
/// [`BadAddress`].
pub fn parse_epsv(argument: &[u8]) -> Result<Epsv, BadAddress> {
    match argument {
        b"" => Ok(Epsv::Same),
        b"1" => Ok(Epsv::V4),
        b"2" => Ok(Epsv::V6),
        _ if argument.eq_ignore_ascii_case(b"ALL") => Ok(Epsv::All),
        _ => Err(decimal(argument).map_or(BadAddress::Form, |_| BadAddress::Protocol)),
    }
}

/// Formats the text of 227, which answers PASV: the address in the form of PORT's argument, in parentheses.
#[must_use]
pub fn pasv_text(address: SocketAddrV4) -> String {
    format!("Entering Passive Mode ({}).", port_argument(address))
}

/// Formats the text of 229, which answers EPSV: the port alone, since the address is the control
/// connection's (RFC 2428, section 3).
#[must_use]
pub fn epsv_text(port: u16) -> String {
    format!("Entering Extended Passive Mode (|||{port}|)")
}

/// Reads the text of a 227: "a User-FTP program that interprets the PASV reply must scan the reply for the
/// first digit of the host and port numbers" (RFC 1123, section 4.1.2.6).
#[must_use]
pub fn parse_pasv_text(text: &[u8]) -> Option<SocketAddrV4> {
    let start = text.iter().position(u8::is_ascii_digit)?;
    let numbers = text.get(start..)?;
    let end = numbers.iter().position(|byte| !byte.is_ascii_digit() && *byte != b',');
    parse_port(numbers.get(..end.unwrap_or(numbers.len()))?).ok()
}

/// Parses the port in the text of a 229, between its parentheses.
#[must_use]
pub fn parse_epsv_text(text: &[u8]) -> Option<u16> {
    let start = text.iter().position(|&byte| byte == b'(')?;
    let rest = text.get(start + 1..)?;
    let end = rest.iter().rposition(|&byte| byte == b')')?;
    let [_, _, port] = delimited(rest.get(..end)?)?;
    decimal(port).and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}
