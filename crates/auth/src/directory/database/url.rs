//! The URL of a directory: scheme, address and user.
//!
//! It opens nothing. Invariant: no text derived from a URL contains its password, even if the URL is
//! invalid.

use std::fmt;

use super::endpoint::Endpoint;
use crate::directory::open::{BadUrl, without_password};
use plimsoll_rpc::Secret;

/// The parts of `SCHEME://USER:PASSWORD@HOST:PORT/PATH?KEY=VALUE`.
pub(in crate::directory) struct Url {
    shown: String,
    pub(in crate::directory) user: Option<String>,
    pub(in crate::directory) password: Option<Secret>,
    /// The hosts, separated by commas: one at least.
    hosts: Vec<(Option<String>, Option<u16>)>,
    /// The text after the slash that follows the host.
    pub(in crate::directory) path: String,
    query: Vec<(String, String)>,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Url {
    /// Parses a URL. Its query may have only `keys`.
    pub(in crate::directory) fn parse(url: &str, keys: &[&str]) -> Result<Url, BadUrl> {
        let shown = without_password(url);
        let bad = |problem: &str| BadUrl(format!("{shown:?} is no directory of accounts: {problem}"));
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, place) =
            authority.rsplit_once('@').map_or((None, authority), |(credentials, at)| (Some(credentials), at));
        let (user, password) =
            match credentials.map(|credentials| credentials.split_once(':').unwrap_or((credentials, ""))) {
                None => (None, None),
                Some((user, password)) => (Some(user), Some(password)),
            };
        let plain = |text: &str| decoded(text).ok_or_else(|| bad("a % stands for two hexadecimal digits"));
        let kept = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(plain).transpose();
        let hosts = place.split(',').map(|host| {
            let (host, port) = host_and_port(host).ok_or_else(|| bad("a port is a number up to 65535"))?;
            Ok((kept(host)?, port))
        });
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = keys.contains(&key).then(|| plain(value).map(|value| (key.to_owned(), value)));
            known.unwrap_or_else(|| Err(bad(&format!("nothing is known of {key:?}"))))
        });
        Ok(Url {
            user: kept(user)?,
            password: kept(password)?.as_deref().map(Secret::from),
            hosts: hosts.collect::<Result<_, _>>()?,
            path: plain(path)?,
            query: query.collect::<Result<_, _>>()?,
            shown,
        })
    }

    /// Returns the value of `key` in the query.
    pub(in crate::directory) fn value(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns each host and port, by default `localhost` and `port`.
    pub(in crate::directory) fn places(&self, port: u16) -> Vec<Endpoint> {
        let place = |(host, own_port): &(Option<String>, Option<u16>)| {
            let host = host.clone().unwrap_or_else(|| "localhost".to_owned());
            Endpoint::Tcp(host, own_port.unwrap_or(port))
        };
        self.hosts.iter().map(place).collect()
    }

    /// Returns the same of a URL with one host.
    ///
    /// # Errors
    /// It has several.
    pub(in crate::directory) fn place(&self, port: u16) -> Result<Endpoint, BadUrl> {
        let [place] = <[Endpoint; 1]>::try_from(self.places(port))
            .map_err(|_| self.bad("several hosts are for the Sentinels or the cluster of Redis"))?;
        Ok(place)
    }

    /// Returns the path of the Unix socket `name`, if the host or `host=` is a folder. `port` is the
    /// default for the port in the name.
    #[cfg(feature = "postgres")]
    pub(in crate::directory) fn socket(&self, port: u16, name: impl Fn(u16) -> String) -> Option<Endpoint> {
        let (host, own_port) = self.hosts.first()?;
        let folder = self.value("host").or(host.as_deref()).filter(|host| host.starts_with('/'))?;
        Some(Endpoint::Unix(std::path::PathBuf::from(folder).join(name(own_port.unwrap_or(port)))))
    }

    /// Creates the error that this URL is invalid.
    pub(in crate::directory) fn bad(&self, problem: &str) -> BadUrl {
        BadUrl(format!("{:?} is no directory of accounts: {problem}", self.shown))
    }
}

/// Parses `HOST:PORT`, with an IPv6 address in brackets; `None` if the port is invalid.
fn host_and_port(place: &str) -> Option<(Option<&str>, Option<u16>)> {
    let (host, rest) = match place.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        Some((host, rest)) => (host, rest),
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return None,
        Some(port) => Some(port.parse().ok()?),
    };
    Some((Some(host), port))
}

/// Decodes percent-encoding; `None` if it is invalid or the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Url {
        Url::parse(url, &["host"]).unwrap()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let url = parse("postgres://me:p%40ss%2f@db.example:5433/files");
        assert_eq!((url.user.as_deref(), url.path.as_str()), (Some("me"), "files"));
        assert_eq!(url.password.as_ref().unwrap().bytes(), b"p@ss/");
        assert_eq!(url.place(5432).unwrap(), Endpoint::Tcp("db.example".to_owned(), 5433));
        let url = parse("postgres://db");
        assert_eq!((&url.user, url.path.as_str()), (&None, ""));
        assert_eq!(url.place(5432).unwrap(), Endpoint::Tcp("db".to_owned(), 5432));
        assert_eq!(parse("redis://[::1]:7").place(1).unwrap(), Endpoint::Tcp("::1".to_owned(), 7));
        assert_eq!(parse("redis:///").place(1).unwrap(), Endpoint::Tcp("localhost".to_owned(), 1));
        let several = parse("redis+sentinel://me@a:7,[::1],b/files");
        let places =
            [("a", 7), ("::1", 1), ("b", 1)].map(|(host, port)| Endpoint::Tcp(host.to_owned(), port));
        assert_eq!(several.places(1), places);
        several.place(1).unwrap_err();
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn a_folder_in_place_of_a_host_is_that_of_a_unix_socket() {
        let name = |port| format!(".s.{port}");
        let expected = Some(Endpoint::Unix("/run/db/.s.1".into()));
        assert_eq!(parse("postgres:///files?host=/run/db").socket(1, name), expected);
        assert_eq!(parse("postgres://%2Frun%2Fdb/files").socket(1, name), expected);
        assert_eq!(parse("postgres://db/files").socket(1, name), None);
    }

    #[test]
    fn an_error_about_a_url_does_not_contain_its_password() {
        for bad in [
            "postgres://me:secret@db:port/files",
            "postgres://me:secret%4@db/files",
            "postgres://me:secret@db/files?password=1",
            "postgres://me:secret@[::1]x/files",
            "postgres://me:secret@db/%ff",
        ] {
            let message = Url::parse(bad, &["host"]).unwrap_err().to_string();
            assert!(message.contains("postgres://me@") && !message.contains("secret"), "{message}");
        }
    }
}
