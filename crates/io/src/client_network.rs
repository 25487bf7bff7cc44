//! The network of a client: the unit among which connections are shared. It is one word, so that processes
//! can share it.
//!
//! It counts nothing. Invariants: an IPv4 address is its own network. An IPv6 address counts by its first 64
//! bits, because one host has the rest. Two networks never have the same word.

use core::net::IpAddr;
use std::num::NonZeroU64;

/// An IPv4 address, or the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork(NonZeroU64);

/// The words of IPv4 addresses begin with these bits, a prefix of IPv6 that the IETF has reserved.
const IPV4: u64 = 0xffff << 32;
/// The word of the network `::/64`, whose own bits are all zero. It is a prefix of the same reserve.
const ZERO: NonZeroU64 = NonZeroU64::MIN;

impl ClientNetwork {
    /// Returns the network of an address.
    #[must_use]
    pub fn of(ip: IpAddr) -> ClientNetwork {
        let word = match ip.to_canonical() {
            IpAddr::V4(ip) => IPV4 | u64::from(ip.to_bits()),
            IpAddr::V6(ip) => u64::try_from(ip.to_bits() >> 64).unwrap_or_default(),
        };
        ClientNetwork(NonZeroU64::new(word).unwrap_or(ZERO))
    }

    /// Returns a network, or its lack, as a word.
    #[must_use]
    pub fn word(network: Option<ClientNetwork>) -> u64 {
        network.map_or(0, |network| network.0.get())
    }

    /// Returns the network of a word.
    #[must_use]
    pub fn from_word(word: u64) -> Option<ClientNetwork> {
        NonZeroU64::new(word).map(ClientNetwork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(ip: &str) -> ClientNetwork {
        ClientNetwork::of(ip.parse().unwrap())
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_count_as_one() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::2:3"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }

    #[test]
    fn an_ipv4_address_counts_alone_and_its_mapped_form_is_the_same() {
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
    }

    #[test]
    fn a_word_is_read_back_as_the_network_it_was_written_for() {
        for ip in ["0.0.0.0", "127.0.0.1", "255.255.255.255", "::1", "2001:db8::1"] {
            assert_eq!(
                ClientNetwork::from_word(ClientNetwork::word(Some(network(ip)))),
                Some(network(ip)),
                "{ip}"
            );
        }
        assert_eq!(ClientNetwork::from_word(ClientNetwork::word(None)), None);
    }
}
