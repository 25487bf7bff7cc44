//! The address that a stream listens on or connects to, in the form that a person types.
//!
//! It does not resolve names beyond the standard library's numeric forms: host names other than
//! `localhost` are rejected with an error message that says so. Invariant: no form means "all
//! interfaces" by accident; `:PORT` is loopback.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on or to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP at an address and port. When listening on port 0, the kernel chooses the port.
    Ip(SocketAddr),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

/// The error for text that is not an address. Its message lists the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMS: &str =
            "write IP:PORT (127.0.0.1:8080, [::1]:8080), localhost:PORT, :PORT for loopback, or unix:PATH";
        write!(f, "{:?} is not an address: {FORMS}", self.0)
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(bad()) } else { Ok(Address::Unix(path.into())) };
        }
        let loopback = text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:"));
        if let Some(port) = loopback {
            let port = port.parse().map_err(|_| bad())?;
            return Ok(Address::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Address::Ip).map_err(|_| bad())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(at) => at.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_loopback_and_never_every_interface() {
        assert_eq!(":80".parse::<Address>().unwrap().to_string(), "127.0.0.1:80");
        assert_eq!("localhost:80".parse::<Address>().unwrap().to_string(), "127.0.0.1:80");
    }

    #[test]
    fn every_form_is_read_back_as_it_was_written() {
        for text in ["127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0", "unix:/run/plimsoll.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_malformed_address_is_refused_with_the_valid_forms() {
        for text in ["", "8080", "example.org:80", ":", ":65536", "unix:", "1.2.3.4"] {
            let refused = text.parse::<Address>().unwrap_err().to_string();
            assert!(refused.contains("IP:PORT"), "{refused}");
        }
    }
}
