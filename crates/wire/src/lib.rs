//! The wire protocols: bytes to types and types to bytes.
//!
//! Not here: sockets, files, clocks, randomness. A time is an argument and "need more bytes" is a result,
//! so that every engine, every test and every fuzz target runs the same code. Invariant: no input from a
//! peer makes this crate panic, loop, or keep more memory than a named limit allows.
#![forbid(unsafe_code)]

pub mod acme;
pub mod calendar;
pub mod classic;
mod decimal;
pub mod ftp;
pub mod hex;
pub mod host;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod nearest;
pub mod password;
pub mod proxy;
pub mod text;
pub mod units;
pub mod zip;
