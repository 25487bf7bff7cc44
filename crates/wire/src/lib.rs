//! The wire protocols: bytes to types and types to bytes.
//!
//! Not here: sockets, files, clocks, chance. A time is an argument and "need more bytes" is an answer, so
//! that every engine, every test and every fuzz target runs the same code. What must hold: nothing that a
//! peer can send makes this crate panic, loop, or keep more memory than a named limit says.
#![forbid(unsafe_code)]

pub mod classic;
mod decimal;
pub mod ftp;
pub mod http;
pub mod proxy;
pub mod text;
