//! The certificates of the tests, for both sides of TLS.
//!
//! They are made by `tests/data/tls/make`.

use plimsoll_tls::{Certificates, Clock, Connector, Roots, ServerTls, Tickets};

/// A name in the server's certificate.
pub const SERVER_NAME: &str = "localhost";

const CA: &[u8] = include_bytes!("../data/tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../data/tls/server.pem");
const KEY: &[u8] = include_bytes!("../data/tls/server.key");

/// Returns the settings of a server for these protocols.
pub fn server(protocols: &[&str]) -> ServerTls {
    let certificates = Certificates::read([(CERTIFICATE, KEY)]).expect("a pair");
    let tickets = Tickets::new().expect("random numbers");
    ServerTls::new(certificates, protocols, tickets, Clock::new()).expect("cipher suites")
}

/// Returns the means of a client that trusts the server, for these protocols.
pub fn connector(protocols: &[&str]) -> Connector {
    Connector::new(&Roots::read(CA).expect("a certificate"), protocols, Clock::new()).expect("cipher suites")
}
