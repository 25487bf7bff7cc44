//! The server in situations that only the simulator can create: cut at every byte, reset anywhere,
//! reproducibly.
//!
//! It is not the conformance suite, which the simulator runs too. Under any fault, a complete answer must
//! be the correct one, and nothing may be left of an ended connection.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod cold;
mod crowd;
mod ftp;
mod opening;
mod resets;
mod room;
mod splits;
mod stuck;
mod ten;
