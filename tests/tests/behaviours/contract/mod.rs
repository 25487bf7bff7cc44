//! The rules of the I/O contract, each a test under every engine: protocols rely on them without checks.
//!
//! The server here is not HTTP but a handful of acts, each named by the first byte that a client sends.

mod acts;
mod deadlines;
mod discarding;
mod ends;
mod leases;
mod onward;
mod over_a_transport;
mod panics;
mod room;
mod sending;
mod stopping;
mod two_streams;
mod writing;
