//! The address of a contender and the pattern of the targets: `http://HOST:PORT/PATH/{}`, `https://`,
//! `ftp://`, `ftps://`, `ftpes://` or `classic://`.
//!
//! It connects to nothing, but resolves the host name once. Invariant: a URL with a password is refused,
//! since it would be written to the results.

use std::net::ToSocketAddrs as _;

use plimsoll_client::ftp::TlsStart;
use plimsoll_client::http::split_zone;
use plimsoll_io::Address;
use plimsoll_wire::http::target::parse_target;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// FTP.
    Ftp,
    /// FTP over TLS: implicit (`ftps`) or, by AUTH TLS, explicit (`ftpes`).
    FtpOverTls(TlsStart),
    /// Classic, the protocol of the preceding server.
    Classic,
}

/// The address of a contender and the pattern of the targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The protocol.
    pub scheme: Scheme,
    /// The addresses; the first that accepts a connection is used.
    pub addresses: Vec<Address>,
    /// The value of the Host field.
    pub authority: String,
    /// The host and port as they were written, with a zone.
    pub server: String,
    /// The path, with `{}` in the position of a file's name or number.
    pub pattern: String,
}

/// An invalid URL. The message says how to write it.
#[derive(Debug, thiserror::Error)]
pub enum BadPlace {
    /// An unsupported scheme.
    #[error("write a URL that begins with http://, https://, ftp://, ftps://, ftpes:// or classic://")]
    Scheme,
    /// The URL has a name or a password before the host.
    #[error(
        "a URL must have no name or password in it: write --account NAME, and give the password otherwise"
    )]
    Login,
    /// The host or the port is invalid.
    #[error("write http://HOST:PORT/PATH or ftp://HOST:PORT/PATH")]
    Form,
    /// The path is invalid.
    #[error("the path {0:?} cannot be asked for: write it percent-encoded, and {{}} once at most")]
    Path(String),
    /// The host name has no address.
    #[error("cannot look up {0}: {1}; check its spelling, or write an IP address")]
    Lookup(String, std::io::Error),
}

impl Scheme {
    /// Whether it is HTTP, encrypted or not.
    #[must_use]
    pub fn is_http(self) -> bool {
        matches!(self, Scheme::Http | Scheme::Https)
    }

    /// Whether its connections are encrypted.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        matches!(self, Scheme::Https | Scheme::FtpOverTls(_))
    }

    /// Returns the scheme's name in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ftp => "ftp",
            Scheme::FtpOverTls(TlsStart::Implicit) => "ftps",
            Scheme::FtpOverTls(TlsStart::Explicit) => "ftpes",
            Scheme::Classic => "classic",
        }
    }
}

impl Target {
    /// Parses a URL and resolves its host.
    ///
    /// # Errors
    /// Returns [`BadPlace`] if the URL is invalid or the host has no address.
    pub fn parse(url: &str) -> Result<Target, BadPlace> {
        let UrlParts { scheme, server, authority, host, port, pattern } = UrlParts::parse(url)?;
        let found = (host, port).to_socket_addrs();
        let found = found.map_err(|error| BadPlace::Lookup(server.to_owned(), error))?;
        Ok(Target {
            scheme,
            addresses: found.map(Address::Ip).collect(),
            authority,
            server: server.to_owned(),
            pattern: pattern.to_owned(),
        })
    }

    /// Returns the host without brackets and zone: the name in its certificate.
    #[must_use]
    pub fn host(&self) -> &str {
        address(&self.authority, 0).map_or("", |(host, _)| host)
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.name(), self.server, self.pattern)
    }

    /// Returns whether the pattern has a position for the name or number of a file.
    #[must_use]
    pub fn has_place_for_a_name(&self) -> bool {
        self.pattern.contains("{}")
    }
}

/// The parts of a URL, before its host is looked up.
struct UrlParts<'a> {
    scheme: Scheme,
    server: &'a str,
    authority: String,
    /// The host, with its zone and without brackets.
    host: String,
    port: u16,
    pattern: &'a str,
}

impl UrlParts<'_> {
    fn parse(url: &str) -> Result<UrlParts<'_>, BadPlace> {
        let (scheme, rest) = url.split_once("://").ok_or(BadPlace::Scheme)?;
        let (scheme, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, 80),
            "https" => (Scheme::Https, 443),
            "ftp" => (Scheme::Ftp, 21),
            "ftps" => (Scheme::FtpOverTls(TlsStart::Implicit), 990),
            "ftpes" => (Scheme::FtpOverTls(TlsStart::Explicit), 21),
            "classic" => (Scheme::Classic, 9000),
            _ => return Err(BadPlace::Scheme),
        };
        let (server, pattern) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        if server.contains('@') {
            return Err(BadPlace::Login);
        }
        let filled = pattern.replacen("{}", "0", 1);
        if filled.contains("{}") {
            return Err(BadPlace::Path(pattern.to_owned()));
        }
        check(&filled)?;
        let (authority, zone) =
            split_zone(server).map_or((server.to_owned(), None), |(authority, zone)| (authority, Some(zone)));
        let (host, port) = address(&authority, port)?;
        let host = zone.map_or_else(|| host.to_owned(), |zone| format!("{host}%{zone}"));
        Ok(UrlParts { scheme, server, authority, host, port, pattern })
    }
}

/// Checks whether the generator can use a URL, without a lookup of its host.
///
/// # Errors
/// Returns [`BadPlace`] if the URL is invalid.
pub fn check_url(url: &str) -> Result<(), BadPlace> {
    UrlParts::parse(url).map(drop)
}

/// Checks whether `target` is a valid request target.
pub(crate) fn check(target: &str) -> Result<(), BadPlace> {
    match parse_target(target.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => Err(BadPlace::Path(target.to_owned())),
    }
}

/// Returns the host, without brackets, and the port of an authority; `port` is that of the scheme.
fn address(authority: &str, port: u16) -> Result<(&str, u16), BadPlace> {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority.get(end..).and_then(|rest| rest.rfind(':')) {
        Some(colon) => {
            let (host, port) = authority.split_at(end + colon);
            (host, port[1..].parse().map_err(|_| BadPlace::Form)?)
        }
        None => (authority, port),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() { Err(BadPlace::Form) } else { Ok((host, port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_place_and_a_pattern() {
        for (url, address, pattern) in [
            ("http://127.0.0.1:8080/a/{}.bin", "127.0.0.1:8080", "/a/{}.bin"),
            ("HTTP://[::1]:81", "[::1]:81", "/"),
            ("http://[fe80::1%25lo]:81/a", "[fe80::1%1]:81", "/a"),
            ("ftp://[fe80::1%lo]/a", "[fe80::1%1]:21", "/a"),
            ("http://127.0.0.1/x?y={}", "127.0.0.1:80", "/x?y={}"),
            ("ftp://127.0.0.1/a/{}", "127.0.0.1:21", "/a/{}"),
            ("https://127.0.0.1/a/{}", "127.0.0.1:443", "/a/{}"),
            ("ftps://127.0.0.1/a/{}", "127.0.0.1:990", "/a/{}"),
            ("ftpes://127.0.0.1/a/{}", "127.0.0.1:21", "/a/{}"),
            ("classic://127.0.0.1/a/{}", "127.0.0.1:9000", "/a/{}"),
        ] {
            let place = Target::parse(url).unwrap();
            assert_eq!(place.addresses[0].to_string(), address, "{url}");
            assert_eq!(place.pattern, pattern, "{url}");
        }
        let place = Target::parse("http://[fe80::1%25lo]:81/a").unwrap();
        assert_eq!((&*place.authority, &*place.url()), ("[fe80::1]:81", "http://[fe80::1%25lo]:81/a"));
    }

    #[test]
    fn an_unusable_target_is_refused_with_the_valid_form() {
        for (url, expected) in [
            ("127.0.0.1:80", "http://"),
            ("gopher://127.0.0.1/", "http://"),
            ("http://me:secret@127.0.0.1/", "--account"),
            ("http://127.0.0.1:70000/", "HOST:PORT"),
            ("http://:80/", "HOST:PORT"),
            ("http://[]:80/", "HOST:PORT"),
            ("http://127.0.0.1/a b", "percent-encoded"),
            ("http://127.0.0.1/{}/{}", "once"),
        ] {
            let refused = Target::parse(url).unwrap_err().to_string();
            assert!(refused.contains(expected) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
