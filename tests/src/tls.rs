//! The certificates of the tests, for both sides of TLS.
//!
//! They are made by `tests/data/tls/make`.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use plimsoll_io::{Current, Handler, Io, Setup, Stream};
use plimsoll_tls::{Certificates, Clock, Connector, MinVersion, Roots, Secured, ServerTls, Tickets};

/// A name in the server's certificate.
pub const SERVER_NAME: &str = "localhost";

const CA: &[u8] = include_bytes!("../data/tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../data/tls/server.pem");
const OTHER: &[u8] = include_bytes!("../data/tls/other.pem");
const KEY: &[u8] = include_bytes!("../data/tls/server.key");

/// Returns the settings of a server for these protocols.
pub fn server(protocols: &[&str]) -> ServerTls {
    let certificates = Certificates::read([(CERTIFICATE, KEY)]).expect("a pair");
    let tickets = Tickets::new().expect("random numbers");
    ServerTls::new(certificates, protocols, MinVersion::default(), tickets, Clock::new())
        .expect("cipher suites")
}

/// Returns the means of a client without TLS 1.3.
pub fn tls12_connector(protocols: &[&str]) -> Connector {
    Connector::tls12(&Roots::read(CA).expect("a certificate"), protocols, Clock::new())
        .expect("cipher suites")
}

/// Returns the means of a client that trusts the server, for these protocols.
pub fn connector(protocols: &[&str]) -> Connector {
    Connector::new(&Roots::read(CA).expect("a certificate"), protocols, Clock::new()).expect("cipher suites")
}

/// Returns the means of a client that trusts the server's certificate itself, at every address.
pub fn pinned_connector() -> Connector {
    let roots = Roots::read(CERTIFICATE).expect("a certificate");
    Connector::new(&roots, &["http/1.1"], Clock::new()).expect("cipher suites")
}

/// Returns the means of a client that trusts another server.
pub fn connector_of_other() -> Connector {
    let roots = Roots::read(OTHER).expect("a certificate");
    Connector::new(&roots, &["http/1.1"], Clock::new()).expect("cipher suites")
}

/// Encrypts the connections of a server of HTTP.
pub fn secured(setup: Setup) -> Setup {
    Arc::new(move |io| secured_handler(setup(io.clone()), io))
}

/// As [`secured`], for the handler of one thread.
pub fn secured_handler(handler: Rc<dyn Handler>, io: Io) -> Rc<dyn Handler> {
    static TLS: LazyLock<Arc<Current<ServerTls>>> = LazyLock::new(|| Current::new(server(&["http/1.1"])));
    Rc::new(Secured::new(io, handler, Arc::clone(&TLS)))
}

/// Performs the server's handshake: a [`Wrap`](crate::scene::Wrap).
pub fn accept(io: Io, stream: Stream) -> Pin<Box<dyn Future<Output = io::Result<Stream>>>> {
    static TLS: LazyLock<ServerTls> = LazyLock::new(|| server(&["http/1.1"]));
    Box::pin(async move {
        let mut stream = stream;
        TLS.accept(&io, &mut stream).await.map_err(io::Error::other)?;
        Ok(stream)
    })
}
