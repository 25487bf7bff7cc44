//! Sets of networks, by which an operator configures trusted proxies.
//!
//! It resolves no names. Invariant: an IPv4 address and the same address mapped into IPv6 are equal.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use crate::transport::Peer;

/// An address, a network in CIDR form, or the peers of Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// All addresses that share the first bits of this one; the number is the prefix length.
    Ip(IpAddr, u8),
    /// Every peer of a Unix socket.
    Unix,
}

/// The error for text that is not a network. Its message lists the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadNetwork(String);

impl fmt::Display for BadNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMS: &str = "write an address (127.0.0.1, ::1), a network (10.0.0.0/8, fd00::/8), or unix \
                             for the peers of Unix sockets";
        write!(f, "{:?} is not a network: {FORMS}", self.0)
    }
}

impl std::error::Error for BadNetwork {}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Network, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        if text == "unix" {
            return Ok(Network::Unix);
        }
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip, Some(bits)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| bad())?;
        let bits = match bits {
            None => bits_max(ip),
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= bits_max(ip)).ok_or_else(bad)?,
        };
        let network = Network::Ip(ip, bits);
        // Bits beyond the prefix are a typing error: 10.0.0.1/8 could be meant as the one address.
        if prefix(ip, bits) == prefix(ip, bits_max(ip)) { Ok(network) } else { Err(bad()) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Ip(ip, bits) if *bits == bits_max(*ip) => ip.fmt(f),
            Network::Ip(ip, bits) => write!(f, "{ip}/{bits}"),
            Network::Unix => f.write_str("unix"),
        }
    }
}

impl Network {
    /// Whether a peer is in this network.
    pub fn contains(&self, peer: &Peer) -> bool {
        match (self, peer) {
            (Network::Ip(network, bits), Peer::Ip(ip, _)) => {
                let ip = ip.to_canonical();
                ip.is_ipv4() == network.is_ipv4() && prefix(ip, *bits) == prefix(*network, *bits)
            }
            (Network::Unix, Peer::Unix) => true,
            _ => false,
        }
    }
}

/// A set of networks, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Whether a peer is in any network of the set.
    pub fn contain(&self, peer: &Peer) -> bool {
        self.0.iter().any(|network| network.contains(peer))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Network>> for Networks {
    fn from(networks: Vec<Network>) -> Networks {
        Networks(networks)
    }
}

fn bits_max(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Returns the first `bits` of an address, the others cleared.
fn prefix(ip: IpAddr, bits: u8) -> u128 {
    let (address, width) = match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let rest = width - u32::from(bits).min(width);
    address.checked_shr(rest).unwrap_or(0).checked_shl(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, ip: &str) -> bool {
        let peer = Peer::Ip(ip.parse().unwrap(), 1);
        Networks::from(vec![network.parse().unwrap()]).contain(&peer)
    }

    #[test]
    fn a_network_contains_the_addresses_of_its_prefix() {
        for (network, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::1"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.128/25", "192.0.2.200", "192.0.2.100"),
            ("0.0.0.0/0", "203.0.113.1", "2001:db8::1"),
            ("::/0", "2001:db8::1", "203.0.113.1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("2001:db8::7", "2001:db8::7", "2001:db8::8"),
        ] {
            assert!(contains(network, inside) && !contains(network, outside), "{network}");
            assert_eq!(network.parse::<Network>().unwrap().to_string(), network);
        }
        let unix = Networks::from(vec![Network::Unix]);
        assert!(unix.contain(&Peer::Unix) && !unix.contain(&Peer::Ip([127, 0, 0, 1].into(), 1)));
        assert!(!Networks::default().contain(&Peer::Unix));
    }

    #[test]
    fn other_text_is_refused_with_what_to_write() {
        for text in ["", "localhost", "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/8/8", "1"]
        {
            assert!(text.parse::<Network>().unwrap_err().to_string().contains("10.0.0.0/8"), "{text}");
        }
    }
}
