//! Clients of the protocols, for the tiers, the proxy, the lab and the command line alike.
//!
//! Not here: sockets, clocks and names (they come from `Io` and from the caller), and what a request is for.
//! What must hold: every wait ends; what a server sends is checked as strictly as what a client sends.
#![forbid(unsafe_code)]

pub mod classic;
pub mod ftp;
pub mod http;
mod sending;
mod source;

pub use source::{Piece, Source, Whole};
