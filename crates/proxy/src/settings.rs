//! The settings of a proxy, which a reload replaces for new connections.
//!
//! It reads no configuration. Invariants: the proxy's own names and the hosts that it forwards to are
//! disjoint from all others. Origins that a reload keeps keep their state.

use std::sync::Arc;

use core::net::IpAddr;
use plimsoll_channel::{Bodies, Connector, Settings as ChannelSettings};
use plimsoll_client::http::{Resolve, Url};
use plimsoll_io::{Address, Io, Networks};
use plimsoll_proto::http::Limits;
use plimsoll_tls::Connector as TlsConnector;
use plimsoll_wire::host::{is_loopback, parse_address};
use plimsoll_wire::proxy::Version as HeaderVersion;

use crate::balance::Balance;
use crate::cache::opening::CacheOpener;
use crate::cache::response_cache::ResponseCache;
use crate::fields::FieldRules;
use crate::limits::OriginTimes;
use crate::origin::Origin;
use crate::spool::SpoolSpace;

/// The settings of a proxy.
pub struct Settings {
    /// The limits on clients.
    pub limits: Limits,
    /// The proxies in front of this one, which may name a request's client.
    pub trusted: Networks,
    /// The origins.
    pub origins: Balance,
    /// The hosts that requests in absolute-form may name, beside the proxy's own names.
    pub forward: ForwardHosts,
    /// The names of the proxy and of its origins.
    pub names: Names,
    /// The name of this proxy in Via, by which it detects loops.
    pub pseudonym: String,
    /// The fields that requests may have.
    pub fields: FieldRules,
    /// The timeouts for origins.
    pub times: OriginTimes,
    /// Returns the resolver of a thread; without it, URLs must have IP addresses or `localhost`.
    pub resolve: Option<fn(&Io) -> Resolve>,
    /// Encrypts connections to origins with an `https` URL.
    pub tls: Option<TlsConnector>,
    /// How origins at Unix sockets hand over bodies, if they are connected by channels of shared memory.
    pub channel: Option<Bodies>,
    /// The settings and counters of these channels.
    pub channels: ChannelSettings,
    /// The version of the header of the PROXY protocol that each connection to an origin begins with.
    pub header: Option<HeaderVersion>,
    /// Connections to one origin that may be in use.
    pub origin_connections: usize,
    /// The room for responses that their clients take slowly. A reload keeps it.
    pub spool: Arc<SpoolSpace>,
    /// The cache, if there is one. A reload keeps it.
    pub cache: Option<Arc<CacheOpener>>,
}

impl Settings {
    /// Returns the connector of channels for a thread, if origins are connected by them.
    pub(crate) fn connector(&self, io: &Io) -> Option<Connector> {
        self.channel.map(|bodies| Connector::new(io, bodies, self.channels.clone()))
    }

    /// Returns the cache, if there is one and it is open.
    pub(crate) fn open_cache(&self) -> Option<&Arc<ResponseCache>> {
        self.cache.as_ref()?.get()
    }
}

/// The hosts of `--forward`.
#[derive(Default)]
pub struct ForwardHosts(Vec<(String, Arc<Origin>)>);

impl ForwardHosts {
    /// Adds a host, written as `HOST` or `HOST:PORT`, and the URL of its server. If `before` has both, the
    /// server keeps its state.
    pub fn add(&mut self, host: &str, url: &Url, before: Option<&ForwardHosts>) {
        let kept = before.and_then(|before| before.find(host)).filter(|origin| origin.url() == url);
        let origin = kept.map_or_else(|| Origin::new(url.clone()), Arc::clone);
        self.0.push((normalised(host), origin));
    }

    /// Finds the server of an authority. A missing port is that of HTTP.
    pub(crate) fn find(&self, authority: &str) -> Option<&Arc<Origin>> {
        if self.0.is_empty() {
            return None;
        }
        let wanted = normalised(authority);
        self.0.iter().find(|(host, _)| *host == wanted).map(|(_, origin)| origin)
    }

    /// Iterates over the servers.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &Arc<Origin>> {
        self.0.iter().map(|(_, origin)| origin)
    }
}

/// Writes an authority in lower case and with its port.
fn normalised(authority: &str) -> String {
    let (host, port) = split(authority);
    format!("{}:{}", host.to_ascii_lowercase(), if port.is_empty() { "80" } else { port })
}

/// Splits an authority into its host and its port, which may be empty.
fn split(authority: &str) -> (&str, &str) {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (literal, rest) = authority.split_at(end);
    match rest.rfind(':') {
        Some(colon) => (&authority[..literal.len() + colon], &rest[colon + 1..]),
        None => (authority, ""),
    }
}

/// The names by which requests in absolute-form reach the origins.
#[derive(Clone, Debug, Default)]
pub struct Names {
    hosts: Vec<String>,
    ips: Vec<IpAddr>,
}

impl Names {
    /// Adds a host name or an IP address, with or without a port, which is ignored.
    pub fn add(&mut self, authority: &str) {
        let host = split(authority).0;
        match parse_address(host) {
            Some(ip) => self.ips.push(ip.to_canonical()),
            None => self.hosts.push(host.to_ascii_lowercase()),
        }
    }

    /// Adds the names of the addresses that the proxy listens on. An unspecified address has none; the
    /// address that a client connected to is added for its connection.
    pub fn add_listeners(&mut self, addresses: &[Address]) {
        for address in addresses {
            if let Address::Ip(at) = address
                && !at.ip().is_unspecified()
            {
                self.ips.push(at.ip().to_canonical());
            }
        }
    }

    /// Adds the names of the origins.
    pub fn add_origins<'a>(&mut self, origins: impl IntoIterator<Item = &'a Url>) {
        for url in origins.into_iter().filter(|url| !url.is_unix()) {
            self.add(url.authority());
        }
    }

    /// Whether an authority is one of these names, or of the loopback interface, or `local`, the address of
    /// the proxy's own end of the connection. Ports are ignored.
    pub(crate) fn contain(&self, authority: &str, local: Option<IpAddr>) -> bool {
        let host = split(authority).0;
        if is_loopback(host) {
            return true;
        }
        match parse_address(host).map(|ip| ip.to_canonical()) {
            Some(ip) => Some(ip) == local.map(|ip| ip.to_canonical()) || self.ips.contains(&ip),
            None => self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_proxy_and_of_its_origins_are_known_with_any_port() {
        let mut names = Names::default();
        names.add_listeners(&[
            ":8080".parse().unwrap(),
            "192.0.2.1:80".parse().unwrap(),
            "0.0.0.0:1".parse().unwrap(),
        ]);
        let origins: Vec<Url> = ["http://files.example:81", "http://[2001:db8::1]", "unix:/a"]
            .map(|url| url.parse().unwrap())
            .into();
        names.add_origins(&origins);
        names.add("Proxy.Example");
        let local = Some("198.51.100.7".parse().unwrap());
        for known in [
            "localhost",
            "LOCALHOST:99",
            "127.0.0.1:5",
            "[::1]:5",
            "192.0.2.1",
            "files.example:7",
            "[2001:db8::1]:80",
            "proxy.example",
            "198.51.100.7:80",
        ] {
            assert!(names.contain(known, local), "{known}");
        }
        for unknown in ["example", "files.example.org", "192.0.2.2", "0.0.0.0", "localhost.example"] {
            assert!(!names.contain(unknown, local), "{unknown}");
        }
    }

    #[test]
    fn a_forwarded_host_is_found_with_its_port_only() {
        let mut hosts = ForwardHosts::default();
        hosts.add("a.example", &"http://a.example".parse().unwrap(), None);
        hosts.add("b.example:81", &"http://b.example:81".parse().unwrap(), None);
        for known in ["a.example", "A.example:80", "a.example:", "b.example:81"] {
            assert!(hosts.find(known).is_some(), "{known}");
        }
        for unknown in ["a.example:81", "b.example", "c.example", "[::1]"] {
            assert!(hosts.find(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn a_reload_keeps_the_state_of_the_forwarded_hosts_that_stay() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let (mut before, mut after) = (ForwardHosts::default(), ForwardHosts::default());
        before.add("a.example", &url("http://a.example"), None);
        before.add("b.example", &url("http://b.example"), None);
        after.add("a.example:80", &url("http://a.example"), Some(&before));
        after.add("b.example", &url("http://c.example"), Some(&before));
        let is_kept = |host| Arc::ptr_eq(before.find(host).unwrap(), after.find(host).unwrap());
        assert!(is_kept("a.example") && !is_kept("b.example"));
    }
}
