//! WebDAV (RFC 4918): its fields, the bodies of PROPFIND, PROPPATCH and LOCK, and multi-status responses.
//!
//! Not here: their effect. Invariant: a destination is a path on this server, or is returned with its host,
//! which the caller must compare with that of the request.

pub mod if_field;
pub mod lock;
pub mod multistatus;
pub mod property;
pub mod request;
mod xml;

use super::target::{BadTarget, parse_target};

/// The depth to which a request applies to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The resource alone.
    Zero,
    /// The resource and its direct members.
    One,
    /// The resource and everything below it.
    Infinity,
}

impl Depth {
    /// Parses a Depth. Literals of the grammar are case-insensitive.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        match value {
            b"0" => Some(Self::Zero),
            b"1" => Some(Self::One),
            _ => value.eq_ignore_ascii_case(b"infinity").then_some(Self::Infinity),
        }
    }
}

/// Parses an Overwrite: whether an existing resource at the destination may be replaced. "If the overwrite
/// header is not included in a COPY or MOVE request, then the resource MUST treat the request as if it has
/// an overwrite header of value "T"": the caller applies this default.
#[must_use]
pub fn parse_overwrite(value: &[u8]) -> Option<bool> {
    match value {
        b"T" | b"t" => Some(true),
        b"F" | b"f" => Some(false),
        _ => None,
    }
}

/// The destination of a MOVE or COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The path as sent: not decoded.
    pub path: &'a [u8],
    /// The host and port, if the value was an absolute URL.
    pub authority: Option<&'a [u8]>,
}

/// Parses a Destination: `Simple-ref = absolute-URI | ( path-absolute [ "?" query ] )` (section 8.3).
///
/// # Errors
///
/// A [`BadTarget`]. [`BadTarget::Form`] also if the value has a query, since no file here has one.
pub fn parse_destination(value: &[u8]) -> Result<Destination<'_>, BadTarget> {
    let target = parse_target(value)?;
    if target.query.is_some() || !target.path.starts_with(b"/") {
        return Err(BadTarget::Form);
    }
    Ok(Destination { path: target.path, authority: target.authority })
}

impl Destination<'_> {
    /// Returns whether the destination is on the server that `host` names: the authority of the request
    /// itself. Case and the scheme's default port make no difference.
    #[must_use]
    pub fn is_on(&self, host: Option<&[u8]>) -> bool {
        match (self.authority, host) {
            (None, _) => true,
            (Some(authority), Some(host)) => {
                without_default_port(authority).eq_ignore_ascii_case(without_default_port(host))
            }
            (Some(_), None) => false,
        }
    }

    /// As [`Destination::is_on`], for a `host` that a proxy reports: without a port, it stands for every
    /// port. Proxies often report the name alone, as nginx's `$host`.
    #[must_use]
    pub fn is_on_reported(&self, host: &[u8]) -> bool {
        let is_same_name = |authority: &[u8]| without_port(authority).eq_ignore_ascii_case(host);
        self.is_on(Some(host)) || self.authority.is_some_and(is_same_name)
    }
}

/// Strips a port of any number.
fn without_port(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|byte| !byte.is_ascii_digit()) {
        Some(colon) if authority.get(colon) == Some(&b':') => authority.get(..colon).unwrap_or_default(),
        _ => authority,
    }
}

/// Strips the default port of either scheme: behind a TLS terminator, one of the two authorities may be for
/// `https` and the other for `http`.
fn without_default_port(authority: &[u8]) -> &[u8] {
    let suffixes: [&[u8]; 3] = [b":80", b":443", b":"];
    suffixes.iter().find_map(|suffix| authority.strip_suffix(*suffix)).unwrap_or(authority)
}
