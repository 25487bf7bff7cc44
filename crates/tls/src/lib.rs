//! TLS 1.2 and 1.3 as a transport over a transport, by rustls: for the streams of every protocol and engine.
//!
//! [`Secured`] is a handler that performs the server's handshake and passes the encrypted stream to another
//! handler; [`Connector`] performs the client's. Both put a `Tls` on the stream (`transport.rs`), which
//! encrypts what is pushed at once and decrypts what is received. A session is in `session.rs`, the only file
//! that calls rustls for one, except [`BlockingConnector`]: it serves the clients of databases, which block.
//! [`BoundSession`] proves that several connections come from one client.
//!
//! It knows no protocol: callers pass certificates as bytes, and the names of protocols for ALPN. Only the
//! operating system's trusted certificates are read from files. Invariants: no byte of a conversation leaves
//! in clear. A stream that ends without TLS's own end is an error, because it may have been cut. A handshake
//! has a limit of time and of bytes. Private keys are never logged.
#![forbid(unsafe_code)]

mod admission;
mod blocking;
mod bound_session;
mod certificates;
mod challenges;
mod client;
mod clock;
mod fingerprint;
mod handler;
mod handshake;
mod ledger;
pub mod limits;
mod provider;
mod server;
mod session;
mod tickets;
mod transport;
mod turns;
mod verifier;
mod versions;

pub use admission::{Admission, Handshakes, Outcome};
pub use blocking::{BlockingConnector, BlockingTls, ServerCheck, SessionTerms};
pub use bound_session::{BoundSession, Direction, Proof};
pub use certificates::{BadCertificate, Certificates, Identity};
pub use challenges::ChallengeCertificates;
pub use client::{BadRoots, Connector, Handshake, Roots, Trust, refuses_identity};
pub use clock::Clock;
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use handler::{REFUSAL, Secured, refuse};
pub use handshake::HandshakeError;
pub use server::ServerTls;
pub use tickets::{TicketSecret, Tickets};
pub use verifier::{Distrust, Untrusted};
pub use versions::MinVersion;
