//! The origin of a client's request, and the network that it counts for.
//!
//! It is not an address to connect to. Invariant: all addresses that one client usually has are one
//! network.

use core::net::IpAddr;

use plimsoll_io::Peer;
use serde::{Deserialize, Serialize};

/// The origin of a request, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address.
    Ip(IpAddr),
    /// A process on this machine.
    Unix,
}

/// The bytes that identify a network.
pub type Network = Vec<u8>;

impl From<&Peer> for Source {
    fn from(peer: &Peer) -> Source {
        match peer {
            Peer::Ip(ip, _) => Source::Ip(ip.to_canonical()),
            Peer::Unix => Source::Unix,
        }
    }
}

impl Source {
    /// Returns whether the request comes from this machine.
    pub fn is_local(self) -> bool {
        match self {
            Source::Ip(ip) => ip.is_loopback(),
            Source::Unix => true,
        }
    }

    /// Returns the bytes that identify the network. An IPv6 address counts as its /64, which one client
    /// usually has whole.
    pub fn network(self) -> Network {
        match self {
            Source::Ip(IpAddr::V4(ip)) => ip.octets().to_vec(),
            Source::Ip(IpAddr::V6(ip)) => ip.octets()[..8].to_vec(),
            Source::Unix => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_prefix_is_one_network_and_so_is_an_ipv4_address() {
        let network = |ip: &str| Source::from(&Peer::Ip(ip.parse().unwrap(), 1)).network();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }
}
