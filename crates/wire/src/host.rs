//! Hosts in the text of an authority: names and IP addresses.
//!
//! It resolves no names. Invariant: no name counts as loopback but `localhost`.

use core::net::IpAddr;

/// Returns whether a host is the name of the loopback interface.
#[must_use]
pub fn is_localhost(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

/// Returns the IP address that a host is, with or without brackets; `None` for a name.
#[must_use]
pub fn parse_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns whether a host, with or without brackets, is a name or an address of the loopback interface.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    is_localhost(host) || parse_address(host).is_some_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_and_addresses_are_loopback() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "::ffff:127.0.0.1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["files.example", "localhost.example", "192.168.1.20", "[2001:db8::1]", "0.0.0.0", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
