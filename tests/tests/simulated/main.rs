//! The server where only the simulator can bring it: cut at every byte, reset anywhere, and again.
//!
//! It is not the conformance suite, which the simulator runs too. What must hold: whatever breaks, an answer
//! that arrives whole is the right one, and nothing is left of a connection that has ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod cold;
mod crowd;
mod ftp;
mod resets;
mod room;
mod splits;
mod stuck;
mod ten;
