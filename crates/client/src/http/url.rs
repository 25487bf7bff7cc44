//! A server's URL as a person writes it: `https://HOST:PORT/BASE`, the same with `http`, or `unix:PATH`.
//!
//! It does not resolve names. Invariants: no part of a URL is ignored. A password in it is refused, since it
//! would end up in logs.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use plimsoll_io::Address;
use plimsoll_wire::host::is_localhost;
use plimsoll_wire::http::target::parse_target;

/// The ports of URLs without one.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// A server's address, and the path below which its resources are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub(super) address: ServerAddress,
    /// The value of the Host field.
    pub(super) authority: String,
    /// The prefix of every target; empty, or begins with a slash and does not end in one.
    pub(super) base: String,
    is_https: bool,
}

/// The address to connect to: known, or to be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerAddress {
    Known(Vec<Address>),
    /// A name, or an IPv6 address with a zone: only the operating system knows the zones of a host.
    Named {
        host: String,
        port: u16,
    },
}

/// A URL that cannot be used, with advice on what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// A name or a password before the host.
    #[error("A server's URL must have no name or password in it. Log in instead.")]
    Login,
    /// Anything else.
    #[error("A server's URL must be https://HOST, https://HOST:PORT, http://HOST:PORT/PATH or unix:PATH.")]
    Form,
}

impl Url {
    /// Returns the host and port as they were written, but without a zone, for the Host field.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the prefix of every target: empty, or begins with a slash and does not end in one.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base
    }

    /// Returns whether connections to the server are encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the host as it was written, but without brackets and zone: the name in its certificate.
    #[must_use]
    pub fn host(&self) -> &str {
        let (host, _) = split_port(&self.authority);
        host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
    }

    /// Returns whether the server is reached by a Unix socket.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.unix_socket().is_some()
    }

    /// Returns the address of the Unix socket by which the server is reached, if it is.
    #[must_use]
    pub fn unix_socket(&self) -> Option<&Address> {
        match &self.address {
            ServerAddress::Known(addresses) => match addresses.as_slice() {
                [at @ Address::Unix(_)] => Some(at),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the port that the server is reached at, if it is reached by IP.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.address {
            ServerAddress::Named { port, .. } => Some(*port),
            ServerAddress::Known(addresses) => addresses.iter().find_map(|at| match at {
                Address::Ip(at) => Some(at.port()),
                Address::Unix(_) => None,
            }),
        }
    }

    /// Returns whether both are the same server by their schemes and addresses, whatever the case and form of
    /// the URLs. Looks up no name.
    #[must_use]
    pub fn is_same_server(&self, other: &Url) -> bool {
        if self.is_https != other.is_https {
            return false;
        }
        match (&self.address, &other.address) {
            (
                ServerAddress::Named { host, port },
                ServerAddress::Named { host: other_host, port: other_port },
            ) => host.eq_ignore_ascii_case(other_host) && port == other_port,
            (one, other) => one == other,
        }
    }

    /// Returns the path of a target below this server's base, for fields that name another resource
    /// (Destination).
    #[must_use]
    pub fn path_of(&self, target: &str) -> String {
        format!("{}{target}", self.base)
    }
}

impl FromStr for Url {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Url, BadUrl> {
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(path).ok_or(BadUrl::Form);
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http") => with_authority(text, false),
            Some("https") => with_authority(text, true),
            _ => Err(BadUrl::Form),
        }
    }
}

fn unix(path: &str) -> Option<Url> {
    let address = ServerAddress::Known(vec![Address::Unix(PathBuf::from(path))]);
    let (authority, base, is_https) = ("localhost".to_owned(), String::new(), false);
    (!path.is_empty()).then_some(Url { address, authority, base, is_https })
}

fn with_authority(text: &str, is_https: bool) -> Result<Url, BadUrl> {
    let (scheme, rest) = text.split_once("://").ok_or(BadUrl::Form)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(BadUrl::Login);
    }
    let (text, zone) = match split_zone(authority) {
        Some((authority, zone)) => (Cow::Owned(format!("{scheme}://{authority}{path}")), Some(zone)),
        None => (Cow::Borrowed(text), None),
    };
    let target = parse_target(text.as_bytes()).map_err(|_| BadUrl::Form)?;
    let (Some(authority), None) = (target.authority, target.query) else { return Err(BadUrl::Form) };
    let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| BadUrl::Form);
    let (authority, base) = (utf8(authority)?, utf8(target.path)?.trim_end_matches('/'));
    Ok(Url {
        address: address(authority, zone, if is_https { HTTPS_PORT } else { HTTP_PORT })
            .ok_or(BadUrl::Form)?,
        authority: authority.to_owned(),
        base: base.to_owned(),
        is_https,
    })
}

/// Splits the zone off an authority: `[fe80::1%25eth0]:80` is `[fe80::1]:80` in the zone `eth0` (RFC 6874,
/// whose section 3 also recommends to accept a bare `%`). "An HTTP client, proxy, or other intermediary MUST
/// remove any ZoneID attached to an outgoing URI, as it has only local significance at the sending host."
#[must_use]
pub fn split_zone(authority: &str) -> Option<(String, &str)> {
    let (ip, rest) = authority.strip_prefix('[')?.split_once('%')?;
    let (zone, port) = rest.split_once(']')?;
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    let is_zone_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_zone = !zone.is_empty() && zone.bytes().all(is_zone_byte);
    is_zone.then(|| (format!("[{ip}]{port}"), zone))
}

/// Splits a host and its port, which may be empty: `[::1]:8080`, `127.0.0.1`, `files.example:80`.
fn split_port(authority: &str) -> (&str, &str) {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let colon = authority.rfind(':').filter(|colon| *colon >= end);
    colon
        .and_then(|colon| Some((authority.get(..colon)?, authority.get(colon + 1..)?)))
        .unwrap_or((authority, ""))
}

fn address(authority: &str, zone: Option<&str>, default_port: u16) -> Option<ServerAddress> {
    let (host, port) = split_port(authority);
    let port = if port.is_empty() { default_port } else { port.parse().ok()? };
    let at = |ips: &[IpAddr]| {
        ServerAddress::Known(ips.iter().map(|ip| Address::Ip(SocketAddr::new(*ip, port))).collect())
    };
    if let Some(literal) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let ip = literal.parse::<Ipv6Addr>().ok()?;
        return Some(match zone {
            Some(zone) => ServerAddress::Named { host: format!("{ip}%{zone}"), port },
            None => at(&[ip.into()]),
        });
    }
    if is_localhost(host) {
        return Some(at(&[Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
    }
    Some(
        host.parse::<Ipv4Addr>()
            .map_or_else(|_| ServerAddress::Named { host: host.to_owned(), port }, |ip| at(&[ip.into()])),
    )
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        match &self.address {
            ServerAddress::Known(addresses) if let [unix @ Address::Unix(_)] = addresses.as_slice() => {
                unix.fmt(f)
            }
            ServerAddress::Named { host, port }
                if self.authority.starts_with('[')
                    && let Some((ip, zone)) = host.split_once('%') =>
            {
                write!(f, "{scheme}://[{ip}%25{zone}]:{port}{}", self.base)
            }
            _ => write!(f, "{scheme}://{}{}", self.authority, self.base),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Url, BadUrl> {
        text.parse()
    }

    #[test]
    fn a_url_has_an_address_and_a_base_path() {
        for (text, addresses, base) in [
            ("http://127.0.0.1:8080", &["127.0.0.1:8080"][..], ""),
            ("http://127.0.0.1", &["127.0.0.1:80"], ""),
            ("http://127.0.0.1:/", &["127.0.0.1:80"], ""),
            ("HTTP://[::1]:8080/a/b/", &["[::1]:8080"], "/a/b"),
            ("http://[::1]", &["[::1]:80"], ""),
            ("http://localhost:81//", &["127.0.0.1:81", "[::1]:81"], ""),
            ("https://127.0.0.1", &["127.0.0.1:443"], ""),
            ("HTTPS://[::1]:8443/a", &["[::1]:8443"], "/a"),
            ("unix:/run/plimsoll.sock", &["unix:/run/plimsoll.sock"], ""),
        ] {
            let url = parse(text).unwrap();
            let ServerAddress::Known(at) = &url.address else { panic!("{text}") };
            assert_eq!(at.iter().map(Address::to_string).collect::<Vec<_>>(), addresses, "{text}");
            assert_eq!(url.path_of("/x"), format!("{base}/x"), "{text}");
        }
        let named = ServerAddress::Named { host: "files.example".to_owned(), port: 8080 };
        assert_eq!(parse("http://files.example:8080").unwrap().address, named);
    }

    #[test]
    fn a_zone_is_part_of_the_address_and_not_of_host() {
        for (text, shown) in [
            ("http://[fe80::1%25lo]:8080/a", "http://[fe80::1%25lo]:8080/a"),
            ("http://[FE80::1%25eth0.5]/", "http://[fe80::1%25eth0.5]:80"),
            ("http://[fe80::1%lo]:81", "http://[fe80::1%25lo]:81"),
            ("http://[fe80::1%251]", "http://[fe80::1%251]:80"),
            ("https://[fe80::1%25lo]", "https://[fe80::1%25lo]:443"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!(url.to_string(), shown, "{text}");
            assert_eq!(parse(shown).unwrap().address, url.address, "{text}");
            assert!(!url.authority().contains('%'), "{text}");
        }
        let url = parse("http://[fe80::1%25lo]:8080").unwrap();
        assert_eq!(url.address, ServerAddress::Named { host: "fe80::1%lo".to_owned(), port: 8080 });
        assert_eq!((url.authority(), url.port()), ("[fe80::1]:8080", Some(8080)));
        assert!(!url.is_same_server(&parse("http://[fe80::1%25eth0]:8080").unwrap()));
    }

    #[test]
    fn a_server_is_the_same_at_the_same_host_and_port() {
        let is_same = |one: &str, other: &str| parse(one).unwrap().is_same_server(&parse(other).unwrap());
        for (one, other) in [
            ("http://a", "HTTP://A:80"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("unix:/a", "unix:/a"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("http://a", "http://a:81"),
            ("http://a", "http://b"),
            ("http://a", "http://127.0.0.1"),
            ("http://a:443", "https://a"),
            ("unix:/a", "unix:/A"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
        for (text, port) in [
            ("http://a", Some(80)),
            ("http://a:0", Some(0)),
            ("http://[::1]:8080", Some(8080)),
            ("unix:/a", None),
        ] {
            assert_eq!(parse(text).unwrap().port(), port, "{text}");
        }
    }

    #[test]
    fn a_url_displays_as_it_was_written() {
        for text in [
            "http://127.0.0.1:8080",
            "http://[::1]:80/a",
            "https://files.example",
            "https://a:1/b",
            "unix:/a b",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_host_is_the_name_in_a_certificate() {
        for (text, host) in [
            ("https://files.example:8443/a", "files.example"),
            ("https://localhost", "localhost"),
            ("https://192.0.2.1:1", "192.0.2.1"),
            ("https://[2001:db8::1]:1", "2001:db8::1"),
            ("https://[fe80::1%25lo]", "fe80::1"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!((url.host(), url.is_https()), (host, true), "{text}");
        }
        assert!(!parse("http://a").unwrap().is_https() && !parse("unix:/a").unwrap().is_https());
    }

    #[test]
    fn an_unusable_url_is_refused_with_advice() {
        for (text, bad) in [
            ("https://", BadUrl::Form),
            ("https://me@files.example", BadUrl::Login),
            ("http://me@files.example", BadUrl::Login),
            ("http://me:secret@files.example/", BadUrl::Login),
            ("", BadUrl::Form),
            ("unix:", BadUrl::Form),
            ("files.example:80", BadUrl::Form),
            ("ftp://files.example", BadUrl::Form),
            ("http://", BadUrl::Form),
            ("http:///a", BadUrl::Form),
            ("http://a:65536", BadUrl::Form),
            ("http://[::1", BadUrl::Form),
            ("http://[1.2.3.4]", BadUrl::Form),
            ("http://[fe80::1%]", BadUrl::Form),
            ("http://[fe80::1%25a/b]", BadUrl::Form),
            ("http://[1.2.3.4%25lo]", BadUrl::Form),
            ("http://me@[fe80::1%25lo]", BadUrl::Login),
            ("http://a?b", BadUrl::Form),
            ("http://a/#b", BadUrl::Form),
            ("http://a b", BadUrl::Form),
        ] {
            assert_eq!(parse(text), Err(bad), "{text}");
            assert!(bad.to_string().ends_with('.'));
        }
    }
}
