//! Where a contender is, and the pattern of what is asked for: `http://HOST:PORT/PATH/{}`, `ftp://` or
//! `classic://`.
//!
//! Nothing is connected here, but a name is looked up, once. What must hold: a URL with a password in it is
//! refused, since it would end up in results.

use std::net::ToSocketAddrs as _;

use plimsoll_io::Address;
use plimsoll_wire::http::target::parse_target;

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// FTP.
    Ftp,
    /// Classic.
    Classic,
}

/// Where a contender is, and the pattern of what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The protocol.
    pub scheme: Scheme,
    /// Its addresses; the first that lets us connect is used.
    pub addresses: Vec<Address>,
    /// What the Host field says.
    pub authority: String,
    /// The path, with `{}` where the name or number of a file belongs.
    pub pattern: String,
}

/// A URL that cannot be used, with what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum BadPlace {
    /// Another scheme.
    #[error("write a URL that begins with http://, ftp:// or classic://")]
    Scheme,
    /// A name or a password before the host.
    #[error(
        "a URL must have no name or password in it: write --account NAME, and give the password otherwise"
    )]
    Login,
    /// The host or the port.
    #[error("write http://HOST:PORT/PATH or ftp://HOST:PORT/PATH")]
    Form,
    /// The path.
    #[error("the path {0:?} cannot be asked for: write it percent-encoded, and {{}} once at most")]
    Path(String),
    /// The name of the host has no address.
    #[error("cannot look up {0}: {1}; check its spelling, or write an IP address")]
    Lookup(String, std::io::Error),
}

impl Scheme {
    /// As URLs have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Ftp => "ftp",
            Scheme::Classic => "classic",
        }
    }
}

impl Place {
    /// Reads a URL and looks its host up.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(url: &str) -> Result<Place, BadPlace> {
        let (scheme, rest) = url.split_once("://").ok_or(BadPlace::Scheme)?;
        let (scheme, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, 80),
            "ftp" => (Scheme::Ftp, 21),
            "classic" => (Scheme::Classic, 9000),
            _ => return Err(BadPlace::Scheme),
        };
        let (authority, pattern) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return Err(BadPlace::Login);
        }
        let filled = pattern.replacen("{}", "0", 1);
        if filled.contains("{}") {
            return Err(BadPlace::Path(pattern.to_owned()));
        }
        check(&filled)?;
        Ok(Place {
            scheme,
            addresses: addresses(authority, port)?,
            authority: authority.to_owned(),
            pattern: pattern.to_owned(),
        })
    }

    /// The URL, as it was written.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.name(), self.authority, self.pattern)
    }

    /// Whether the pattern has a place for the name or number of a file.
    #[must_use]
    pub fn has_place_for_a_name(&self) -> bool {
        self.pattern.contains("{}")
    }
}

/// Whether `target` can be asked for as it is.
pub(crate) fn check(target: &str) -> Result<(), BadPlace> {
    match parse_target(target.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => Err(BadPlace::Path(target.to_owned())),
    }
}

fn addresses(authority: &str, port: u16) -> Result<Vec<Address>, BadPlace> {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let has_port = authority.get(end..).is_some_and(|rest| rest.contains(':'));
    let whole = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    if whole.starts_with(':') || whole.rsplit(':').next().is_none_or(|port| port.parse::<u16>().is_err()) {
        return Err(BadPlace::Form);
    }
    let found = whole.to_socket_addrs().map_err(|error| BadPlace::Lookup(authority.to_owned(), error))?;
    Ok(found.map(Address::Ip).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_place_and_a_pattern() {
        for (url, address, pattern) in [
            ("http://127.0.0.1:8080/a/{}.bin", "127.0.0.1:8080", "/a/{}.bin"),
            ("HTTP://[::1]:81", "[::1]:81", "/"),
            ("http://127.0.0.1/x?y={}", "127.0.0.1:80", "/x?y={}"),
            ("ftp://127.0.0.1/a/{}", "127.0.0.1:21", "/a/{}"),
            ("classic://127.0.0.1/a/{}", "127.0.0.1:9000", "/a/{}"),
        ] {
            let place = Place::parse(url).unwrap();
            assert_eq!(place.addresses[0].to_string(), address, "{url}");
            assert_eq!(place.pattern, pattern, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_what_to_write() {
        for (url, said) in [
            ("127.0.0.1:80", "http://"),
            ("https://127.0.0.1/", "http://"),
            ("http://me:secret@127.0.0.1/", "--account"),
            ("http://127.0.0.1:70000/", "HOST:PORT"),
            ("http://:80/", "HOST:PORT"),
            ("http://127.0.0.1/a b", "percent-encoded"),
            ("http://127.0.0.1/{}/{}", "once"),
        ] {
            let refused = Place::parse(url).unwrap_err().to_string();
            assert!(refused.contains(said) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
