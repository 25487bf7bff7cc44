//! Clients of the protocols, for the tiers, the proxy, the load generator and the command line.
//!
//! They do not open sockets, read clocks or resolve names (`Io` and the caller do), and do not interpret
//! requests. Invariants: every wait ends. A server's bytes are checked as strictly as a server checks a
//! client's.
#![forbid(unsafe_code)]

pub mod classic;
pub mod ftp;
pub mod http;
mod source;

pub use source::{NextSegment, SingleSegment, Source};
